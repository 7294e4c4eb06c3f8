"""The demonstration: a tracker, two devices, fourteen workloads, a table and a report."""
