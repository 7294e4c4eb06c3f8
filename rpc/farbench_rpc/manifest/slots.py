"""Scalars as 8-byte slots: what each dtype accepts and how its bits lie in the slot.

Integers are sign-extended to int64; unsigned ones and bool are zero-extended; a float's own bits
(2, 4 or 8 bytes) lie in the low bytes and the rest is zero.
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
    "bfloat16": 2,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
}
_FLOATS = {"float16": "<e6x", "float32": "<f4x", "float64": "<d"}
_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 255),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "bool": (0, 1),
}


def to_slot(value: float, dtype: str) -> int:
    """Give the slot of a number as a signed 64-bit int; ArgumentError if it does not fit."""
    if dtype in _FLOATS or dtype == "bfloat16":
        return _float_slot(value, dtype)
    if not isinstance(value, int):
        raise ArgumentError(f"expected {dtype}, got {type(value).__name__} {value!r}")
    low, high = _RANGES[dtype]
    if not low <= value <= high:
        raise ArgumentError(f"expected {dtype} ({low} to {high}), got {value}")
    return _signed(int(value))


def _signed(value: int) -> int:
    return value if value < 2**63 else value - 2**64


def to_wire(value: float, dtype: str) -> int | float:
    """Give a number that fits its dtype as it travels, where integers are int64.

    A uint64 travels as the int64 of the same bits; `from_wire` gives it back.
    """
    return float(value) if "float" in dtype else _signed(int(value))


def from_wire(value: float, dtype: str) -> float:
    """Give a number of the wire as its dtype has it; what does not fit is left for the check."""
    return value + 2**64 if dtype == "uint64" and type(value) is int and value < 0 else value


def _float_slot(value: float, dtype: str) -> int:
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"expected {dtype}, got {type(value).__name__} {value!r}")
    try:
        number = float(value)
        packed = _packed(number, dtype)
    except OverflowError as cause:
        raise ArgumentError(f"{value!r} is beyond the range of {dtype}") from cause
    if math.isfinite(number) and not math.isfinite(from_slot_bytes(packed, dtype)):
        raise ArgumentError(f"{value!r} is beyond the range of {dtype}")
    slot: int = struct.unpack("<q", packed)[0]
    return slot


def from_slot_bytes(packed: bytes, dtype: str) -> float:
    """Read a float back from the 8 bytes of its slot."""
    if dtype == "bfloat16":
        packed, dtype = bytes(2) + packed[:2] + bytes(4), "float32"
    number: float = struct.unpack(_FLOATS[dtype], packed)[0]
    return number


def bfloat16_bits(value: float) -> int:
    """Round a number to bfloat16, to nearest even, and give its 16 bits."""
    if math.isnan(value):
        return int.from_bytes(struct.pack(">d", value)[:1], "big") << 8 & 0x8000 | 0x7FC0
    try:
        near = struct.pack("<f", value)
    except OverflowError:
        near = struct.pack("<f", math.copysign(math.inf, value))
    (bits,) = struct.unpack("<I", near)
    (back,) = struct.unpack("<f", near)
    if back != value:
        # Cut towards zero and stick what is lost to the last bit, so that rounding again is right.
        bits = bits - (abs(back) > abs(value)) | 1
    return int(bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _packed(number: float, dtype: str) -> bytes:
    if dtype == "bfloat16":
        return bfloat16_bits(number).to_bytes(8, "little")
    return struct.pack(_FLOATS[dtype], number)
