"""Debug builds: before a statement runs, what could go wrong in it is asked, and stops the call.

Checked are the indices of loads and stores, integer divisors and the widths of shifts. Loops run
serially and one step after the other, so that the first error of the program's order is told.
What can be proven is not asked; vectors (of declared intrinsics) are checked at both ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from farbench_compiler.ir.dtypes import INT64
from farbench_compiler.ir.expr import (
    Binary,
    Buffer,
    Expr,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    binary,
    cast,
    compare,
    logic,
)
from farbench_compiler.ir.fold import DIVISIONS
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.simplify import sequence, simplify
from farbench_compiler.ir.stmt import (
    Allocate,
    For,
    IfThen,
    LoopFunction,
    Prefetch,
    Require,
    Seq,
    Stmt,
    Store,
)
from farbench_compiler.ir.visit import children, expr_children, map_children

_MAX_NAME = 60  # letters: the text of an error has 255 at most
_SHIFTS = frozenset(("shl", "shr"))


def add_checks(fn: LoopFunction) -> LoopFunction:
    """Put a check before every statement that could leave an array or divide by zero."""
    ranges = {symbol: Interval(0, None) for symbol in fn.symbols}
    checked = simplify(_Checks(fn.name[:_MAX_NAME]).stmt(fn.body), ranges)
    return replace(fn, body=_without_proven(checked))


class _Checks:
    def __init__(self, function: str) -> None:
        self._function = function

    def stmt(self, s: Stmt) -> Stmt:
        checks = [check for e in _evaluated(s) for check in self._of(e)]
        if isinstance(s, Store):
            checks += self._inside("store to", s.buffer, s.indices)
        s = map_children(s, lambda e: e, self.stmt)
        if isinstance(s, For):
            s = replace(s, kind="serial")
        return sequence((*checks, s))

    def _of(self, e: Expr) -> Iterator[Stmt]:
        """Give the checks of an expression in the order of its evaluation."""
        if isinstance(e, IfThenElse):
            yield from self._of(e.cond)
            then, otherwise = (sequence(self._of(side)) for side in (e.a, e.b))
            if e.cond.dtype.lanes == 1:
                yield IfThen(e.cond, then, otherwise)
            return
        if isinstance(e, Logic) and e.dtype.lanes == 1:
            yield from self._of(e.a)
            asks = e.a if e.op == "and" else Not(e.a, e.a.dtype)
            behind = sequence(self._of(e.b))
            if not isinstance(behind, Seq) or behind.stmts:
                yield IfThen(asks, behind)
            return
        for child in expr_children(e):
            yield from self._of(child)
        match e:
            case Load(buffer, indices, _):
                yield from self._inside("load from", buffer, indices)
            case Binary(op, _, b, dtype) if dtype.is_int and dtype.lanes == 1:
                yield from self._operand(op, b)

    def _inside(self, what: str, buffer: Buffer, indices: tuple[Expr, ...]) -> Iterator[Stmt]:
        for at, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            size = cast(INT64, extent)
            for place in _ends(index):
                if place.dtype.lanes > 1:
                    continue
                found = cast(INT64, place)
                cond = logic("and", compare("ge", found, 0), compare("lt", found, size))
                where = f"{self._function}: {what} {buffer.name[:_MAX_NAME]}, dimension {at}"
                yield Require(cond, (f"{where}: index ", found, " is outside of [0, ", size, ")"))

    def _operand(self, op: str, b: Expr) -> Iterator[Stmt]:
        if op in DIVISIONS:
            yield Require(compare("ne", b, 0), (f"{self._function}: {op} by zero",))
        elif op in _SHIFTS:
            bits, by = b.dtype.bits, cast(INT64, b)
            cond = logic("and", compare("ge", by, 0), compare("lt", by, bits))
            text = f" is outside of [0, {bits}) of {b.dtype}"
            yield Require(cond, (f"{self._function}: {op} by ", by, text))


def _evaluated(s: Stmt) -> tuple[Expr, ...]:
    """List the expressions that a statement evaluates before those inside of it."""
    if isinstance(s, (Prefetch, Require)):
        return ()
    return tuple(child for child in children(s) if isinstance(child, Expr))


def _ends(index: Expr) -> tuple[Expr, ...]:
    if not isinstance(index, Ramp):
        return (index,)
    last = binary("add", index.base, binary("mul", index.stride, index.lanes - 1))
    return (index.base, last)


def _without_proven(s: Stmt) -> Stmt:
    if isinstance(s, Require) and isinstance(s.cond, IntImm) and s.cond.value:
        return Seq(())
    s = map_children(s, lambda e: e, _without_proven)
    match s:
        case Seq(stmts):
            return sequence(stmts)
        case IfThen(_, Seq(()), None | Seq(())):
            return Seq(())
        case Allocate(_, Seq(())):
            return Seq(())
    return s
