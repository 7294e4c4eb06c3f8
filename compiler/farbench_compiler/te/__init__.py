"""Tensor expressions and schedules: what to compute, and in which loops.

`te.sum`, `te.max`, `te.min`, `te.prod` reduce over axes made by `te.reduce_axis`; `te.all` and
`te.any` join conditions. Sizes and loop variables are int64.
"""

from farbench_compiler.errors import ScheduleError
from farbench_compiler.given import check_what_is_given
from farbench_compiler.ir.expr import Expr, IntImm, Var
from farbench_compiler.te.axis import IterVar, Range, reduce_axis, thread_axis
from farbench_compiler.te.compute import (
    compute,
    compute_all,
    const,
    constant,
    placeholder,
    size_var,
    var,
)
from farbench_compiler.te.extern import ExternOp, extern
from farbench_compiler.te.injective import inline_injective
from farbench_compiler.te.intrinsics import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    div,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    floordiv,
    floormod,
    fma,
    fmod,
    hypot,
    if_then_else,
    indexdiv,
    indexmod,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    multiply,
    nearbyint,
    popcount,
    pow,
    power,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from farbench_compiler.te.layout import AXIS_SEPARATOR
from farbench_compiler.te.operation import ComputeOp, ConstantOp, Operation, PlaceholderOp
from farbench_compiler.te.reduction import (
    all,
    any,
    comm_reducer,
    max,
    max_value,
    min,
    min_value,
    prod,
    sum,
)
from farbench_compiler.te.scan import ScanOp, scan
from farbench_compiler.te.schedule import Schedule, create_schedule
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tags import tag_scope
from farbench_compiler.te.tensor import Tensor, TensorSlice
from farbench_compiler.te.tensorize import Buffers, TensorIntrin, decl_tensor_intrin
from farbench_compiler.tir.buffer import decl_buffer

__all__ = [
    "AXIS_SEPARATOR", "Buffers", "ComputeOp", "ConstantOp", "Expr", "ExternOp", "IntImm",
    "IterVar", "Operation", "PlaceholderOp", "Range", "ScanOp", "Schedule", "ScheduleError",
    "Stage", "Tensor", "TensorIntrin", "TensorSlice", "Var", "abs", "acos", "acosh", "add", "all",
    "any", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "clz", "comm_reducer", "compute",
    "compute_all", "const", "constant", "copysign", "cos", "cosh", "create_schedule",
    "decl_buffer", "decl_tensor_intrin", "div", "erf", "exp", "exp2", "expm1", "extern", "floor",
    "floordiv", "floormod", "fma", "fmod", "hypot", "if_then_else", "indexdiv", "indexmod",
    "inline_injective", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "max",
    "max_value", "min", "min_value", "multiply", "nearbyint", "placeholder", "popcount", "pow",
    "power", "prod", "reduce_axis", "round", "rsqrt", "scan", "select", "sigmoid", "sin", "sinh",
    "size_var", "sqrt", "subtract", "sum", "tag_scope", "tan", "tanh", "thread_axis", "trunc",
    "truncdiv", "truncmod", "var",
]  # fmt: skip

_LOOKED_AT = ("compute", "extern", "placeholder", "scan", "size_var", "thread_axis", "var")
check_what_is_given(globals(), _LOOKED_AT, "te")  # the others refuse by themselves
