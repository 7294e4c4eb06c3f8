"""Intervals of integers, and the bounds of an expression when its variables have ranges.

Ends are inclusive. In what a caller gives as ranges an end may be an expression (a loop that runs
to a symbolic size); the bounds that come out are numbers, or None where there is no bound.
Arithmetic of 64 bits is taken not to overflow, narrower arithmetic wraps as it would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farbench_compiler.ir.dtypes import DType, int_range
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Expr,
    IfThenElse,
    IntImm,
    Ramp,
    Select,
    Var,
)

End = int | Expr | None


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `low` to `high`, both included; None is no bound."""

    low: End = None
    high: End = None

    @property
    def numbers(self) -> tuple[int | None, int | None]:
        """The ends that are numbers; symbolic ones are left out."""
        low, high = self.low, self.high
        if (low is None or low.__class__ is int) and (high is None or high.__class__ is int):
            return low, high
        if isinstance(low, IntImm):
            low = low.value
        if isinstance(high, IntImm):
            high = high.value
        return low if isinstance(low, int) else None, high if isinstance(high, int) else None


Ranges = Mapping[Var, Interval]
ANY = Interval()


def add(a: Interval, b: Interval) -> Interval:
    """Bound a sum."""
    (al, ah), (bl, bh) = a.numbers, b.numbers
    return Interval(
        None if al is None or bl is None else al + bl,
        None if ah is None or bh is None else ah + bh,
    )


def scale(a: Interval, by: int) -> Interval:
    """Bound a multiple."""
    low, high = a.numbers
    if by == 1 and low is a.low and high is a.high:
        return a
    if by == 0:
        return Interval(0, 0)
    x, y = None if low is None else low * by, None if high is None else high * by
    return Interval(x, y) if by > 0 else Interval(y, x)


def multiply(a: Interval, b: Interval) -> Interval:
    """Bound a product."""
    (al, ah), (bl, bh) = a.numbers, b.numbers
    if al is not None and al == ah:
        return scale(b, al)
    if bl is not None and bl == bh:
        return scale(a, bl)
    if al is None or ah is None or bl is None or bh is None:
        if al is not None and bl is not None and al >= 0 and bl >= 0:
            return Interval(al * bl, None)
        return ANY
    corners = (al * bl, al * bh, ah * bl, ah * bh)
    return Interval(min(corners), max(corners))


def union(a: Interval, b: Interval) -> Interval:
    """Bound a value that lies in one of both."""
    (al, ah), (bl, bh) = a.numbers, b.numbers
    return Interval(
        None if al is None or bl is None else min(al, bl),
        None if ah is None or bh is None else max(ah, bh),
    )


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """Bound an integer expression; the ends are numbers or None."""
    found = _bounds(expr, ranges)
    if expr.dtype.is_float:
        return ANY
    return _within(found, expr.dtype)


def _within(found: Interval, dtype: DType) -> Interval:
    """Give the whole range of the dtype where the mathematical bounds could have wrapped."""
    low, high = found.numbers
    if dtype.bits == 64:
        return Interval(low, high)
    least, most = int_range(dtype)
    if low is None or high is None or low < least or high > most:
        return Interval(least, most)
    return Interval(low, high)


def _bounds(expr: Expr, ranges: Ranges) -> Interval:
    match expr:
        case IntImm(value, _):
            return Interval(value, value)
        case Var():
            return _var_bounds(expr, ranges)
        case Binary(op, a, b, dtype) if not dtype.is_float:
            rule = _RULES.get(op)
            return ANY if rule is None else rule(bounds(a, ranges), bounds(b, ranges))
        case Cast(_, value) if not value.dtype.is_float:
            return bounds(value, ranges)
        case Select(_, a, b, _) | IfThenElse(_, a, b, _):
            return union(bounds(a, ranges), bounds(b, ranges))
        case Broadcast(value, _, _):
            return bounds(value, ranges)
        case Ramp(base, stride, lanes, _):
            steps = multiply(bounds(stride, ranges), Interval(0, lanes - 1))
            return add(bounds(base, ranges), steps)
    return ANY


def _var_bounds(var: Var, ranges: Ranges) -> Interval:
    known = ranges.get(var)
    if known is None:
        return ANY
    low, high = known.low, known.high
    if isinstance(low, Expr):
        low = bounds(low, ranges).low
    if isinstance(high, Expr):
        high = bounds(high, ranges).high
    return Interval(low, high)


def _subtract(a: Interval, b: Interval) -> Interval:
    return add(a, scale(b, -1))


def _floordiv(a: Interval, b: Interval) -> Interval:
    (al, ah), (bl, bh) = a.numbers, b.numbers
    if bl is None or bl <= 0:
        return ANY
    if bl == bh:
        return Interval(None if al is None else al // bl, None if ah is None else ah // bl)
    if al is not None and al >= 0:
        least = 0 if bh is None else al // bh
        return Interval(least, None if ah is None else ah // bl)
    return ANY


def _floormod(a: Interval, b: Interval) -> Interval:
    (al, ah), (bl, bh) = a.numbers, b.numbers
    if bl is None or bl <= 0:
        return ANY
    if al is not None and ah is not None and al >= 0 and ah < bl:
        return Interval(al, ah)
    most = None if bh is None else bh - 1
    if al is not None and al >= 0 and ah is not None:
        most = ah if most is None else min(most, ah)
    return Interval(0, most)


def _truncdiv(a: Interval, b: Interval) -> Interval:
    low, _ = a.numbers
    return _floordiv(a, b) if low is not None and low >= 0 else ANY


def _truncmod(a: Interval, b: Interval) -> Interval:
    low, _ = a.numbers
    return _floormod(a, b) if low is not None and low >= 0 else ANY


def _least(a: Interval, b: Interval) -> Interval:
    (al, ah), (bl, bh) = a.numbers, b.numbers
    return Interval(
        None if al is None or bl is None else min(al, bl),
        min((x for x in (ah, bh) if x is not None), default=None),
    )


def _greatest(a: Interval, b: Interval) -> Interval:
    (al, ah), (bl, bh) = a.numbers, b.numbers
    return Interval(
        max((x for x in (al, bl) if x is not None), default=None),
        None if ah is None or bh is None else max(ah, bh),
    )


def _bitand(a: Interval, b: Interval) -> Interval:
    masks = [h for low, h in (a.numbers, b.numbers) if low is not None and low >= 0]
    known = [h for h in masks if h is not None]
    if not masks:
        return ANY
    return Interval(0, min(known, default=None))


def _shr(a: Interval, b: Interval) -> Interval:
    bl, bh = b.numbers
    if bl is None or bl != bh or not 0 <= bl < 64:
        return ANY
    return _floordiv(a, Interval(1 << bl, 1 << bl))


def _shl(a: Interval, b: Interval) -> Interval:
    bl, bh = b.numbers
    if bl is None or bl != bh or not 0 <= bl < 63:
        return ANY
    return scale(a, 1 << bl)


_RULES: dict[str, Callable[[Interval, Interval], Interval]] = {
    "add": add,
    "sub": _subtract,
    "mul": multiply,
    "floordiv": _floordiv,
    "floormod": _floormod,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
    "min": _least,
    "max": _greatest,
    "bitand": _bitand,
    "shr": _shr,
    "shl": _shl,
}
