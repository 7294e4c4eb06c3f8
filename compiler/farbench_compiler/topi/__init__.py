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
from farbench_compiler.topi.transform import expand_dims, transpose

__all__ = [
    "abs", "ceil", "erf", "exp", "expand_dims", "floor", "log", "max", "mean", "min", "prod",
    "relu", "round", "rsqrt", "sigmoid", "sqrt", "sum", "tanh", "transpose", "trunc",
]  # fmt: skip
