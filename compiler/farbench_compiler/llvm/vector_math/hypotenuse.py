"""hypot, without overflow on the way."""

from __future__ import annotations

from farbench_compiler.llvm.vector_math.value import Value

_INFINITY = float("inf")
# Squares of what lies between are normal numbers; others are brought there.
_LARGE, _SMALL, _DOWN, _UP = 2.0**500, 2.0**-500, 2.0**-600, 2.0**600


def hypot(x: Value, y: Value) -> Value:
    """Write sqrt(x^2 + y^2); infinite where either is, even beside NaN."""
    single = x.dtype.bits == 32
    a, b = x.widened().magnitude(), y.widened().magnitude()
    if single:
        length = (a * a + b * b).root().cast("fptrunc", x.dtype.scalar)
    else:
        length = _scaled(a, b)
    infinite = x.magnitude().equal(_INFINITY).either(y.magnitude().equal(_INFINITY))
    return infinite.choose(_INFINITY, length)


def _scaled(a: Value, b: Value) -> Value:
    one = a.constant(1.0)
    large = a.greater(_LARGE).either(b.greater(_LARGE))
    small = a.less(_SMALL).both(b.less(_SMALL))
    scale = large.choose(_DOWN, small.choose(_UP, one))
    back = large.choose(1 / _DOWN, small.choose(1 / _UP, one))
    a, b = a * scale, b * scale
    return (a * a + b * b).root() * back
