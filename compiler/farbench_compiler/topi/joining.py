"""Functions that put tensors together, or cut one apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, IntImm, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import (
    axis_of,
    check_divides,
    check_rank,
    check_same,
    known,
    refusal,
)
from farbench_compiler.topi.tag import INJECTIVE
from farbench_compiler.topi.transform import expand_dims


def concatenate(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Put tensors behind each other along an axis; the other sizes agree."""
    if not xs:
        raise refusal("concatenate", "there is nothing to join; give at least one tensor")
    first = xs[0]
    at = axis_of("concatenate", first, axis)
    for x in xs[1:]:
        check_rank("concatenate", x, first.ndim)
        for d in range(first.ndim):
            if d != at:
                what = f"dimension {d} of {first.name} and {x.name}"
                check_same("concatenate", what, first.shape[d], x.shape[d])
    begins: list[Expr] = [const(0)]
    for x in xs:
        begins.append(simplify(begins[-1] + x.shape[at]))

    def body(*i: Expr) -> Expr:
        def read(n: int) -> Expr:
            return xs[n](*(v - begins[n] if d == at else v for d, v in enumerate(i)))

        found = read(len(xs) - 1)
        for n in reversed(range(len(xs) - 1)):
            found = te.if_then_else(i[at] < begins[n + 1], read(n), found)
        return found

    shape = [begins[-1] if d == at else size for d, size in enumerate(first.shape)]
    return te.compute(shape, body, name="concatenate", tag=INJECTIVE)


def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Put tensors of one shape behind each other along a new axis."""
    if not xs:
        raise refusal("stack", "there is nothing to join; give at least one tensor")
    return concatenate([expand_dims(x, axis) for x in xs], axis)


def split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut along an axis: in so many equal parts, or before each of some places."""
    at = axis_of("split", x, axis)
    if isinstance(indices_or_sections, (int, IntImm)):
        count = known(indices_or_sections) or 0
        check_divides("split", f"elements of axis {at}", x.shape[at], count)
        size = te.floordiv(x.shape[at], count)
        ends = [size * n for n in range(count + 1)]
    else:
        ends = [const(0), *(const(n) for n in indices_or_sections), x.shape[at]]
        places = [known(end) for end in ends]
        if any(a is not None and b is not None and a > b for a, b in pairwise(places)):
            raise refusal("split", f"the places {list(indices_or_sections)} are not in order")
    return [_cut(x, at, begin, end, n) for n, (begin, end) in enumerate(pairwise(ends))]


def _cut(x: Tensor, axis: int, begin: Expr, end: Expr, number: int) -> Tensor:
    shape = [simplify(end - begin) if d == axis else size for d, size in enumerate(x.shape)]

    def body(*i: Expr) -> Expr:
        return x(*(v + begin if d == axis else v for d, v in enumerate(i)))

    return te.compute(shape, body, name=f"split{number}", tag=INJECTIVE)
