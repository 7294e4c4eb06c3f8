"""Functions of one tensor, element by element; the shape is that of `x`, and the dtype mostly."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, as_expr
from farbench_compiler.te import Tensor
from farbench_compiler.te.broadcast import combine
from farbench_compiler.topi.arguments import refusal
from farbench_compiler.topi.tag import ELEMWISE


def _map(x: Tensor, function: Callable[[Expr], Expr], name: str) -> Tensor:
    return te.compute(x.shape, lambda *i: function(x(*i)), name=name, tag=ELEMWISE)


def abs(x: Tensor) -> Tensor:
    """Take the absolute value of each element."""
    return _map(x, te.abs, "abs")


def ceil(x: Tensor) -> Tensor:
    """Take the least integer above of each element."""
    return _map(x, te.ceil, "ceil")


def erf(x: Tensor) -> Tensor:
    """Take the error function of each element."""
    return _map(x, te.erf, "erf")


def exp(x: Tensor) -> Tensor:
    """Take the exponential of each element."""
    return _map(x, te.exp, "exp")


def floor(x: Tensor) -> Tensor:
    """Take the greatest integer below of each element."""
    return _map(x, te.floor, "floor")


def log(x: Tensor) -> Tensor:
    """Take the natural logarithm of each element."""
    return _map(x, te.log, "log")


def round(x: Tensor) -> Tensor:
    """Take the nearest integer of each element."""
    return _map(x, te.round, "round")


def rsqrt(x: Tensor) -> Tensor:
    """Take the reciprocal square root of each element."""
    return _map(x, te.rsqrt, "rsqrt")


def sigmoid(x: Tensor) -> Tensor:
    """Take the logistic function of each element."""
    return _map(x, te.sigmoid, "sigmoid")


def sqrt(x: Tensor) -> Tensor:
    """Take the square root of each element."""
    return _map(x, te.sqrt, "sqrt")


def tanh(x: Tensor) -> Tensor:
    """Take the hyperbolic tangent of each element."""
    return _map(x, te.tanh, "tanh")


def trunc(x: Tensor) -> Tensor:
    """Take the integer towards zero of each element."""
    return _map(x, te.trunc, "trunc")


def relu(x: Tensor) -> Tensor:
    """Replace negative elements by zero; NaN becomes zero."""
    zero = te.const(0, x.dtype)
    return _map(x, lambda v: te.select(v > zero, v, zero), "relu")


def sin(x: Tensor) -> Tensor:
    """Take the sine of each element."""
    return _map(x, te.sin, "sin")


def cos(x: Tensor) -> Tensor:
    """Take the cosine of each element."""
    return _map(x, te.cos, "cos")


def tan(x: Tensor) -> Tensor:
    """Take the tangent of each element."""
    return _map(x, te.tan, "tan")


def sinh(x: Tensor) -> Tensor:
    """Take the hyperbolic sine of each element."""
    return _map(x, te.sinh, "sinh")


def cosh(x: Tensor) -> Tensor:
    """Take the hyperbolic cosine of each element."""
    return _map(x, te.cosh, "cosh")


def asin(x: Tensor) -> Tensor:
    """Take the arc sine of each element."""
    return _map(x, te.asin, "asin")


def acos(x: Tensor) -> Tensor:
    """Take the arc cosine of each element."""
    return _map(x, te.acos, "acos")


def atan(x: Tensor) -> Tensor:
    """Take the arc tangent of each element."""
    return _map(x, te.atan, "atan")


def asinh(x: Tensor) -> Tensor:
    """Take the inverse hyperbolic sine of each element."""
    return _map(x, te.asinh, "asinh")


def acosh(x: Tensor) -> Tensor:
    """Take the inverse hyperbolic cosine of each element."""
    return _map(x, te.acosh, "acosh")


def atanh(x: Tensor) -> Tensor:
    """Take the inverse hyperbolic tangent of each element."""
    return _map(x, te.atanh, "atanh")


def exp2(x: Tensor) -> Tensor:
    """Take the power of 2 to each element."""
    return _map(x, te.exp2, "exp2")


def log2(x: Tensor) -> Tensor:
    """Take the logarithm to base 2 of each element."""
    return _map(x, te.log2, "log2")


def log10(x: Tensor) -> Tensor:
    """Take the logarithm to base 10 of each element."""
    return _map(x, te.log10, "log10")


def log1p(x: Tensor) -> Tensor:
    """Take the logarithm of 1 + each element."""
    return _map(x, te.log1p, "log1p")


def isnan(x: Tensor) -> Tensor:
    """Tell of each element whether it is not a number (bool)."""
    return _map(x, te.isnan, "isnan")


def isinf(x: Tensor) -> Tensor:
    """Tell of each element whether it is infinite (bool)."""
    return _map(x, te.isinf, "isinf")


def isfinite(x: Tensor) -> Tensor:
    """Tell of each element whether it is neither infinite nor NaN (bool)."""
    return _map(x, te.isfinite, "isfinite")


def identity(x: Tensor) -> Tensor:
    """Copy."""
    return _map(x, lambda v: v, "identity")


def negative(x: Tensor) -> Tensor:
    """Negate each element."""
    return _map(x, lambda v: -v, "negative")


def logical_not(x: Tensor) -> Tensor:
    """Negate truth values."""
    if not x.dtype.is_bool:
        raise refusal("logical_not", f"{x.name} is {x.dtype}, not bool; compare it first")
    return _map(x, lambda v: ~v, "logical_not")


def bitwise_not(x: Tensor) -> Tensor:
    """Turn all bits of integers round."""
    if x.dtype.is_float:
        raise refusal("bitwise_not", f"{x.name} is {x.dtype}, which has no bits to turn")
    return _map(x, lambda v: ~v, "bitwise_not")


def sign(x: Tensor) -> Tensor:
    """Give 1, 0 or -1 as each element is positive, 0 or negative; NaN gives 0."""
    zero, one = te.const(0, x.dtype), te.const(1, x.dtype)
    if x.dtype.kind == "uint":
        return _map(x, lambda v: te.select(v > zero, one, zero), "sign")
    minus = te.const(-1, x.dtype)
    return _map(x, lambda v: te.select(v > zero, one, te.select(v < zero, minus, zero)), "sign")


def clip(x: Tensor, a_min: float, a_max: float) -> Tensor:
    """Bring each element between two numbers; NaN stays."""
    low, high = te.const(a_min, x.dtype), te.const(a_max, x.dtype)
    return _map(x, lambda v: te.select(v < low, low, te.select(v > high, high, v)), "clip")


def cast(x: Tensor, dtype: str) -> Tensor:
    """Convert each element."""
    return _map(x, lambda v: v.astype(dtype), "cast")


def ceil_log2(x: Tensor) -> Tensor:
    """Take the least integer whose power of 2 is at least the element, which is positive."""
    if x.dtype.is_float:
        return _map(x, lambda v: te.ceil(te.log2(v)), "ceil_log2")
    one, bits = te.const(1, x.dtype), x.dtype.bits
    return _map(x, lambda v: (bits - te.clz(v - one)).astype(x.dtype), "ceil_log2")


fast_exp, fast_tanh, fast_erf = exp, tanh, erf  # which are as fast as they get


def full(shape: Sequence[ExprLike] | ExprLike, dtype: str, fill_value: ExprLike) -> Tensor:
    """Make a tensor of equal elements."""
    sizes = [shape] if isinstance(shape, (int, Expr)) else list(shape)  # type: ignore[arg-type]
    value = te.const(fill_value, dtype) if isinstance(fill_value, (int, float)) else fill_value
    return te.compute(sizes, lambda *_: as_expr(value).astype(dtype), name="full", tag=ELEMWISE)


def full_like(x: Tensor, fill_value: ExprLike) -> Tensor:
    """Make a tensor of equal elements, of the shape and dtype of another."""
    return full(x.shape, str(x.dtype), fill_value)


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """Add tensors of one shape."""
    if not xs:
        raise refusal("elemwise_sum", "there is nothing to add; give at least one tensor")

    return combine(
        lambda *values: reduce(operator.add, values), *xs, name="elemwise_sum", tag=ELEMWISE
    )
