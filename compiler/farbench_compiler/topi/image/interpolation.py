"""Interpolation: which elements around a place count, and how much, axis by axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, cast

# The index of an element along one axis, and its weight.
Tap = tuple[Expr, Expr]


def linear(place: Expr) -> list[Tap]:
    """Give the two neighbours of a place, a float."""
    first = te.floor(place)
    share, index = place - first, cast("int32", first)
    return [(index, 1 - share), (index + 1, share)]


def cubic(place: Expr, alpha: float) -> list[Tap]:
    """Give the four neighbours of a place by the cubic convolution kernel of slope `alpha`.

    Source: R. Keys, Cubic convolution interpolation for digital image processing, 1981.
    """
    first = te.floor(place)
    t, index = place - first, cast("int32", first)
    near = [((alpha + 2) * x - (alpha + 3)) * x * x + 1 for x in (t, 1 - t)]
    far = [((alpha * x - 5 * alpha) * x + 8 * alpha) * x - 4 * alpha for x in (t + 1, 2 - t)]
    weights = [far[0], near[0], near[1], far[1]]
    return [(index + i - 1, w) for i, w in enumerate(weights)]


def clamped(x: Expr, size: Expr) -> Expr:
    """Take an index or a place to the nearest element there is."""
    last = cast(x.dtype, size - 1)
    return te.max(te.min(x, last), te.const(0, x.dtype))


def interpolated(
    read: Callable[[Sequence[Expr]], Expr], axes: Sequence[Sequence[Tap]], at: Sequence[Expr] = ()
) -> Expr:
    """Sum what is read at all combinations of taps, the last axis innermost."""
    if not axes:
        return read(at)
    terms = [interpolated(read, axes[1:], (*at, index)) * weight for index, weight in axes[0]]
    total: Expr = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def ratio(a: Expr, b: Expr, dtype: str) -> Expr:
    """Divide two sizes as floats; known ones at once, rounded a single time."""
    if isinstance(a, te.IntImm) and isinstance(b, te.IntImm):
        return te.const(a.value / b.value, dtype)
    return cast(dtype, a) / cast(dtype, b)
