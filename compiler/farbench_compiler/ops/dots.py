"""Dot products as declared intrinsics, and which one a target multiplies narrow numbers by.

A vector of sums takes in `width` neighbours of the reduction at once: four 8-bit integers or two
bfloat16. x86 multiplies unsigned by signed bytes, so that signed ones are moved by 128 and what
that adds is taken away again: 128 times the sum of the other operand's column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from farbench_compiler import te, tir
from farbench_compiler.ir.dtypes import FLOAT32, INT32, DType, dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.target import Target

_BYTE_DOTS = ("avx512vnni", "avxvnni", "dotprod")
_BFLOAT_DOTS = ("avx512bf16", "bf16")


@dataclass(frozen=True, slots=True)
class Dot:
    """How a target multiplies: the operands' dtypes as it takes them, sums, and the move.

    `moved` is what `left` holds more than the operand that was given.
    """

    width: int
    left: DType
    right: DType
    sums: DType
    lanes: int
    moved: int = 0

    def taken(self, value: Expr) -> Expr:
        """Give an element of the left operand as the instruction takes it."""
        if not self.moved:
            return value
        # By 128 up or down: the top bit flips, whichever way the byte is read.
        return (value.astype("uint8") ^ te.const(128, "uint8")).astype(self.left)


def dot_for(target: Target, left: DType) -> Dot | None:
    """Choose the dot product for a left operand of int8 or uint8 (the right one is int8), or bf16.

    None where the target has none.
    """
    if left.is_bfloat:
        if not any(target.has(feature) for feature in _BFLOAT_DOTS):
            return None
        return Dot(2, left, left, FLOAT32, lanes_of(target, FLOAT32))
    if left.bits != 8 or not any(target.has(feature) for feature in _BYTE_DOTS):
        return None
    lanes = lanes_of(target, INT32)
    if target.arch == "x86_64":
        if lanes == 16 and not target.has("avx512vnni"):
            lanes = 8
        signed, plain = dtype("uint8"), left.kind == "uint"
        return Dot(4, signed, dtype("int8"), INT32, lanes, 0 if plain else 128)
    plain = left.kind == "int" or target.has("i8mm")
    return Dot(
        4, left if plain else dtype("int8"), dtype("int8"), INT32, lanes, 0 if plain else -128
    )


@lru_cache(maxsize=32)
def dot_intrin(dot: Dot) -> te.TensorIntrin:
    """Declare sums[lanes] += a[width] * b[lanes, width]."""
    a = te.placeholder((dot.width,), dot.left, name="a")
    b = te.placeholder((dot.lanes, dot.width), dot.right, name="b")
    step = te.reduce_axis((0, dot.width), name="step")
    sums = te.compute(
        (dot.lanes,),
        lambda lane: te.sum(a[step].astype(dot.sums) * b[lane, step].astype(dot.sums), axis=step),
        name="sums",
    )
    multiply = tir.dot4 if dot.sums == INT32 else tir.dot2

    def body(ins: te.Buffers, outs: te.Buffers) -> tuple[tir.Stmt, tir.Stmt, tir.Stmt]:
        left = ins[0].vload(0, dot.left.with_lanes(dot.width))
        right = ins[1].vload((0, 0), dot.right.with_lanes(dot.lanes * dot.width))
        zero = tir.broadcast(te.const(0, dot.sums), dot.lanes)
        before = outs[0].vload(0, dot.sums.with_lanes(dot.lanes))
        return (
            outs[0].vstore(0, multiply(zero, left, right)),
            outs[0].vstore(0, zero),
            outs[0].vstore(0, multiply(before, left, right)),
        )

    return te.decl_tensor_intrin(sums.op, body, name=f"dot{dot.width}x{dot.lanes}")


@lru_cache(maxsize=32)
def interleave_intrin(width: int, lanes: int, of: DType) -> te.TensorIntrin:
    """Declare out[lane, step] = rows[step, lane]: what lies in `width` rows side by side."""
    rows = te.placeholder((width, lanes), of, name="rows")
    out = te.compute((lanes, width), lambda lane, step: rows[step, lane], name="out")

    def body(ins: te.Buffers, outs: te.Buffers) -> tir.Stmt:
        given = [ins[0].vload((step, 0), of.with_lanes(lanes)) for step in range(width)]
        return outs[0].vstore((0, 0), tir.interleave(*given))

    return te.decl_tensor_intrin(out.op, body, name=f"interleave{width}x{lanes}")


def plain_dot(target: Target, left: DType) -> Dot:
    """Give the dot product that a target without one computes by plain arithmetic."""
    if left.is_bfloat:
        return Dot(2, left, left, FLOAT32, lanes_of(target, FLOAT32))
    return Dot(4, left, dtype("int8"), INT32, lanes_of(target, INT32))
