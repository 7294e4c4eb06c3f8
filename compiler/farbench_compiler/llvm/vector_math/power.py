"""pow in single precision, by logarithm and exponential in double precision."""

from __future__ import annotations

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.vector_math.hyperbolic import applied
from farbench_compiler.llvm.vector_math.value import Value

_INFINITY = float("inf")


def pow32(x: Value, y: Value) -> Value:
    """Write x to the power of y, float32, with C's special values."""
    double = DType("float", 64)
    wide_x, wide_y = x.cast("fpext", double), y.cast("fpext", double)
    size = applied("exp2", wide_y * applied("log2", wide_x.magnitude())).cast(
        "fptrunc", DType("float", 32)
    )
    # y rounded to an integer, and to an even one; all beyond 2^24 are even.
    whole = _is_whole(y)
    odd = whole.both(_is_whole(y * 0.5).otherwise())
    signed = odd.choose(size.with_sign(x), size)
    wrong = x.less(0.0).both(x.greater(-_INFINITY)).both(whole.otherwise())
    result = wrong.choose(float("nan"), signed)
    result = x.magnitude().equal(1.0).both(y.magnitude().equal(_INFINITY)).choose(1.0, result)
    return x.equal(1.0).choose(1.0, y.equal(0.0).choose(1.0, result))


def _is_whole(y: Value) -> Value:
    """Tell whether a float32 is an integer: its size plus 2^23 minus 2^23 gives it back."""
    size = y.magnitude()
    rounded = (size.exact() + 2.0**23).exact() - 2.0**23
    return rounded.equal(size).either(size.greater(2.0**23))
