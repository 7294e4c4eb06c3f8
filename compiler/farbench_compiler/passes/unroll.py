"""Write unrolled loops out, one copy of the body for each iteration."""

from __future__ import annotations

from dataclasses import replace

from farbench_compiler.ir.expr import Binary, Expr, IntImm, Var, fold_int
from farbench_compiler.ir.simplify import sequence
from farbench_compiler.ir.stmt import For, LoopFunction, Stmt
from farbench_compiler.ir.visit import map_children, walk

MAX_NODES = 60_000  # beyond it machine code no longer fits the instruction cache; the loop stays


def unroll(fn: LoopFunction) -> LoopFunction:
    """Unroll loops of constant extent; others, and those that would get too long, become serial."""
    return replace(fn, body=_stmt(fn.body))


def _stmt(s: Stmt) -> Stmt:
    s = map_children(s, _same, _stmt)
    if not (isinstance(s, For) and s.kind == "unrolled"):
        return s
    size = sum(1 for _ in walk(s.body))
    if not isinstance(s.extent, IntImm) or s.extent.value * size > MAX_NODES:
        return replace(s, kind="serial")
    offsets = (IntImm(i, s.var.dtype) for i in range(s.extent.value))
    begins = (fold_add(s.begin, offset) for offset in offsets)
    return sequence(substitute_folding(s.body, s.var, begin) for begin in begins)


def _same(e: Expr) -> Expr:
    return e


def substitute_folding(s: Stmt, var: Var, value: Expr) -> Stmt:
    """Replace a variable and fold the constant integer arithmetic that this leaves."""

    def on_expr(e: Expr) -> Expr:
        if isinstance(e, Var):
            return value if e.uid == var.uid else e
        new = map_children(e, on_expr)
        return _folded(new) if isinstance(new, Binary) and new is not e else new

    def on_stmt(below: Stmt) -> Stmt:
        return map_children(below, on_expr, on_stmt)

    return on_stmt(s)


def fold_add(a: Expr, b: Expr) -> Expr:
    """Add two integers of one dtype, folding constants."""
    return _folded(Binary("add", a, b, a.dtype))


def _folded(e: Binary) -> Expr:
    a, b = e.a, e.b
    if not e.dtype.is_int or e.dtype.lanes > 1:
        return e
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        value = fold_int(e.op, a.value, b.value, e.dtype)
        return e if value is None else IntImm(value, e.dtype)
    if isinstance(a, IntImm) and a.value == 0 and e.op in ("add", "mul"):
        return b if e.op == "add" else a
    if isinstance(b, IntImm) and b.value == 0 and e.op in ("add", "sub", "mul"):
        return b if e.op == "mul" else a
    return e
