"""Who holds which device: registration, matching, queue and leases."""
