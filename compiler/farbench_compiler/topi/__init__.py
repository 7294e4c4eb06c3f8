"""Operators on whole tensors, without schedules: tensors in, tensors out, sizes symbolic.

`topi.generic` and `topi.x86` hold schedules for them under TVM's names.
"""

from importlib import import_module
from types import ModuleType

from farbench_compiler.given import check_what_is_given
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
from farbench_compiler.topi.contraction import (
    einsum,
    matmul,
    tensordot,
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
    ceil_log2,
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
    adv_index,
    gather,
    gather_nd,
    one_hot,
    take,
    unravel_index,
    where,
)
from farbench_compiler.topi.joining import (
    concatenate,
    split,
    stack,
)
from farbench_compiler.topi.masking import (
    matrix_set_diag,
    reverse_sequence,
    sequence_mask,
    trilu,
)
from farbench_compiler.topi.reduction import (
    all,
    any,
    argmax,
    argmin,
    collapse_sum,
    max,
    mean,
    min,
    prod,
    sum,
)
from farbench_compiler.topi.relayout import (
    layout_transform,
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
from farbench_compiler.topi.slicing import (
    sliding_window,
    strided_set,
    strided_slice,
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
    "abs", "acos", "acosh", "add", "adv_index", "all", "any", "arange", "argmax", "argmin",
    "argsort", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast_to", "cast", "ceil", "ceil_log2", "clip", "collapse_sum",
    "concatenate", "cos", "cosh", "cumprod", "cumsum", "divide", "einsum", "elemwise_sum", "equal",
    "erf", "exp", "exp2", "expand_dims", "fast_erf", "fast_exp", "fast_tanh", "flip", "floor",
    "floor_divide", "full", "full_like", "gather", "gather_nd", "greater", "greater_equal",
    "identity", "image", "isfinite", "isinf", "isnan", "layout_transform", "left_shift", "less",
    "less_equal", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or",
    "matmul", "matrix_set_diag", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod",
    "multiply", "ndarray_size", "negative", "nn", "not_equal", "one_hot", "power", "prod", "relu",
    "repeat", "reshape", "reverse_sequence", "right_shift", "round", "rsqrt", "scatter_elements",
    "scatter_nd", "searchsorted", "sequence_mask", "shape", "sigmoid", "sign", "sin", "sinh",
    "sliding_window", "sort", "split", "sqrt", "squeeze", "stack", "strided_set", "strided_slice",
    "subtract", "sum", "tag", "take", "tan", "tanh", "tensordot", "tile", "topk", "transpose",
    "trilu", "trunc", "unravel_index", "where",
]  # fmt: skip

check_what_is_given(globals(), __all__, "topi")


def __getattr__(name: str) -> ModuleType:
    # Loaded when first used: schedules stand upon the operator library, which stands upon topi.
    if name in ("generic", "x86"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
