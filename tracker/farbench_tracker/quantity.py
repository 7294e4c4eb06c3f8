"""Numbers with units, as people write them in requirements and labels: 2GiB, 1.8 GHz, 4."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

UNITS: Final[dict[str, int]] = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "Hz": 1,
    "kHz": 10**3,
    "MHz": 10**6,
    "GHz": 10**9,
}

# At most 30 digits a part: a longer number would cost time and never be a real quantity.
_QUANTITY = re.compile(
    r"([+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*([A-Za-z]*)", re.ASCII
)


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> int | float | None:
    """Read `text` as a number times its unit (bytes or hertz); None if it is not one.

    A whole result is an int, so that sizes compare exactly; another is the nearest float.
    """
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or found[2] not in UNITS:
        return None
    exact = Fraction(found[1]) * UNITS[found[2]]
    return exact.numerator if exact.denominator == 1 else float(exact)


def unit_names() -> str:
    """List the units for error texts."""
    return " ".join(unit for unit in UNITS if unit)
