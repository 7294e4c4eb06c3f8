"""Padding of rows, so that strides are what `storage_align` asks for."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import gcd

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, binary, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.lower.nest import Nest
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.region import constant
from farbench_compiler.te.alignment import Alignment
from farbench_compiler.te.extern import ExternOp
from farbench_compiler.te.tensor import Tensor


def padded(nest: Nest, order: Sequence[int], shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Give the shape of a tensor's buffer, whose dimensions lie in `order`, with padded rows."""
    if not nest.stage.alignments:
        return tuple(shape)
    sizes = list(shape)
    stride: Expr = const(1)  # of the dimension that is padded
    for at in reversed(range(1, len(sizes))):
        outer = nest.op.axis[order[at - 1]]
        asked = nest.stage.alignments.get(outer)
        if asked is not None:
            sizes[at] = _rounded(nest, outer.name, sizes[at], stride, asked)
        stride = simplify(stride * sizes[at])
    return tuple(sizes)


def _rounded(nest: Nest, axis: str, size: Expr, stride: Expr, asked: Alignment) -> Expr:
    """Give the least size, `size` or more, that makes stride * size end at the offset."""
    inner = constant(stride)
    unit = asked.factor if inner is None else asked.factor // gcd(asked.factor, inner)
    steps = 0 if inner is None else inner
    rest = next((r for r in range(unit) if (r * steps - asked.offset) % asked.factor == 0), None)
    if rest is None:
        elements = "symbolic" if inner is None else inner
        raise ScheduleError(
            f"storage_align: axis {axis} of stage {nest.stage.name} cannot be {asked.offset} past "
            f"a multiple of {asked.factor}: it holds rows of {elements} elements; align the inner"
        )
    return simplify(size + binary("floormod", rest - size, unit))


def check_aligned(placement: Placement, given: Container[Tensor]) -> None:
    """Raise ScheduleError where the layout of an aligned tensor is not ours to choose."""
    for stage in placement.stages:
        if not stage.alignments:
            continue
        axis = next(iter(stage.alignments))
        what = f"storage_align: axis {axis.name} of stage {stage.name}"
        if any(t in given for t in stage.op.outputs):
            raise ScheduleError(f"{what} is of an argument, which lies as the caller has it")
        for reader in placement.readers(stage):
            if isinstance(placement.ops[reader], ExternOp):
                raise ScheduleError(
                    f"{what} is read by extern stage {reader.name}, which expects rows without "
                    "gaps; give that a copy by cache_read"
                )
