"""Functions that pick elements: by indices that are data, by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, binary, compare, const
from farbench_compiler.te import Tensor
from farbench_compiler.te.axis import as_index
from farbench_compiler.te.broadcast import broadcast_shapes, combine, read_at
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same, known, refusal
from farbench_compiler.topi.shaping import apart, count_of
from farbench_compiler.topi.tag import INJECTIVE

Mode = Literal["clip", "wrap", "fast"]


def take(
    x: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: Mode = "clip"
) -> Tensor:
    """Take the elements, or the parts along `axis`, that `indices` name.

    The first `batch_dims` dimensions of both are the same ones. Of indices outside, `clip` takes
    the nearest end, `wrap` counts round; `fast` trusts them.
    """
    check_indices("take", indices)
    count = indices.ndim
    if axis is None:

        def flat(*i: Expr) -> Expr:
            place = _within(indices(*i), count_of(x.shape), mode)
            return x(*apart(place, x.shape))

        return te.compute(indices.shape, flat, name="take", tag=INJECTIVE)
    along = axis_of("take", x, axis)
    if not 0 <= batch_dims <= min(along, indices.ndim):
        raise refusal("take", f"batch_dims is {batch_dims}; give 0 to {min(along, indices.ndim)}")
    for d in range(batch_dims):
        check_same("take", f"sizes of dimension {d}", x.shape[d], indices.shape[d])
    end = along + count - batch_dims

    def body(*i: Expr) -> Expr:
        place = _within(indices(*i[:batch_dims], *i[along:end]), x.shape[along], mode)
        return x(*i[:along], place, *i[end:])

    shape = [*x.shape[:along], *indices.shape[batch_dims:], *x.shape[along + 1 :]]
    return te.compute(shape, body, name="take", tag=INJECTIVE)


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

    return te.compute(indices.shape, body, name="gather", tag=INJECTIVE)


def gather_nd(a: Tensor, indices: Tensor) -> Tensor:
    """Take the parts that `indices` [M, Y...] name by places in the first M dimensions of `a`.

    Indices outside take the nearest end.
    """
    check_indices("gather_nd", indices)
    count = known(indices.shape[0]) if indices.ndim else None
    if count is None or not 1 <= count <= a.ndim:
        raise refusal(
            "gather_nd", f"the first dimension of {indices.name} is {count}; give the number of"
            f" leading dimensions of {a.name}, 1 to {a.ndim}",
        )  # fmt: skip
    inner = indices.ndim - 1

    def body(*i: Expr) -> Expr:
        led = (_within(indices(m, *i[:inner]), a.shape[m], "clip") for m in range(count))
        return a(*led, *i[inner:])

    shape = [*indices.shape[1:], *a.shape[count:]]
    return te.compute(shape, body, name="gather_nd", tag=INJECTIVE)


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """Take the parts that tensors of places name, one for each leading dimension, broadcast.

    Indices outside take the nearest end.
    """
    if not 1 <= len(indices) <= data.ndim:
        raise refusal("adv_index", f"{len(indices)} indices for {data.ndim} dimensions")
    for index in indices:
        check_indices("adv_index", index)
    common = broadcast_shapes("topi.adv_index", [index.shape for index in indices])
    inner, count = len(common), len(indices)

    def body(*i: Expr) -> Expr:
        led = (_within(read_at(x, i[:inner]), data.shape[d], "clip")
               for d, x in enumerate(indices))  # fmt: skip
        return data(*led, *i[inner:])

    return te.compute([*common, *data.shape[count:]], body, name="adv_index", tag=INJECTIVE)


def unravel_index(indices: Tensor, shape: Tensor | Sequence[ExprLike]) -> Tensor:
    """Give the place in a tensor of a shape, one row a dimension, of each place in memory order."""
    check_indices("unravel_index", indices)
    if isinstance(shape, Tensor):
        check_rank("unravel_index", shape, 1)
        count = known(shape.shape[0])
        if count is None:
            raise refusal("unravel_index", f"the length of {shape.name} must be constant")
        sizes = [shape(d).astype("int64") for d in range(count)]
    else:
        sizes = [as_index(size) for size in shape]

    def body(d: Expr, *i: Expr) -> Expr:
        places = apart(indices(*i).astype("int64"), sizes)
        found: Expr = const(0)
        for n, place in enumerate(places):
            found = te.select(compare("eq", d, n), place, found)
        return found.astype(indices.dtype)

    return te.compute((len(sizes), *indices.shape), body, name="unravel_index", tag=INJECTIVE)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Take an element of `x` where the condition is not 0, else one of `y`; shapes broadcast."""

    def choose(c: Expr, a: Expr, b: Expr) -> Expr:
        return te.select(c, a, b)

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
    return te.compute(shape, body, name="one_hot", tag=INJECTIVE)


def check_indices(op: str, indices: Tensor) -> None:
    """Refuse indices that are no integers."""
    if not indices.dtype.is_int:
        raise refusal(op, f"{indices.name} is {indices.dtype}; indices are integers")


def _within(index: Expr, size: Expr, mode: Mode) -> Expr:
    """Bring an index into its dimension; `fast` believes that it is."""
    wide = index.astype("int64")
    if mode == "clip":
        return binary("max", const(0), binary("min", wide, size - 1))
    return binary("floormod", wide, size) if mode == "wrap" else wide
