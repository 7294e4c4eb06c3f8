"""Functions of one tensor, element by element; the shape and dtype are those of `x`."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import Tensor

TAG = "elemwise"


def _map(x: Tensor, function: Callable[[Expr], Expr], name: str) -> Tensor:
    return te.compute(x.shape, lambda *i: function(x(*i)), name=name, tag=TAG)


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
