"""Conversions between dtypes.

Floats to integers truncate, saturate outside of the range and give 0 for NaN; integers to narrower
ones keep the low bits, as numpy does; anything to bool asks whether it differs from 0. bfloat16
goes through float32, whose upper half it is, by integer arithmetic alone.
"""

from __future__ import annotations

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.types import constant, mangled, value_type


def convert(code: Code, value: str, source: DType, to: DType, wide_halves: bool) -> str:
    """Write a conversion; `wide_halves` tells that the target rounds double to half at once."""
    if source == to:
        return value
    if source.is_bfloat:
        single = DType("float", 32, source.lanes)
        return convert(code, _widen_bfloat(code, value, source), single, to, wide_halves)
    if to.is_bool:
        return _truth(code, value, source)
    if to.is_bfloat:
        return _to_bfloat(code, value, source, to)
    if source.is_float and to.is_float:
        return _between_floats(code, value, source, to, wide_halves)
    if source.is_float:
        return _float_to_int(code, value, source, to)
    if to.is_float:
        return _int_to_float(code, value, source, to)
    if source.bits == to.bits:
        return value
    if source.bits > to.bits:
        word = "trunc"
    else:
        word = "sext" if source.kind == "int" else "zext"
    return _plain(code, word, value, source, to)


def _plain(code: Code, word: str, value: str, source: DType, to: DType) -> str:
    return code.value(f"{word} {value_type(source)} {value} to {value_type(to)}")


def _truth(code: Code, value: str, source: DType) -> str:
    compare = "fcmp une" if source.is_float else "icmp ne"
    return code.value(f"{compare} {value_type(source)} {value}, {constant(0, source)}")


def _widen_bfloat(code: Code, value: str, source: DType) -> str:
    bits, single = DType("int", 32, source.lanes), DType("float", 32, source.lanes)
    low = _plain(code, "zext", value, source, bits)
    word = code.value(f"shl {value_type(bits)} {low}, {constant(16, bits)}")
    return _plain(code, "bitcast", word, bits, single)


def _to_bfloat(code: Code, value: str, source: DType, to: DType) -> str:
    """Round to nearest even: the upper half of a float32, plus one if the lower half says so."""
    single, bits = DType("float", 32, to.lanes), DType("int", 32, to.lanes)
    if source.is_float and source.bits == 64:
        value = _round_to_odd(code, value, source)
    else:
        value = convert(code, value, source, single, False)
    kind = value_type(bits)
    word = _plain(code, "bitcast", value, single, bits)
    upper = code.value(f"lshr {kind} {word}, {constant(16, bits)}")
    odd = code.value(f"and {kind} {upper}, {constant(1, bits)}")
    half = code.value(f"add {kind} {odd}, {constant(0x7FFF, bits)}")
    raised = code.value(f"add {kind} {word}, {half}")
    rounded = code.value(f"lshr {kind} {raised}, {constant(16, bits)}")
    quiet = code.value(f"or {kind} {upper}, {constant(0x40, bits)}")
    is_nan = code.value(f"fcmp uno {value_type(single)} {value}, {value}")
    flags = value_type(DType("bool", 1, to.lanes))
    chosen = code.value(f"select {flags} {is_nan}, {kind} {quiet}, {kind} {rounded}")
    return _plain(code, "trunc", chosen, bits, to)


def _between_floats(code: Code, value: str, source: DType, to: DType, wide_halves: bool) -> str:
    single = DType("float", 32, to.lanes)
    if source.bits == 16 and to.bits == 64:
        return _plain(code, "fpext", _plain(code, "fpext", value, source, single), single, to)
    if source.bits == 64 and to.bits == 16 and not wide_halves:
        return _plain(code, "fptrunc", _round_to_odd(code, value, source), single, to)
    return _plain(code, "fpext" if source.bits < to.bits else "fptrunc", value, source, to)


def _round_to_odd(code: Code, value: str, source: DType) -> str:
    """Round double to single so that a second rounding (to half) is right.

    Inexact results are cut towards zero and get an odd last bit (Boldo and Melquiond, 2008).
    """
    single, bits = DType("float", 32, source.lanes), DType("int", 32, source.lanes)
    near = _plain(code, "fptrunc", value, source, single)
    back = _plain(code, "fpext", near, single, source)
    kind = value_type(source)
    inexact = code.value(f"fcmp one {kind} {back}, {value}")
    sizes = [code.intrinsic("llvm.fabs", source, x) for x in (back, value)]
    too_far = code.value(f"fcmp ogt {kind} {sizes[0]}, {sizes[1]}")
    flag = DType("bool", 1, source.lanes)
    word = code.value(f"bitcast {value_type(single)} {near} to {value_type(bits)}")
    less = _plain(code, "zext", too_far, flag, bits)
    cut = code.value(f"sub {value_type(bits)} {word}, {less}")
    sticky = _plain(code, "zext", inexact, flag, bits)
    odd = code.value(f"or {value_type(bits)} {cut}, {sticky}")
    return code.value(f"bitcast {value_type(bits)} {odd} to {value_type(single)}")


def _float_to_int(code: Code, value: str, source: DType, to: DType) -> str:
    if source.bits == 16:
        single = DType("float", 32, source.lanes)
        value, source = _plain(code, "fpext", value, source, single), single
    name = "llvm.fptosi.sat" if to.kind == "int" else "llvm.fptoui.sat"
    full = code.module.declare(
        f"{name}.{mangled(to)}.{mangled(source)}", value_type(to), (value_type(source),)
    )
    return code.value(f"call {value_type(to)} @{full}({value_type(source)} {value})")


def _int_to_float(code: Code, value: str, source: DType, to: DType) -> str:
    word = "sitofp" if source.kind == "int" else "uitofp"
    if to.bits > 16:
        return _plain(code, word, value, source, to)
    single = DType("float", 32, to.lanes)  # numpy goes through float32 as well
    return _plain(code, "fptrunc", _plain(code, word, value, source, single), single, to)
