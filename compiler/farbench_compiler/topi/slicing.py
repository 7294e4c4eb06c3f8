"""Slices: regular parts of tensors, taken out or replaced, and windows that move along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, binary, compare, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.te import Tensor
from farbench_compiler.te.axis import as_index
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same, known, refusal
from farbench_compiler.topi.tag import INJECTIVE

Places = Sequence[ExprLike | None]


@dataclass(frozen=True, slots=True)
class _Span:
    """The places start, start + step, ... along one dimension."""

    start: Expr
    count: Expr
    step: int


def strided_slice(
    a: Tensor,
    begin: Places,
    end: Places,
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:
    """Take begin, begin + stride, ... before end along each of `axes` (the first ones), as slices.

    Negative numbers count from the end, None is the end itself. In slice_mode `size` `end` holds
    numbers of elements, -1 for all that are left, and strides are 1.
    """
    spans = _spans("strided_slice", a, begin, end, strides, axes, slice_mode)
    shape = [s.count if s is not None else n for s, n in zip(spans, a.shape, strict=True)]

    def element(*i: Expr) -> Expr:
        return a(*(
            v if s is None else v * s.step + s.start for v, s in zip(i, spans, strict=True)
        ))  # fmt: skip

    return te.compute(shape, element, name="strided_slice", tag=INJECTIVE)


def strided_set(
    a: Tensor, v: Tensor, begin: Places, end: Places, strides: Sequence[int] | None = None
) -> Tensor:
    """Give `a` with `v` in the place of the slice that `strided_slice` takes."""
    op = "strided_set"
    spans = _spans(op, a, begin, end, strides, None, "end")
    check_rank(op, v, a.ndim)
    for d, (s, n) in enumerate(zip(spans, v.shape, strict=True)):
        check_same(op, f"sizes of dimension {d} of {v.name} and of the slice",
                   n, a.shape[d] if s is None else s.count)  # fmt: skip

    def element(*i: Expr) -> Expr:
        at, inside = list(i), []
        for d, s in enumerate(spans):
            if s is not None:
                # Places are counted from the slice's least one, so that divisions are of >= 0.
                gap = i[d] - s.start if s.step > 0 else s.start - i[d]
                by = const(abs(s.step))
                at[d] = te.floordiv(gap, by)
                inside += [gap >= 0, at[d] < s.count, compare("eq", te.floormod(gap, by), 0)]
        if not inside:
            return v(*at).astype(a.dtype)
        return te.if_then_else(te.all(*inside), v(*at).astype(a.dtype), a(*i))

    return te.compute(a.shape, element, name="strided_set", tag=INJECTIVE)


def sliding_window(
    data: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """Give the windows that move along the dimensions from `axis` on, which come last."""
    op = "sliding_window"
    first, count = axis_of(op, data, axis), len(window_shape)
    if len(strides) != count or first + count != data.ndim or min(strides, default=1) < 1:
        raise refusal(
            op, f"{count} window sizes and {len(strides)} strides for {data.ndim - first}"
            " dimensions; give one of each, strides from 1 on",
        )  # fmt: skip
    steps = [
        simplify(te.floordiv(n - w, const(s)) + 1)
        for n, w, s in zip(data.shape[first:], window_shape, strides, strict=True)
    ]
    if any(n is not None and n < 1 for n in map(known, steps)):
        raise refusal(op, f"a window of {list(window_shape)} does not fit into {data.name}")

    def element(*i: Expr) -> Expr:
        moved = i[first : first + count]
        inner = i[first + count :]
        return data(*i[:first], *(m * s + w for m, s, w in zip(moved, strides, inner, strict=True)))

    shape: list[ExprLike] = [*data.shape[:first], *steps, *window_shape]
    return te.compute(shape, element, name="sliding_window", tag=INJECTIVE)


def _spans(
    op: str,
    a: Tensor,
    begin: Places,
    end: Places,
    strides: Sequence[int] | None,
    axes: Sequence[int] | None,
    mode: str,
) -> list[_Span | None]:
    """Give the span of each dimension of `a` that is cut, None for the others."""
    if mode not in ("end", "size"):
        raise refusal(op, f"slice_mode {mode!r} is unknown; give end or size")
    dims = range(len(begin)) if axes is None else [axis_of(op, a, axis) for axis in axes]
    steps = [1] * len(begin) if strides is None or mode == "size" else list(strides)
    steps += [1] * (len(begin) - len(steps))
    if not len(begin) == len(end) == len(dims) == len(steps) or len(begin) > a.ndim or 0 in steps:
        raise refusal(
            op, f"{len(begin)} begin, {len(end)} end, strides {steps} for the {a.ndim} dimensions"
            f" of {a.name}; give one of each for an axis, strides that are not 0",
        )  # fmt: skip
    spans: list[_Span | None] = [None] * a.ndim
    for d, first, last, step in zip(dims, begin, end, steps, strict=True):
        if mode == "size":
            last = _end_of(first, last)
        spans[d] = _span(a.shape[d], first, last, step)
    return spans


def _end_of(first: ExprLike | None, count: ExprLike | None) -> ExprLike | None:
    """Give the end of `count` elements from `first` on; None is the end of the dimension."""
    if count is None or known(count) == -1:
        return None
    end = count if first is None else first + count
    begin, behind = 0 if first is None else known(first), known(end)
    return None if begin is not None and begin < 0 and behind is not None and behind >= 0 else end


def _span(size: Expr, first: ExprLike | None, last: ExprLike | None, step: int) -> _Span:
    begins, stops = (None if v is None else known(v) for v in (first, last))
    constant = (begins is None) == (first is None) and (stops is None) == (last is None)
    length = known(size)
    if length is not None and constant:
        places = range(*slice(begins, stops, step).indices(length))
        return _Span(const(places.start), const(len(places)), step)
    ends = (const(0), size) if step > 0 else (size - 1, const(-1))
    begin, end = (
        ends[k] if v is None else _clipped(v, size, step) for k, v in enumerate((first, last))
    )
    gap = end - begin if step > 0 else begin - end
    count = te.floordiv(gap + (abs(step) - 1), const(abs(step)))
    return _Span(begin, simplify(binary("max", count, const(0))), step)


def _clipped(place: ExprLike, size: Expr, step: int) -> Expr:
    """Bring a place into a dimension of symbolic size, the end or -1 included."""
    low, high = (const(0), size) if step > 0 else (const(-1), size - 1)
    number = known(place)
    if number is not None and number < 0:
        return binary("max", size + number, low)
    return const(0) if number == 0 and step > 0 else binary("min", as_index(place), high)
