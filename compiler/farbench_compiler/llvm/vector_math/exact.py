"""Sums and products without an error: a rounded result and what the rounding lost.

With no fused multiply-add a product is taken apart as Dekker did (Numerische Mathematik 18, 1971);
then neither factor may exceed 2^996 and the product not fall below 2^-968.
"""

from __future__ import annotations

from farbench_compiler.llvm.vector_math.formats import power_of_two
from farbench_compiler.llvm.vector_math.value import Value

Pair = tuple[Value, Value]
# Any of them has fused multiply-adds in double precision.
_FUSED = frozenset(("fma", "fma4", "avx512f", "fp-armv8", "vfp4", "d"))
_SPLITTER = 2.0**27 + 1


def fuses(x: Value) -> bool:
    """Tell whether the target multiplies and adds with one rounding."""
    return not _FUSED.isdisjoint(x.code.module.features)


def short_sum(a: Value, b: Value) -> Pair:
    """Add two floats, |a| >= |b| or a = 0."""
    total = a.exact() + b
    return total, b.exact() - (total.exact() - a)


def product(a: Value, b: Value) -> Pair:
    """Multiply two floats of double precision."""
    high = a.exact() * b
    if fuses(a):
        return high, a.fused(b, -high)
    (a1, a0), (b1, b0) = _halves(a), _halves(b)
    rest = (a1.exact() * b1).exact() - high
    rest = (rest.exact() + a1.exact() * b0).exact() + a0.exact() * b1
    return high, rest.exact() + a0.exact() * b0


def _halves(a: Value) -> Pair:
    """Part a double into two of 26 bits each."""
    wide = a.exact() * _SPLITTER
    high = wide.exact() - (wide.exact() - a)
    return high, a.exact() - high


def scaled(a: Value, k: Value) -> Value:
    """Give a * 2^k in two steps, each a normal power, so that the result is rounded once."""
    half = k.halved()
    return a.exact() * power_of_two(half) * power_of_two(k - half)
