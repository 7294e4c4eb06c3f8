"""Write unrolled loops out, one copy of the body for each iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from farbench_compiler.ir.expr import Binary, Expr, FloatImm, IntImm, Var
from farbench_compiler.ir.fold import fold_int
from farbench_compiler.ir.simplify import sequence
from farbench_compiler.ir.stmt import For, LoopFunction, Stmt
from farbench_compiler.ir.visit import children, map_children, node_count

MAX_NODES = 60_000  # beyond it machine code no longer fits the instruction cache; the loop stays


def unroll(fn: LoopFunction) -> LoopFunction:
    """Unroll loops of constant extent; others, and those that would get too long, become serial."""
    return replace(fn, body=_Unroller().stmt(fn.body, {}))


class _Unroller:
    """Expands from the outside in, with the values of the unrolled variables at hand.

    Copies of an expression under the same values are one object, so that what comes behind need
    not look at it again.
    """

    def __init__(self) -> None:
        self._used: dict[int, tuple[Expr, tuple[int, ...]]] = {}
        self._made: dict[tuple[int, tuple[int, ...]], Expr] = {}
        self._sizes: dict[int, tuple[Stmt, int]] = {}

    def stmt(self, s: Stmt, values: Mapping[int, IntImm]) -> Stmt:
        if not (isinstance(s, For) and s.kind == "unrolled"):
            return map_children(s, lambda e: self.expr(e, values), lambda t: self.stmt(t, values))
        begin, extent = self.expr(s.begin, values), self.expr(s.extent, values)
        constant = isinstance(begin, IntImm) and isinstance(extent, IntImm)
        if not constant or self._size(s) > MAX_NODES:
            return For(s.var, begin, extent, "serial", self.stmt(s.body, values))
        assert isinstance(begin, IntImm)
        assert isinstance(extent, IntImm)
        steps = (IntImm(begin.value + i, s.var.dtype) for i in range(extent.value))
        return sequence(self.stmt(s.body, {**values, s.var.uid: step}) for step in steps)

    def _size(self, node: Stmt) -> int:
        """Count the nodes of a statement once it is unrolled."""
        known = self._sizes.get(id(node))
        if known is not None:
            return known[1]
        size = 1
        for child in children(node):
            size += self._size(child) if isinstance(child, Stmt) else node_count(child)
        if isinstance(node, For) and node.kind == "unrolled" and isinstance(node.extent, IntImm):
            size *= max(1, node.extent.value)
        self._sizes[id(node)] = (node, size)
        return size

    def expr(self, e: Expr, values: Mapping[int, IntImm]) -> Expr:
        if isinstance(e, Var):
            return values.get(e.uid, e)
        if not values or isinstance(e, (IntImm, FloatImm)):
            return e
        known = self._used.get(id(e))
        used = known[1] if known is not None else self._variables(e)
        state = tuple([values[uid].value for uid in used if uid in values])
        if not state:
            return e
        key = (id(e), state)
        made = self._made.get(key)
        if made is None:
            made = map_children(e, lambda child: self.expr(child, values))
            made = self._made[key] = fold(made) if isinstance(made, Binary) else made
        return made

    def _variables(self, e: Expr) -> tuple[int, ...]:
        """List the variables below; the expression is kept alive, so that its id stays its own."""
        known = self._used.get(id(e))
        if known is None:
            below = [self._variables(child) for child in children(e) if isinstance(child, Expr)]
            uids = {uid for some in below for uid in some}
            if isinstance(e, Var):
                uids.add(e.uid)
            known = self._used[id(e)] = (e, tuple(sorted(uids)))
        return known[1]


def fold(e: Binary) -> Expr:
    """Fold scalar integer arithmetic with constants; no wider look than at the operands."""
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
