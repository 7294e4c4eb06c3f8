"""Operators on whole tensors, without schedules: tensors in, tensors out, sizes symbolic.

`topi.generic` and `topi.x86` hold schedules for them under TVM's names.
"""

from importlib import import_module
from types import ModuleType

from farbench_compiler.topi import image, nn, tag
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
from farbench_compiler.topi.cumulative import (
    cumprod,
    cumsum,
)
from farbench_compiler.topi.elementwise import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    cast,
    ceil,
    clip,
    cos,
    cosh,
    elemwise_sum,
    erf,
    exp,
    exp2,
    fast_erf,
    fast_exp,
    fast_tanh,
    floor,
    full,
    full_like,
    identity,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_not,
    negative,
    relu,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from farbench_compiler.topi.indexing import (
    gather,
    one_hot,
    strided_slice,
    take,
    where,
)
from farbench_compiler.topi.joining import (
    concatenate,
    split,
    stack,
)
from farbench_compiler.topi.reduction import (
    all,
    any,
    argmax,
    argmin,
    max,
    mean,
    min,
    prod,
    sum,
)
from farbench_compiler.topi.scatter import (
    scatter_elements,
    scatter_nd,
)
from farbench_compiler.topi.shaping import (
    arange,
    broadcast_to,
    flip,
    meshgrid,
    ndarray_size,
    repeat,
    reshape,
    shape,
    squeeze,
    tile,
)
from farbench_compiler.topi.sorting import (
    argsort,
    searchsorted,
    sort,
    topk,
)
from farbench_compiler.topi.transform import (
    expand_dims,
    transpose,
)

__all__ = [
    "abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asin",
    "asinh", "atan", "atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "broadcast_to", "cast", "ceil", "clip", "concatenate", "cos", "cosh", "cumprod", "cumsum",
    "divide", "elemwise_sum", "equal", "erf", "exp", "exp2", "expand_dims", "fast_erf", "fast_exp",
    "fast_tanh", "flip", "floor", "floor_divide", "full", "full_like", "gather", "greater",
    "greater_equal", "identity", "image", "isfinite", "isinf", "isnan", "left_shift", "less",
    "less_equal", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or",
    "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "multiply", "ndarray_size",
    "negative", "nn", "not_equal", "one_hot", "power", "prod", "relu", "repeat", "reshape",
    "right_shift", "round", "rsqrt", "scatter_elements", "scatter_nd", "searchsorted", "shape",
    "sigmoid", "sign", "sin", "sinh", "sort", "split", "sqrt", "squeeze", "stack", "strided_slice",
    "subtract", "sum", "tag", "take", "tan", "tanh", "tile", "topk", "transpose", "trunc", "where",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    # Loaded when first used: schedules stand upon the operator library, which stands upon topi.
    if name in ("generic", "x86"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
