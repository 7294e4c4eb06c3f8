"""Operators on whole tensors, without schedules: tensors in, tensors out, sizes symbolic.

`topi.generic` and `topi.x86` hold schedules for them under TVM's names.
"""

from importlib import import_module
from types import ModuleType

from farbench_compiler.topi import image, nn
from farbench_compiler.topi.broadcast import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    floor_divide,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
)
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
    "abs", "add", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "divide", "equal", "erf",
    "exp", "expand_dims", "floor", "floor_divide", "greater", "greater_equal", "image",
    "left_shift", "less", "less_equal", "log", "logical_and", "logical_or", "max", "maximum",
    "mean", "min", "minimum", "mod", "multiply", "nn", "not_equal", "power", "prod", "relu",
    "right_shift", "round", "rsqrt", "sigmoid", "sqrt", "subtract", "sum", "tanh", "transpose",
    "trunc",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    # Loaded when first used: schedules stand upon the operator library, which stands upon topi.
    if name in ("generic", "x86"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
