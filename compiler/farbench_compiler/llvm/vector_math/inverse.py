"""Inverse trigonometric functions: arguments brought near 0, then an odd polynomial."""

from __future__ import annotations

from farbench_compiler.llvm.vector_math.formats import format_of
from farbench_compiler.llvm.vector_math.value import Value, polynomial

_TAN_PI_8 = 0.41421356237309503


def _core(t: Value, table: str) -> Value:
    """Write f(t) - t for an odd f near 0."""
    z = t * t
    return t * (z * polynomial(z, format_of(t).table(table)))


def _from_unit(t: Value) -> Value:
    """Write atan of 0 <= t <= 1."""
    high, low = format_of(t).table("QUARTER_PI")
    far = t.greater(_TAN_PI_8)
    u = far.choose((t - 1.0) / (t + 1.0), t)
    base, rest = (far.choose(part, t.constant(0.0)) for part in (high, low))
    return base + (u + (_core(u, "ATAN") + rest))


def atan(x: Value) -> Value:
    """Write the arc tangent: pi/2 - atan(1 / |x|) beyond 1."""
    size = x.magnitude()
    big = size.greater(1.0)
    near = _from_unit(big.choose(1.0 / size, size))
    high, low = format_of(x).table("QUARTER_PI")
    return big.choose(2 * high - (near - 2 * low), near).with_sign(x)


def atan2(y: Value, x: Value) -> Value:
    """Write the angle of the point (x, y)."""
    high, low = format_of(x).table("QUARTER_PI")
    ay, ax = y.magnitude(), x.magnitude()
    steep = ay.greater(ax)
    small, large = steep.choose(ax, ay), steep.choose(ay, ax)
    quotient = small / large
    # 0 / 0 counts as 0, infinity / infinity as 1; NaN stays.
    quotient = large.equal(0.0).choose(small, quotient)
    quotient = small.equal(float("inf")).choose(1.0, quotient)
    angle = _from_unit(quotient)
    angle = steep.choose(2 * high - (angle - 2 * low), angle)
    left = x.constant(1.0).with_sign(x).less(0.0)
    angle = left.choose(4 * high - (angle - 4 * low), angle)
    return x.unordered(y).choose(x + y, angle.with_sign(y))


def _from_half(size: Value) -> tuple[Value, Value, Value]:
    """Give where |x| > 1/2, t, and asin(t) - t; there t = sqrt((1 - |x|) / 2)."""
    far = size.greater(0.5)
    t = far.choose((0.5 - size * 0.5).root(), size)
    return far, t, _core(t, "ASIN")


def asin(x: Value) -> Value:
    """Write the arc sine: pi/2 - 2 asin(sqrt((1 - |x|) / 2)) beyond 1/2."""
    far, t, rest = _from_half(x.magnitude())
    high, low = format_of(x).table("QUARTER_PI")
    angle = t + rest
    beyond = 2 * high - (2.0 * angle - 2 * low)
    return far.choose(beyond, angle).with_sign(x)


def acos(x: Value) -> Value:
    """Write the arc cosine."""
    far, t, rest = _from_half(x.magnitude())
    high, low = format_of(x).table("QUARTER_PI")
    angle = t + rest
    signed = angle.with_sign(x)
    middle = 2 * high - (signed - 2 * low)
    twice = 2.0 * angle
    left = 4 * high - (twice - 4 * low)
    beyond = x.less(0.0).choose(left, twice)
    return far.choose(beyond, middle)
