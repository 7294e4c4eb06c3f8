"""Scalars as 8-byte slots: what each dtype accepts and how its bits lie in the slot.

Integers are sign-extended to int64; uint8 and bool are zero-extended; a float's own bits (2, 4 or
8 bytes) lie in the low bytes and the rest is zero.
"""

from __future__ import annotations

import math
import struct

from farbench_rpc.manifest.errors import ArgumentError

DTYPES: dict[str, int] = {
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "bool": 1,
}
_FLOATS = {"float16": "<e6x", "float32": "<f4x", "float64": "<d"}
_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 255),
    "bool": (0, 1),
}


def to_slot(value: float, dtype: str) -> int:
    """Give the slot of a number as a signed 64-bit int; ArgumentError if it does not fit."""
    if dtype in _FLOATS:
        return _float_slot(value, dtype)
    if not isinstance(value, int):
        raise ArgumentError(f"expected {dtype}, got {type(value).__name__} {value!r}")
    low, high = _RANGES[dtype]
    if not low <= value <= high:
        raise ArgumentError(f"expected {dtype} ({low} to {high}), got {value}")
    return int(value)


def _float_slot(value: float, dtype: str) -> int:
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"expected {dtype}, got {type(value).__name__} {value!r}")
    try:
        number = float(value)
        packed = struct.pack(_FLOATS[dtype], number)
    except OverflowError as cause:
        raise ArgumentError(f"{value!r} is beyond the range of {dtype}") from cause
    if math.isfinite(number) and not math.isfinite(from_slot_bytes(packed, dtype)):
        raise ArgumentError(f"{value!r} is beyond the range of {dtype}")
    slot: int = struct.unpack("<q", packed)[0]
    return slot


def from_slot_bytes(packed: bytes, dtype: str) -> float:
    """Read a float back from the 8 bytes of its slot."""
    number: float = struct.unpack(_FLOATS[dtype], packed)[0]
    return number
