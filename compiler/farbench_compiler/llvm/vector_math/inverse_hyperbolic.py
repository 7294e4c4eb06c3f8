"""What is made of log near 1: log(1 + x), asinh, acosh, atanh."""

from __future__ import annotations

from farbench_compiler.llvm.vector_math.hyperbolic import applied
from farbench_compiler.llvm.vector_math.value import Value

_INFINITY = float("inf")
_LN2 = 0.6931471805599453
# Beyond it 1 is nothing beside the square.
_LARGE = 2.0**28


def log1p(x: Value) -> Value:
    """Write log(1 + x): the logarithm of the rounded sum, and what the rounding lost."""
    total = x.exact() + 1.0
    lost = (
        x.magnitude()
        .greater(1.0)
        .choose(x.constant(1.0).exact() - (total.exact() - x), x.exact() - (total.exact() - 1.0))
    )
    log = applied("log", total)
    small = log + lost / total
    result = total.equal(_INFINITY).either(total.equal(0.0)).choose(log, small)
    return x.equal(0.0).choose(x, result)


def asinh(x: Value) -> Value:
    """Write log(|x| + sqrt(x^2 + 1)) as a log1p."""
    size = x.magnitude()
    large = size.greater(_LARGE)
    near = large.choose(1.0, size)
    square = near * near
    inner = log1p(near + square / ((square + 1.0).root() + 1.0))
    return large.choose(applied("log", size) + _LN2, inner).with_sign(x)


def acosh(x: Value) -> Value:
    """Write log(x + sqrt(x^2 - 1)) as a log1p of what exceeds 1; NaN below 1."""
    large = x.greater(_LARGE)
    above = large.choose(1.0, x).exact() - 1.0
    inner = log1p(above + (above * 2.0 + above * above).root())
    result = large.choose(applied("log", x) + _LN2, inner)
    return x.less(1.0).choose(float("nan"), result)


def atanh(x: Value) -> Value:
    """Write half of log((1 + x) / (1 - x)) as a log1p."""
    size = x.magnitude()
    return (log1p((size * 2.0) / (size.constant(1.0).exact() - size)) * 0.5).with_sign(x)
