"""Functions that pick elements: by slices, by indices that are data, by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, binary, compare, const
from farbench_compiler.te import Tensor
from farbench_compiler.te.broadcast import combine
from farbench_compiler.topi.arguments import axis_of, check_rank, known, refusal
from farbench_compiler.topi.shaping import apart, count_of

TAG = "injective"
Mode = Literal["clip", "wrap", "fast"]


def strided_slice(
    x: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    """Take begin, begin + stride, ... below end along each of the first axes, as numpy's slices.

    The sizes of these axes are numbers; negative places count from the end.
    """
    steps = [1] * len(begin) if strides is None else [*strides, *([1] * len(begin))][: len(begin)]
    if len(begin) != len(end) or len(begin) > x.ndim or 0 in steps:
        raise refusal("strided_slice", f"begin, end and strides must fit the {x.ndim} dimensions")
    starts, shape = [], list(x.shape)
    for d, (first, last, step) in enumerate(zip(begin, end, steps, strict=True)):
        size = known(x.shape[d])
        if size is None:
            raise refusal("strided_slice", f"dimension {d} of {x.name} has no constant size")
        places = range(*slice(first, last, step).indices(size))
        starts.append(places.start)
        shape[d] = const(len(places))

    def body(*i: Expr) -> Expr:
        return x(*(
            v * steps[d] + starts[d] if d < len(steps) else v for d, v in enumerate(i)
        ))  # fmt: skip

    return te.compute(shape, body, name="strided_slice", tag=TAG)


def take(
    x: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: Mode = "clip"
) -> Tensor:
    """Take the elements, or the parts along `axis`, that `indices` name.

    Of indices outside, `clip` takes the nearest end, `wrap` counts round; `fast` trusts them.
    """
    if batch_dims:
        raise refusal("take", f"batch_dims is {batch_dims}, only 0 is here; use gather")
    check_indices("take", indices)
    count = indices.ndim
    if axis is None:

        def flat(*i: Expr) -> Expr:
            place = _within(indices(*i), count_of(x.shape), mode)
            return x(*apart(place, x.shape))

        return te.compute(indices.shape, flat, name="take", tag=TAG)
    along = axis_of("take", x, axis)

    def body(*i: Expr) -> Expr:
        place = _within(indices(*i[along : along + count]), x.shape[along], mode)
        return x(*i[:along], place, *i[along + count :])

    shape = [*x.shape[:along], *indices.shape, *x.shape[along + 1 :]]
    return te.compute(shape, body, name="take", tag=TAG)


def gather(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Replace the index along `axis` by the one that `indices` has at the same place.

    Indices outside take the nearest end.
    """
    along = axis_of("gather", x, axis)
    check_indices("gather", indices)
    check_rank("gather", indices, x.ndim)

    def body(*i: Expr) -> Expr:
        place = _within(indices(*i), x.shape[along], "clip")
        return x(*i[:along], place, *i[along + 1 :])

    return te.compute(indices.shape, body, name="gather", tag=TAG)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Take an element of `x` where the condition is not 0, else one of `y`; shapes broadcast."""

    def choose(c: Expr, a: Expr, b: Expr) -> Expr:
        holds = c if c.dtype.is_bool else compare("ne", c, te.const(0, c.dtype))
        return te.select(holds, a, b)

    return combine(choose, condition, x, y, name="where")


def one_hot(
    indices: Tensor, on_value: float, off_value: float, depth: int, axis: int, dtype: str
) -> Tensor:
    """Give a new axis of `depth` elements: `on_value` where an index says, else `off_value`."""
    check_indices("one_hot", indices)
    if not -indices.ndim - 1 <= axis <= indices.ndim:
        raise refusal("one_hot", f"axis {axis} is outside of the {indices.ndim + 1} dimensions")
    at = axis % (indices.ndim + 1)
    on, off = te.const(on_value, dtype), te.const(off_value, dtype)

    def body(*i: Expr) -> Expr:
        index = indices(*i[:at], *i[at + 1 :])
        return te.select(compare("eq", index.astype("int64"), i[at]), on, off)

    shape = [*indices.shape[:at], const(depth), *indices.shape[at:]]
    return te.compute(shape, body, name="one_hot", tag=TAG)


def check_indices(op: str, indices: Tensor) -> None:
    """Refuse indices that are no integers."""
    if not indices.dtype.is_int:
        raise refusal(op, f"{indices.name} is {indices.dtype}; indices are integers")


def _within(index: Expr, size: Expr, mode: str) -> Expr:
    """Bring an index into its dimension."""
    wide = index.astype("int64")
    match mode:
        case "clip":
            return binary("max", const(0), binary("min", wide, size - 1))
        case "wrap":
            return binary("floormod", wide, size)
        case "fast":
            return wide
    raise refusal("take", f"mode {mode!r} is unknown; there are clip, wrap and fast")
