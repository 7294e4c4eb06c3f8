"""Dot products of neighbours: the instruction where the target has one, else plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.ir.dots import DOTS
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Call
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.convert import convert
from farbench_compiler.llvm.types import constant, value_type

# Which of LLVM's names multiplies what: (first kind, second kind) to sums of some lanes.
_X86_BY_LANES = {16: "512", 8: "256", 4: "128"}
_ARM_INT8 = {
    ("int", "int"): ("dotprod", "sdot"),
    ("uint", "uint"): ("dotprod", "udot"),
    ("uint", "int"): ("i8mm", "usdot"),
}


def call(code: Code, e: Call, args: list[str], features: frozenset[str]) -> str:
    """Write a dot product or an interleaving for a target that has the features."""
    if e.name == "interleave":
        return _interleave(code, args, e.args[0].dtype)
    width, sums = DOTS[e.name].width, e.dtype
    (_, a, b), (_, left, right) = args, [arg.dtype for arg in e.args]
    if left.lanes == width and sums.lanes > 1:
        a, left = _shared(code, a, left, sums.lanes), left.with_lanes(right.lanes)
    write = _int8 if e.name == "dot4" else _bfloat
    return write(code, (args[0], a, b), (sums, left, right), features)


def _shared(code: Code, value: str, of: DType, sums: int) -> str:
    """Repeat what one sum takes for all of them, as one 32-bit word that is loaded into all."""
    word = code.value(f"bitcast {value_type(of)} {value} to i32")
    kind = f"<{sums} x i32>"
    one = code.value(f"insertelement {kind} poison, i32 {word}, i64 0")
    mask = f"<{sums} x i32> zeroinitializer"
    all_of = code.value(f"shufflevector {kind} {one}, {kind} poison, {mask}")
    return code.value(f"bitcast {kind} {all_of} to {value_type(of.with_lanes(of.lanes * sums))}")


Values = tuple[str, str, str]
Types = tuple[DType, DType, DType]


def _int8(code: Code, values: Values, of: Types, features: frozenset[str]) -> str:
    sums, a, b = values
    total, left, right = of
    if (left.kind, right.kind) == ("int", "uint"):
        a, b, left, right = b, a, right, left
    name = _int8_name(left, right, total.lanes, features)
    if name is None:
        return _plain(code, (sums, a, b), (total, left, right))
    return _native(code, name, (sums, a, b), (value_type(total), value_type(left)))


def _int8_name(left: DType, right: DType, lanes: int, features: frozenset[str]) -> str | None:
    kinds = (left.kind, right.kind)
    if kinds in _ARM_INT8 and lanes == 4 and _ARM_INT8[kinds][0] in features:
        return f"llvm.aarch64.neon.{_ARM_INT8[kinds][1]}.v4i32.v16i8"
    if kinds != ("uint", "int") or lanes not in _X86_BY_LANES:
        return None
    whole = "avx512vnni" in features
    short = "avxvnni" in features or (whole and "avx512vl" in features)
    fits = whole if lanes == 16 else short
    return f"llvm.x86.avx512.vpdpbusd.{_X86_BY_LANES[lanes]}" if fits else None


def _bfloat(code: Code, values: Values, of: Types, features: frozenset[str]) -> str:
    lanes = of[0].lanes
    name = None
    if "avx512bf16" in features and (lanes == 16 or "avx512vl" in features):
        if lanes in _X86_BY_LANES:
            name = f"llvm.x86.avx512bf16.dpbf16ps.{_X86_BY_LANES[lanes]}"
    elif "bf16" in features and "neon" in features and lanes == 4:
        name = "llvm.aarch64.neon.bfdot.v4f32.v8bf16"
    if name is None:
        return _halves(code, values, of)
    kind, given = f"<{2 * lanes} x bfloat>", value_type(of[1])
    a, b = (code.value(f"bitcast {given} {x} to {kind}") for x in values[1:])
    return _native(code, name, (values[0], a, b), (value_type(of[0]), kind))


def _native(code: Code, name: str, values: Values, kinds: tuple[str, str]) -> str:
    total, operand = kinds
    code.module.declare(name, total, (total, operand, operand))
    sums, a, b = values
    return code.value(f"call {total} @{name}({total} {sums}, {operand} {a}, {operand} {b})")


def _plain(code: Code, values: Values, of: Types) -> str:
    """Multiply in int32 and add neighbours twice."""
    total, left, right = of
    wide = DType("int", 32, right.lanes)
    a = convert(code, values[1], left, wide, wide_halves=False)
    b = convert(code, values[2], right, wide, wide_halves=False)
    product = code.value(f"mul {value_type(wide)} {a}, {b}")
    lanes = right.lanes
    while lanes > total.lanes:
        product, lanes = _pairs(code, product, lanes), lanes // 2
    if total.lanes == 1:
        product = code.value(f"extractelement <1 x i32> {product}, i32 0")
    return code.value(f"add {value_type(total)} {values[0]}, {product}")


def _pairs(code: Code, value: str, lanes: int) -> str:
    kind = f"<{lanes} x i32>"
    even, odd = (_shuffle(code, value, kind, range(first, lanes, 2)) for first in (0, 1))
    return code.value(f"add <{lanes // 2} x i32> {even}, {odd}")


def _halves(code: Code, values: Values, of: Types) -> str:
    """Take two bfloat16 of a word apart: each is the upper half of a float32."""
    total, pairs = of[0], of[2]
    word = DType("int", 32, total.lanes)
    kind, single = value_type(word), value_type(total)
    words = [code.value(f"bitcast {value_type(pairs)} {x} to {kind}") for x in values[1:]]
    result = values[0]
    upper: tuple[Callable[[str], str], ...] = (
        lambda w: f"shl {kind} {w}, {constant(16, word)}",
        lambda w: f"and {kind} {w}, {constant(-65536, word)}",
    )
    for take in upper:
        a, b = (code.value(f"bitcast {kind} {code.value(take(w))} to {single}") for w in words)
        product = code.value(f"fmul contract {single} {a}, {b}")
        result = code.value(f"fadd contract {single} {result}, {product}")
    return result


def _interleave(code: Code, rows: list[str], of: DType) -> str:
    """Interleave two by two: rows 0 and 2, 1 and 3, then what comes of them."""
    if len(rows) == 1:
        return rows[0]
    if len(rows) % 2 or len(rows) & (len(rows) - 1):
        return _interleave_each(code, rows, of)
    half = len(rows) // 2
    wide = of.with_lanes(of.lanes * half)
    even, odd = _interleave(code, rows[::2], of), _interleave(code, rows[1::2], of)
    order = [lane + part * wide.lanes for lane in range(wide.lanes) for part in (0, 1)]
    mask = ", ".join(f"i32 {lane}" for lane in order)
    kind = value_type(wide)
    if wide.lanes == 1:
        even, odd = (
            code.value(f"insertelement <1 x {kind}> poison, {kind} {x}, i32 0") for x in (even, odd)
        )
        kind = f"<1 x {kind}>"
    return code.value(f"shufflevector {kind} {even}, {kind} {odd}, <{len(order)} x i32> <{mask}>")


def _interleave_each(code: Code, rows: list[str], of: DType) -> str:
    whole = value_type(of.with_lanes(of.lanes * len(rows)))
    scalar, result = value_type(of.scalar), "poison"
    for lane in range(of.lanes):
        for at, row in enumerate(rows):
            one = row
            if of.lanes > 1:
                one = code.value(f"extractelement {value_type(of)} {row}, i32 {lane}")
            place = lane * len(rows) + at
            result = code.value(f"insertelement {whole} {result}, {scalar} {one}, i32 {place}")
    return result


def _shuffle(code: Code, value: str, kind: str, order: range) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in order)
    return code.value(f"shufflevector {kind} {value}, {kind} poison, <{len(order)} x i32> <{mask}>")
