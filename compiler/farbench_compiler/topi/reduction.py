"""Reductions of one tensor over some of its dimensions, or all of them.

`axis` is an integer, several, or None for all; negative ones count from the last dimension.
`keepdims` leaves the reduced dimensions with size 1. Without reduced dimensions the elements stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, cast, compare
from farbench_compiler.te import IterVar, Tensor
from farbench_compiler.te.reduction import Reducer
from farbench_compiler.topi.arguments import axis_of, check_same, known, refusal
from farbench_compiler.topi.tag import COMM_REDUCE, COMM_REDUCE_IDX, ELEMWISE

Axis = int | Sequence[int] | None


def _dimensions(x: Tensor, axis: Axis, name: str) -> tuple[int, ...]:
    given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    found = tuple(sorted(axis_of(name, x, a) for a in given))
    if len(set(found)) < len(found):
        raise refusal(name, f"an axis of {tuple(given)} occurs twice; name each once")
    return found


def _reduce(
    x: Tensor, axis: Axis, keepdims: bool, reducer: Reducer | Callable[..., Expr], name: str
) -> Tensor:
    reduced = _dimensions(x, axis, name)
    if not reduced:
        return te.compute(x.shape, lambda *i: x(*i), name=name, tag=ELEMWISE)
    axes: dict[int, IterVar] = {d: te.reduce_axis((0, x.shape[d]), name=f"k{d}") for d in reduced}
    kept = [d for d in range(x.ndim) if d not in axes]
    one = te.const(1, "int64")
    shape = [one if d in axes else x.shape[d] for d in range(x.ndim) if keepdims or d not in axes]

    def body(*i: Expr) -> Expr:
        outer = dict(enumerate(i) if keepdims else zip(kept, i, strict=True))
        at = [axes[d] if d in axes else outer[d] for d in range(x.ndim)]
        return reducer(x(*at), axis=tuple(axes.values()))

    return te.compute(shape, body, name=name, tag=COMM_REDUCE)


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
        raise refusal("mean", f"{x.name} is {x.dtype}, not a float; cast it first")
    count: Expr = te.const(1, "int64")
    for d in _dimensions(x, axis, "mean"):
        count = count * x.shape[d]
    total = sum(x, axis, keepdims)
    return te.compute(
        total.shape, lambda *i: total(*i) / cast(x.dtype, count), name="mean", tag=ELEMWISE
    )


def collapse_sum(data: Tensor, target_shape: Sequence[ExprLike]) -> Tensor:
    """Add up what broadcasting from `target_shape` to the shape of `data` repeats."""
    extra = data.ndim - len(target_shape)
    if extra < 0:
        raise refusal("collapse_sum", f"{data.name} has fewer dimensions than the target")
    axes = list(range(extra))
    for d, size in enumerate(target_shape, extra):
        if known(size) == 1:
            axes.append(d)
        else:
            check_same("collapse_sum", f"sizes of dimension {d}", data.shape[d], size)
    kept = _reduce(data, axes, True, te.sum, "collapse_sum")
    front = [te.const(0, "int64")] * extra
    return te.compute(
        kept.shape[extra:], lambda *i: kept(*front, *i), name="collapsed", tag=ELEMWISE
    )


def all(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Tell whether all truth values along `axis` hold."""
    return _reduce(_truth("all", x), axis, keepdims, te.all, "all")


def any(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Tell whether any truth value along `axis` holds."""
    return _reduce(_truth("any", x), axis, keepdims, te.any, "any")


def _truth(op: str, x: Tensor) -> Tensor:
    if not x.dtype.is_bool:
        raise refusal(op, f"{x.name} is {x.dtype}, not bool; compare it first")
    return x


def argmax(
    x: Tensor, axis: Axis = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """Give the place of the greatest element along `axis` (int32), the first of equal ones.

    Of several axes the place counts as if they were one. NaN is greater than all.
    """
    return _place(x, axis, keepdims, select_last_index, "argmax", largest=True)


def argmin(
    x: Tensor, axis: Axis = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """Give the place of the least element along `axis`, as `argmax` does; NaN is less than all."""
    return _place(x, axis, keepdims, select_last_index, "argmin", largest=False)


def _place(
    x: Tensor, axis: Axis, keepdims: bool, last: bool, name: str, *, largest: bool
) -> Tensor:
    reduced = _dimensions(x, axis, name)
    steps = {d: te.reduce_axis((0, x.shape[d]), name=f"k{d}") for d in reduced}
    kept = [d for d in range(x.ndim) if d not in steps]
    reducer = te.comm_reducer(
        partial(_better, largest=largest, last=last, floats=x.dtype.is_float),
        lambda place, value: (
            te.const(-1 if last else 2**31 - 1, place),
            te.min_value(value) if largest else te.max_value(value),
        ),
        name=name,
    )
    one = te.const(1, "int64")
    shape = [one if d in steps else x.shape[d] for d in range(x.ndim) if keepdims or d in kept]

    def body(*i: Expr) -> tuple[Expr, ...]:
        outer = dict(enumerate(i) if keepdims else zip(kept, i, strict=True))
        place: Expr = te.const(0, "int64")
        for d in reduced:
            place = place * x.shape[d] + steps[d]
        value = x(*(steps[d] if d in steps else outer[d] for d in range(x.ndim)))
        return reducer((cast("int32", place), value), axis=tuple(steps.values()))

    if not reduced:
        return te.compute(x.shape, lambda *_: te.const(0, "int32"), name=name, tag=ELEMWISE)
    places, _ = te.compute_all(shape, body, name=f"{name}_pair", tag=COMM_REDUCE_IDX)
    return te.compute(shape, lambda *i: places(*i), name=name, tag=ELEMWISE)


def _better(
    a: tuple[Expr, Expr], b: tuple[Expr, Expr], *, largest: bool, last: bool, floats: bool
) -> tuple[Expr, Expr]:
    """Choose the better of two values with their places; of equal ones the first, or the last."""
    (place_a, x), (place_b, y) = a, b
    wins = x > y if largest else x < y
    even = compare("eq", x, y)
    if floats:
        wins = te.any(wins, te.all(te.isnan(x), ~te.isnan(y)))
        even = te.any(even, te.all(te.isnan(x), te.isnan(y)))
    chosen = te.any(wins, te.all(even, place_a > place_b if last else place_a < place_b))
    return te.select(chosen, place_a, place_b), te.select(chosen, x, y)
