"""Activations: functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable

from farbench_compiler import te
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.elementwise import schedule_row
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_UNROLL = 2


def gelu(
    n: int, dtype: str = "float32", target: str | Target = "native", *, parallel: bool = False
) -> tuple[Schedule, list[Tensor]]:
    """Give x / 2 * (1 + erf(x / sqrt(2))) of n elements; arguments A and C, both [n]."""
    return _each(n, dtype, target, parallel, _gelu)


def sigmoid(
    n: int, dtype: str = "float32", target: str | Target = "native", *, parallel: bool = False
) -> tuple[Schedule, list[Tensor]]:
    """Give 1 / (1 + exp(-x)) of n elements; arguments A and C, both [n]."""
    return _each(n, dtype, target, parallel, te.sigmoid)


def _gelu(x: Expr) -> Expr:
    half: Expr = x * 0.5
    return half + half * te.erf(x * math.sqrt(0.5))


def _each(
    n: int, dtype: str, target: str | Target, parallel: bool, function: Callable[[Expr], Expr]
) -> tuple[Schedule, list[Tensor]]:
    wide = sum_dtype(dtypes.dtype(dtype))
    lanes = lanes_of(Target.parse(target), wide) * _UNROLL
    a = te.placeholder((n,), dtype, name="A")
    c = te.compute((n,), lambda i: function(a[i].astype(wide)).astype(dtype), name="C")
    return schedule_row(c, n, lanes, parallel=parallel), [a, c]
