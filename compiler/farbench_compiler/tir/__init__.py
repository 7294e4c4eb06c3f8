"""Bodies written by hand, statement by statement: for declared intrinsics and `te.extern`."""

from farbench_compiler.ir.expr import Broadcast, Expr, ExprLike, Ramp, Var, as_expr
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


__all__ = [
    "Broadcast", "DeclaredBuffer", "Pointer", "Ramp", "Stmt", "Var", "broadcast",
    "call_llvm_intrin", "call_llvm_pure_intrin", "decl_buffer", "dot2", "dot4", "interleave",
    "ir_builder",
]  # fmt: skip
