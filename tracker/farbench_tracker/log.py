"""Lines for the log that people read and programs split: `event=lease_ended device=... ...`."""

from __future__ import annotations

import json


def line(event: str, **fields: str) -> str:
    """Write one line; empty fields are left out, values with spaces or odd characters quoted."""
    parts = [f"event={event}"]
    for name, value in fields.items():
        if value:
            plain = value.isascii() and value.isprintable() and not set(value) & set(' "=')
            parts.append(f"{name}={value if plain else json.dumps(value)}")
    return " ".join(parts)
