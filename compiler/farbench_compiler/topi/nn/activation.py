"""Activations: functions of each element that let positive ones through."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same, known
from farbench_compiler.topi.elementwise import relu
from farbench_compiler.topi.tag import BROADCAST, ELEMWISE

__all__ = ["leaky_relu", "prelu", "relu", "softplus"]


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """Multiply elements that are not positive by `alpha`."""
    slope = te.const(alpha, x.dtype)

    def element(*i: Expr) -> Expr:
        value = x(*i)
        return te.select(value > 0, value, value * slope)

    return te.compute(x.shape, element, name="leaky_relu", tag=ELEMWISE)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """Multiply elements that are not positive by the slope of their channel, or the only one."""
    at = axis_of("nn.prelu", x, axis)
    check_rank("nn.prelu", slope, 1)
    shared = known(slope.shape[0]) == 1
    if not shared:
        check_same("nn.prelu", "channels and slopes", x.shape[at], slope.shape[0])

    def element(*i: Expr) -> Expr:
        value = x(*i)
        return te.select(value > 0, value, value * slope(te.const(0) if shared else i[at]))

    return te.compute(x.shape, element, name="prelu", tag=BROADCAST)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Give log(1 + exp(beta * x)) / beta, and x itself where beta * x exceeds the threshold."""
    steep, most = te.const(beta, x.dtype), te.const(threshold, x.dtype)

    def element(*i: Expr) -> Expr:
        value = x(*i)
        scaled = value * steep
        return te.select(scaled > most, value, te.log1p(te.exp(scaled)) / steep)

    return te.compute(x.shape, element, name="softplus", tag=ELEMWISE)
