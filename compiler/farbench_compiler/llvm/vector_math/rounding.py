"""Rounding to integers on targets that have no instruction for it, where LLVM calls libm."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.llvm.vector_math.formats import format_of
from farbench_compiler.llvm.vector_math.value import Value


def lacks(features: frozenset[str]) -> bool:
    """Tell whether a target has no such instruction: x86 before SSE4.1, ARM before version 8."""
    old_x86 = "sse2" in features and "sse4.1" not in features
    old_arm = "vfp2" in features and "fp-armv8" not in features
    return old_x86 or old_arm


def even(size: Value) -> Value:
    """Round a size to the nearest integer, halves to even: beyond 2^fraction all are integers."""
    magic = 2.0 ** format_of(size).fraction
    rounded = (size.exact() + magic).exact() - magic
    return size.less(magic).choose(rounded, size)


def round_even(x: Value) -> Value:
    """Write the nearest integer, halves to even."""
    return even(x.magnitude()).with_sign(x)


def trunc(x: Value) -> Value:
    """Write the integer towards zero."""
    size = x.magnitude()
    near = even(size)
    return near.greater(size).choose(near - 1.0, near).with_sign(x)


def floor(x: Value) -> Value:
    """Write the integer below."""
    near = round_even(x)
    return near.greater(x).choose(near - 1.0, near).with_sign(x)


def ceil(x: Value) -> Value:
    """Write the integer above."""
    near = round_even(x)
    return near.less(x).choose(near + 1.0, near).with_sign(x)


ROUNDINGS: dict[str, Callable[[Value], Value]] = {
    "round": round_even,
    "trunc": trunc,
    "floor": floor,
    "ceil": ceil,
}
