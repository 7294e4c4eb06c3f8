"""Bodies written by hand, statement by statement: for declared intrinsics and `te.extern`."""

import importlib

from farbench_compiler.errors import UnknownNameError
from farbench_compiler.given import check_what_is_given
from farbench_compiler.ir.expr import Broadcast, Expr, ExprLike, IntImm, Ramp, Var, as_expr
from farbench_compiler.ir.stmt import Stmt
from farbench_compiler.tir import ir_builder
from farbench_compiler.tir.buffer import DeclaredBuffer, Pointer, decl_buffer
from farbench_compiler.tir.llvm_intrinsics import (
    call_llvm_intrin,
    call_llvm_pure_intrin,
    dot2,
    dot4,
    interleave,
)


def broadcast(value: ExprLike, lanes: int) -> Expr:
    """Make a vector of copies."""
    x = as_expr(value)
    return x if lanes == 1 else Broadcast(x, lanes, x.dtype.with_lanes(lanes))


# What TVM's programs call by either name; te's are meant, which also take whole tensors.
_OF_TE = frozenset((
    "abs", "add", "all", "any", "ceil", "const", "div", "erf", "exp", "exp2", "floor", "floordiv",
    "floormod", "fmod", "if_then_else", "indexdiv", "indexmod", "isfinite", "isinf", "isnan",
    "log", "log10", "log1p", "log2", "max", "max_value", "min", "min_value", "multiply",
    "nearbyint", "popcount", "power", "round", "rsqrt", "sigmoid", "sin", "cos", "tan", "tanh",
    "sqrt", "subtract", "sum", "trunc", "truncdiv", "truncmod",
))  # fmt: skip


def __getattr__(name: str) -> object:
    # te's modules need those of this package, so that they can only be had once both stand.
    if name in _OF_TE or name == "Select":
        return getattr(importlib.import_module("farbench_compiler.te"), name.lower())
    if name.startswith("call_"):
        raise UnknownNameError(
            f"farbench has no tir.{name}: a library calls nothing from outside; write it in te, or "
            "as statements by tir.ir_builder"
        )
    raise UnknownNameError(f"farbench has no tir.{name}; the functions of values are in te")


__all__ = [
    "Broadcast", "DeclaredBuffer", "IntImm", "Pointer", "Ramp", "Stmt", "Var", "broadcast",
    "call_llvm_intrin", "call_llvm_pure_intrin", "decl_buffer", "dot2", "dot4", "interleave",
    "ir_builder",
]  # fmt: skip

check_what_is_given(globals(), ("dot2", "dot4"), "tir")
