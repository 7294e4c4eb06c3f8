"""Functions that change shapes alone: the elements stay in their row-major order, or repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, IntImm, binary, compare, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.structural import same
from farbench_compiler.te import Tensor
from farbench_compiler.te.axis import as_index
from farbench_compiler.te.broadcast import read_at
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same, known, refusal
from farbench_compiler.topi.tag import BROADCAST, INJECTIVE


def squeeze(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Leave dimensions of size 1 out: those of `axis`, or all."""
    if axis is None:
        gone = {d for d in range(x.ndim) if known(x.shape[d]) == 1}
    else:
        gone = {axis_of("squeeze", x, a) for a in ([axis] if isinstance(axis, int) else axis)}
    for d in gone:
        if known(x.shape[d]) not in (1, None):
            raise refusal("squeeze", f"dimension {d} of {x.name} is {known(x.shape[d])}, not 1")
    kept = [d for d in range(x.ndim) if d not in gone]

    def body(*i: Expr) -> Expr:
        at = dict(zip(kept, i, strict=True))
        return x(*(at.get(d, const(0)) for d in range(x.ndim)))

    return te.compute([x.shape[d] for d in kept], body, name="squeeze", tag=INJECTIVE)


def reshape(x: Tensor, newshape: Sequence[ExprLike]) -> Tensor:
    """Give the elements another shape; a -1 in it stands for what is left."""
    sizes = [as_index(size) for size in newshape]
    count = count_of(x.shape)
    left = [d for d, size in enumerate(sizes) if known(size) == -1]
    if len(left) > 1:
        raise refusal("reshape", f"{len(left)} dimensions are -1; leave one open at most")
    if left:
        rest = count_of([size for d, size in enumerate(sizes) if d not in left])
        if known(rest) == 0:
            raise refusal("reshape", "a dimension is -1 beside one of size 0; give its size")
        sizes[left[0]] = simplify(te.floordiv(count, rest))
    check_same("reshape", f"the elements of {x.name} and of the new shape", count, count_of(sizes))

    groups = _groups(x.shape, sizes)

    def body(*i: Expr) -> Expr:
        at: list[Expr] = []
        for old, new in groups:
            at += apart(place_of(i[new], sizes[new]), x.shape[old])
        return x(*at)

    return te.compute(sizes, body, name="reshape", tag=INJECTIVE)


def _groups(old: Sequence[Expr], new: Sequence[Expr]) -> list[tuple[slice, slice]]:
    """Part two shapes, from the end, into neighbours of as many elements: the smallest such parts.

    An index into one dimension then stays as it is where that dimension does.
    """
    found: list[tuple[slice, slice]] = []
    ends = [len(old), len(new)]
    while min(ends) > 0:
        begins = [end - 1 for end in ends]
        counts = [old[begins[0]], new[begins[1]]]
        while not same(*counts):
            numbers = [known(count) for count in counts]
            # Of what is not a number it is not known which one is less: all that is left is a part.
            side = 0 if None in numbers or numbers[0] < numbers[1] else 1  # type: ignore[operator]
            if None in numbers or begins[side] == 0 or 0 in numbers:
                begins = [0, 0]
                break
            begins[side] -= 1
            counts[side] = simplify(counts[side] * (old, new)[side][begins[side]])
        found.insert(0, (slice(begins[0], ends[0]), slice(begins[1], ends[1])))
        ends = begins
    if max(ends) > 0:
        found.insert(0, (slice(0, ends[0]), slice(0, ends[1])))
    return found


def count_of(shape: Sequence[Expr]) -> Expr:
    """Count the elements of a shape."""
    total: Expr = const(1)
    for size in shape:
        total = total * size
    return simplify(total)


def place_of(indices: Sequence[Expr], shape: Sequence[Expr]) -> Expr:
    """Give the place of an element among all, in their order."""
    place: Expr = const(0)
    for index, size in zip(indices, shape, strict=True):
        place = place * size + index
    return place


def apart(place: Expr, shape: Sequence[Expr]) -> list[Expr]:
    """Give the indices of the element at a place."""
    found: list[Expr] = []
    for d in reversed(range(len(shape))):
        found.insert(0, place if d == 0 else binary("floormod", place, shape[d]))
        place = binary("floordiv", place, shape[d])
    return found


def broadcast_to(x: Tensor, shape: Sequence[ExprLike]) -> Tensor:
    """Repeat dimensions of size 1, and the whole over new ones in front, to reach a shape."""
    sizes = [as_index(size) for size in shape]
    if len(sizes) < x.ndim:
        raise refusal("broadcast_to", f"{x.name} has {x.ndim} dimensions, the shape {len(sizes)}")
    new = len(sizes) - x.ndim
    for d in range(x.ndim):
        if known(x.shape[d]) != 1:
            check_same("broadcast_to", f"dimension {d} of {x.name} and the shape", x.shape[d],
                       sizes[new + d])  # fmt: skip
    return te.compute(sizes, lambda *i: read_at(x, i), name="broadcast_to", tag=BROADCAST)


def flip(x: Tensor, axis: int = 0) -> Tensor:
    """Turn the order of the elements along an axis round."""
    at = axis_of("flip", x, axis)

    def body(*i: Expr) -> Expr:
        return x(*(x.shape[d] - 1 - i[d] if d == at else i[d] for d in range(x.ndim)))

    return te.compute(x.shape, body, name="flip", tag=INJECTIVE)


def tile(x: Tensor, reps: Sequence[int]) -> Tensor:
    """Repeat the whole tensor along each axis, as numpy does."""
    counts = [1] * (x.ndim - len(reps)) + list(reps)
    sizes = [const(1)] * (len(counts) - x.ndim) + list(x.shape)
    new = len(counts) - x.ndim
    shape = [size * count for size, count in zip(sizes, counts, strict=True)]

    def body(*i: Expr) -> Expr:
        return x(*(binary("floormod", i[new + d], x.shape[d]) for d in range(x.ndim)))

    return te.compute(shape, body, name="tile", tag=INJECTIVE)


def repeat(x: Tensor, repeats: int, axis: int) -> Tensor:
    """Repeat each element along an axis."""
    at = axis_of("repeat", x, axis)
    if repeats < 1:
        raise refusal("repeat", f"cannot repeat {repeats} times; give at least 1")
    shape = [size * repeats if d == at else size for d, size in enumerate(x.shape)]

    def body(*i: Expr) -> Expr:
        return x(*(te.floordiv(v, repeats) if d == at else v for d, v in enumerate(i)))

    return te.compute(shape, body, name="repeat", tag=INJECTIVE)


def shape(x: Tensor, dtype: str = "int32") -> Tensor:
    """Give the sizes of the dimensions."""

    def body(i: Expr) -> Expr:
        found: Expr = const(0)
        for d, size in enumerate(x.shape):
            found = te.select(compare("eq", i, d), size, found)
        return found.astype(dtype)

    return te.compute((x.ndim,), body, name="shape", tag=INJECTIVE)


def ndarray_size(x: Tensor, dtype: str = "int32") -> Tensor:
    """Give the number of elements, without dimensions."""
    return te.compute(
        (), lambda: count_of(x.shape).astype(dtype), name="ndarray_size", tag=INJECTIVE
    )


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """Spread tensors of one dimension over a grid, one dimension each; `xy` swaps the first two."""
    if indexing not in ("ij", "xy"):
        raise refusal("meshgrid", f"indexing {indexing!r} is unknown; give ij or xy")
    for x in a_tuple:
        check_rank("meshgrid", x, 1)
    order = list(range(len(a_tuple)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes = [a_tuple[d].shape[0] for d in order]
    return [
        te.compute(sizes, lambda *i, x=x, d=d: x(i[order[d]]), name="meshgrid", tag=BROADCAST)
        for d, x in enumerate(a_tuple)
    ]


def arange(
    start: ExprLike, stop: ExprLike | None = None, step: ExprLike = 1, dtype: str = "float32"
) -> Tensor:
    """Give start, start + step, ... below stop (0, 1, ... below `start` without stop)."""
    first, last = (0, start) if stop is None else (start, stop)
    numbers = [v.value if isinstance(v, IntImm) else v for v in (first, last, step)]
    if not all(isinstance(v, (int, float)) for v in numbers) or not numbers[2]:
        raise refusal("arange", "start, stop and step must be numbers, and step not 0")
    begin, end, by = (float(v) for v in numbers)  # type: ignore[arg-type]
    if not all(map(math.isfinite, (begin, end, by))):
        raise refusal("arange", f"start, stop and step must be finite, got {begin}, {end}, {by}")
    count = max(0, int(-(-(end - begin) // by)))
    return te.compute(
        (count,), lambda i: te.const(begin, dtype) + i.astype(dtype) * te.const(by, dtype),
        name="arange", tag=INJECTIVE,
    )  # fmt: skip
