"""How dtypes and constants are written in LLVM's language.

A truth value is one bit in a register and one byte (0 or 1) in memory; all else is alike in both.
A bfloat16 is an integer of its bits: where a target lacks the type, LLVM would call helpers for it
that boards lack.
"""

from __future__ import annotations

import math
import struct

from farbench_compiler.ir.dtypes import DType
from farbench_rpc.manifest.slots import bfloat16_bits

_SCALARS: dict[tuple[str, int], str] = {
    ("float", 16): "half",
    ("float", 32): "float",
    ("float", 64): "double",
    ("bool", 1): "i1",
}


def value_type(of: DType) -> str:
    """Give the type of a value in a register."""
    scalar = _SCALARS.get((of.kind, of.bits), f"i{of.bits}")
    return scalar if of.lanes == 1 else f"<{of.lanes} x {scalar}>"


def memory_type(of: DType) -> str:
    """Give the type of a value in memory."""
    if not of.is_bool:
        return value_type(of)
    return "i8" if of.lanes == 1 else f"<{of.lanes} x i8>"


def mangled(of: DType) -> str:
    """Give the suffix that an overloaded intrinsic has for a type (`v8f32`)."""
    scalar = f"f{of.bits}" if of.kind == "float" else f"i{of.bits}"
    return scalar if of.lanes == 1 else f"v{of.lanes}{scalar}"


def constant(value: float, of: DType) -> str:
    """Write a constant of a dtype; a vector of copies where it has lanes."""
    text = _scalar_constant(value, of.scalar)
    return text if of.lanes == 1 else f"splat ({value_type(of.scalar)} {text})"


def _scalar_constant(value: float, of: DType) -> str:
    if of.is_bool:
        return "true" if value else "false"
    if not of.is_float:
        return str(int(value))
    if of.is_bfloat:
        return str(0x7FC0 if math.isnan(value) else bfloat16_bits(value))
    if of.bits == 16:
        return f"0xH{struct.unpack('<H', _half(value))[0]:04X}"
    if of.bits == 32:  # LLVM writes a float as the double that equals it
        value = struct.unpack("<f", _single(value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _half(value: float) -> bytes:
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", float("inf") if value > 0 else float("-inf"))


def _single(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
