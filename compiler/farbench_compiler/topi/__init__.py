"""Operators on whole tensors, without schedules: tensors in, tensors out, sizes symbolic."""

from farbench_compiler.topi.elementwise import (
    abs,
    ceil,
    erf,
    exp,
    floor,
    log,
    relu,
    round,
    rsqrt,
    sigmoid,
    sqrt,
    tanh,
    trunc,
)
from farbench_compiler.topi.reduction import max, mean, min, prod, sum

__all__ = [
    "abs", "ceil", "erf", "exp", "floor", "log", "max", "mean", "min", "prod", "relu", "round",
    "rsqrt", "sigmoid", "sqrt", "sum", "tanh", "trunc",
]  # fmt: skip
