"""Write the statement of an extern stage over the memory that its tensors have."""

from __future__ import annotations

from collections.abc import Mapping

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Buffer, Expr, IntImm, Load, Var
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.stmt import Seq, Stmt, Store
from farbench_compiler.ir.structural import same
from farbench_compiler.ir.visit import map_children, substitute
from farbench_compiler.lower.memory import Memory
from farbench_compiler.te.extern import ExternOp
from farbench_compiler.te.tensor import Tensor
from farbench_compiler.tir.buffer import DeclaredBuffer


def extern_statement(op: ExternOp, memory: Mapping[Tensor, Memory]) -> Stmt:
    """Give the statement with memory in place of declared buffers."""
    buffers: dict[int, Buffer] = {}
    sizes: dict[Var, Expr] = {}
    for tensor, declared in op.buffers:
        actual = memory[tensor].buffer
        buffers[declared.uid] = actual
        for wanted, found in zip(declared.shape, actual.shape, strict=True):
            _agree(op, declared, wanted, found, sizes)
        for wanted, found in zip(declared.strides, _strides(actual), strict=False):
            _agree(op, declared, wanted, found, sizes)

    def on_expr(e: Expr) -> Expr:
        e = map_children(e, on_expr)
        if isinstance(e, Load) and e.buffer.uid in buffers:
            return Load(buffers[e.buffer.uid], e.indices, e.dtype)
        return e

    def on_stmt(s: Stmt) -> Stmt:
        s = map_children(s, on_expr, on_stmt)
        if isinstance(s, Store) and s.buffer.uid in buffers:
            return Store(buffers[s.buffer.uid], s.indices, s.value)
        return s

    return on_stmt(substitute(op.statement or Seq(()), sizes))


def _strides(buffer: Buffer) -> list[Expr]:
    """Count elements from one index of each dimension to the next."""
    found: list[Expr] = []
    step: Expr = IntImm(1)
    for size in reversed(buffer.shape):
        found.insert(0, step)
        step = simplify(step * size)
    return found


def _agree(
    op: ExternOp, declared: DeclaredBuffer, wanted: Expr, found: Expr, sizes: dict[Var, Expr]
) -> None:
    """Give a variable of a declaration its value; ScheduleError where a constant differs."""
    if same(simplify(wanted), simplify(found)):
        return
    if not isinstance(wanted, Var):
        raise ScheduleError(
            f"extern {op.name}: buffer {declared.name} is not declared as its tensor lies in memory"
        )
    sizes[wanted] = found
