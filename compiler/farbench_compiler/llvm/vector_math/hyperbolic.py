"""What is made of exp: sinh, cosh, exp(x) - 1, and the error function."""

from __future__ import annotations

from farbench_compiler.llvm.vector_math import exponential
from farbench_compiler.llvm.vector_math.formats import format_of
from farbench_compiler.llvm.vector_math.value import Value, polynomial

# Where erf rounds to 1; about which point the powers of its tail are.
_ERF_END = {32: 3.9375, 64: 5.9375}
_ERF_CENTRE = 1.25


def applied(name: str, x: Value) -> Value:
    """Call one of the exponentials and logarithms."""
    return x.like_text(exponential.call(x.code, name, x.text, x.dtype))


def expm1(x: Value) -> Value:
    """Write exp(x) - 1."""
    near = applied("expm1_near", x.at_least(-40.0).at_most(40.0))
    return x.greater(39.0).choose(applied("exp", x), x.equal(0.0).choose(x, near))


def sinh(x: Value) -> Value:
    """Write (m + m / (m + 1)) / 2 near 0, with m = exp(|x|) - 1; else (e - 1 / e) / 2."""
    size = x.magnitude()
    m = applied("expm1_near", size.at_most(2.0))
    near = (m + m / (m + 1.0)) * 0.5
    half = applied("half_exp", size)
    return size.less(1.0).choose(near, half - 0.25 / half).with_sign(x)


def cosh(x: Value) -> Value:
    """Write (e + 1 / e) / 2 with e = exp(|x|)."""
    half = applied("half_exp", x.magnitude())
    return half + 0.25 / half


def erf(x: Value) -> Value:
    """Write x P(x^2) up to 1; beyond, -(exp(Q(|x|)) - 1) where Q fits log(erfc)."""
    of = format_of(x)
    size = x.magnitude()
    near = size * polynomial(size * size, of.table("ERF"))
    tail = polynomial(size.at_most(_ERF_END[of.bits]) - _ERF_CENTRE, of.table("ERFC"))
    far = -applied("expm1_near", tail)
    return size.less(1.0).choose(near, far).with_sign(x)
