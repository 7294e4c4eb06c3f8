"""pow: 2 to the power of y log2(x), the logarithm in twice the precision of the result."""

from __future__ import annotations

import math

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.vector_math.exact import Pair, product, scaled, short_sum
from farbench_compiler.llvm.vector_math.formats import format_of, nearest
from farbench_compiler.llvm.vector_math.hyperbolic import applied
from farbench_compiler.llvm.vector_math.rounding import even
from farbench_compiler.llvm.vector_math.value import Value, polynomial

_INFINITY = float("inf")
# 2 / ln 2 and 1/3, each beyond its double.
_TWO_LOG2_E = (2.8853900817779268, 4.0710547481862066e-17)
_THIRD = (1 / 3, 1.850371707708594e-17)
_TAIL = tuple(1 / k for k in range(5, 27, 2))
# Beyond them every power is 0, 1 or infinite; products of them stay finite.
_MOST_Y = 2.0**66
_MOST = 1100.0


def power(x: Value, y: Value) -> Value:
    """Write x to the power of y with C's special values."""
    size = _single(x, y) if x.dtype.bits == 32 else _double(x.magnitude(), y)
    whole = _is_whole(y)
    # y is odd where its half is no integer; all beyond 2^(fraction + 1) are even.
    odd = whole.both(_is_whole(y * 0.5).otherwise())
    signed = odd.choose(size.with_sign(x), size)
    wrong = x.less(0.0).both(x.greater(-_INFINITY)).both(whole.otherwise())
    result = wrong.choose(float("nan"), signed)
    result = x.magnitude().equal(1.0).both(y.magnitude().equal(_INFINITY)).choose(1.0, result)
    return x.equal(1.0).choose(1.0, y.equal(0.0).choose(1.0, result))


def _single(x: Value, y: Value) -> Value:
    """Write |x|^y in float32 by logarithm and exponential in double precision."""
    wide_x, wide_y = x.widened(), y.widened()
    wide = applied("exp2", wide_y * applied("log2", wide_x.magnitude()))
    return wide.cast("fptrunc", DType("float", 32))


def _double(x: Value, y: Value) -> Value:
    """Write x^y in float64 for x >= 0."""
    bounded = y.at_least(-_MOST_Y).at_most(_MOST_Y)
    high, low = _log2(x)
    exponent, rest = product(bounded, high)
    rest = rest + bounded * low
    rest = exponent.magnitude().greater(_MOST).choose(0.0, rest)
    exponent = exponent.at_least(-_MOST).at_most(_MOST)
    whole, k = nearest(exponent)
    result = scaled(applied("exp2", (exponent.exact() - whole).exact() + rest), k)
    end = x.equal(0.0).either(x.equal(_INFINITY))
    grows = x.greater(1.0).same(y.greater(0.0))
    at_end = grows.choose(_INFINITY, y.constant(0.0))
    return x.unordered(y).choose(x + y, end.choose(at_end, result))


def _log2(x: Value) -> Pair:
    """Give log2(x) of a positive x: x = 2^e m, log2(m) = 2/ln 2 (s + s^3/3 + ...)."""
    e, m = _parted(x)
    s, s_low = _ratio(m)
    z, z_low = product(s, s)
    z_low = z_low + 2.0 * (s * s_low)
    third, third_low = product(z, z.constant(_THIRD[0]))
    third_low = third_low + (z * _THIRD[1] + z_low * _THIRD[0])
    t, t_low = short_sum(third, (z * z * polynomial(z, _TAIL)).exact())
    t_low = t_low + third_low
    part, part_low = product(s, t)
    w, w_low = short_sum(s, part)
    w_low = w_low + (part_low + (s_low + (s * t_low + s_low * t)))
    log_m, log_low = product(w, w.constant(_TWO_LOG2_E[0]))
    log_low = log_low + (w * _TWO_LOG2_E[1] + w_low * _TWO_LOG2_E[0])
    high, low = short_sum(e, log_m)
    return high, low + log_low


def _parted(x: Value) -> Pair:
    """Give e and m with x = 2^e m, m between the roots of 1/2 and 2."""
    of = format_of(x)
    tiny = x.less(2.0 ** (1 - of.bias))
    bits = tiny.choose(x * 2.0 ** (of.fraction + 2), x).bits()
    root = x.constant(math.sqrt(0.5)).bits()
    lift = of.bias + 1  # the difference of the exponents is not negative with this
    exponent = ((bits - root + (lift << of.fraction)) >> of.fraction) - lift
    e = (exponent + x.constant(of.magic).bits()).as_float().exact() - of.magic
    e = tiny.choose(e - float(of.fraction + 2), e)
    return e, (bits - (exponent << of.fraction)).as_float()


def _ratio(m: Value) -> Pair:
    """Give (m - 1) / (m + 1)."""
    top, bottom = m.exact() - 1.0, m.exact() + 1.0
    bottom_low = m.exact() - (bottom.exact() - 1.0)
    s = top / bottom
    taken, taken_low = product(s, bottom)
    rest = (top.exact() - taken).exact() - taken_low
    return s, (rest - s * bottom_low) / bottom


def _is_whole(y: Value) -> Value:
    """Tell whether a float is an integer: rounding gives it back."""
    size = y.magnitude()
    return even(size).equal(size)
