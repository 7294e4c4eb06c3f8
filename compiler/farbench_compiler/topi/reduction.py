"""Reductions of one tensor over some of its dimensions, or all of them.

`axis` is an integer, several, or None for all; negative ones count from the last dimension.
`keepdims` leaves the reduced dimensions with size 1. Without reduced dimensions the elements stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, cast
from farbench_compiler.te import IterVar, Tensor
from farbench_compiler.te.reduction import Reducer

Axis = int | Sequence[int] | None
TAG = "comm_reduce"


def _dimensions(x: Tensor, axis: Axis, name: str) -> tuple[int, ...]:
    given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    for a in given:
        if not -x.ndim <= a < x.ndim:
            raise ScheduleError(
                f"{name}: axis {a} is outside of the {x.ndim} dimensions of {x.name}"
            )
    found = tuple(sorted(a % x.ndim for a in given))
    if len(set(found)) < len(found):
        raise ScheduleError(f"{name}: an axis of {tuple(given)} occurs twice; name each once")
    return found


def _reduce(x: Tensor, axis: Axis, keepdims: bool, reducer: Reducer, name: str) -> Tensor:
    reduced = _dimensions(x, axis, name)
    if not reduced:
        return te.compute(x.shape, lambda *i: x(*i), name=name, tag="elemwise")
    axes: dict[int, IterVar] = {d: te.reduce_axis((0, x.shape[d]), name=f"k{d}") for d in reduced}
    kept = [d for d in range(x.ndim) if d not in axes]
    one = te.const(1, "int64")
    shape = [one if d in axes else x.shape[d] for d in range(x.ndim) if keepdims or d not in axes]

    def body(*i: Expr) -> Expr:
        outer = dict(enumerate(i) if keepdims else zip(kept, i, strict=True))
        at = [axes[d] if d in axes else outer[d] for d in range(x.ndim)]
        return reducer(x(*at), axis=tuple(axes.values()))

    return te.compute(shape, body, name=name, tag=TAG)


def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Add the elements along `axis`."""
    return _reduce(x, axis, keepdims, te.sum, "sum")


def prod(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Multiply the elements along `axis`."""
    return _reduce(x, axis, keepdims, te.prod, "prod")


def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Take the greatest of the elements along `axis`."""
    return _reduce(x, axis, keepdims, te.max, "max")


def min(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Take the least of the elements along `axis`."""
    return _reduce(x, axis, keepdims, te.min, "min")


def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Average the elements along `axis`, adding in the dtype of `x`, which must be a float."""
    if not x.dtype.is_float:
        raise ScheduleError(f"mean: {x.name} is {x.dtype}, not a float; cast it first")
    count: Expr = te.const(1, "int64")
    for d in _dimensions(x, axis, "mean"):
        count = count * x.shape[d]
    total = sum(x, axis, keepdims)
    return te.compute(
        total.shape, lambda *i: total(*i) / cast(x.dtype, count), name="mean", tag="elemwise"
    )
