"""Check that loop IR is legal at its stage, so that a wrong program stops where it is born.

Stages: `lowered` (what lowering leaves: as many indices as dimensions, every kind of loop, no
vectors but those of declared intrinsics), `linear` (one index a buffer, vectors may stand beside
loops still to be vectorised or unrolled), `flat` (what machine code is emitted from).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from farbench_compiler.errors import VerifyError
from farbench_compiler.ir import dots
from farbench_compiler.ir.dtypes import BOOL, DType
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
)
from farbench_compiler.ir.intrinsics import INTRINSICS
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThen,
    Let,
    LoopFunction,
    Prefetch,
    Require,
    Seq,
    Stmt,
    Store,
)
from farbench_compiler.ir.visit import expr_children

Stage = Literal["lowered", "linear", "flat"]

_SCALARS: frozenset[type[Expr]] = frozenset(
    (Var, IntImm, FloatImm, Cast, Binary, Compare, Logic, Not, Select, IfThenElse, Call, Load)
)
_STMTS: frozenset[type[Stmt]] = frozenset(
    (For, Store, IfThen, Seq, Allocate, Let, Evaluate, Prefetch, Require)
)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a stage allows."""

    exprs: frozenset[type[Expr]]
    loops: frozenset[str]
    one_index: bool


STAGES: dict[Stage, _Rules] = {
    "lowered": _Rules(
        _SCALARS | {Ramp, Broadcast},
        frozenset(("serial", "parallel", "vectorized", "unrolled")),
        one_index=False,
    ),
    "linear": _Rules(
        _SCALARS | {Ramp, Broadcast},
        frozenset(("serial", "parallel", "vectorized", "unrolled")),
        one_index=True,
    ),
    # A loop that is still vectorised is a reduction which the machine-code side vectorises.
    "flat": _Rules(
        _SCALARS | {Ramp, Broadcast},
        frozenset(("serial", "parallel", "vectorized")),
        one_index=True,
    ),
}


def verify(fn: LoopFunction, stage: Stage, after: str = "lowering") -> None:
    """Check a function; VerifyError names the pass that ran before (`after`) and the node."""
    _Verifier(fn, STAGES[stage], f"{fn.name}: after {after} ({stage})").run()


class _Verifier:
    def __init__(self, fn: LoopFunction, rules: _Rules, where: str) -> None:
        self._fn = fn
        self._rules = rules
        self._where = where
        self._vars = {v.uid for v in (*fn.symbols, *fn.scalars)}
        self._buffers = {b.uid for b in (*fn.buffers, *fn.constants)}
        # Expressions found legal, by scope: what holds outside holds inside, where more is bound.
        # Unrolled code shares them, and a function outlives its check, so that ids stay unique.
        self._legal: list[set[int]] = [set()]

    def _fail(self, what: str, node: Expr | Stmt) -> VerifyError:
        text = to_text(node).splitlines()[0].strip()
        return VerifyError(f"{self._where}: {what}: {text[:160]}")

    def _need(self, holds: bool, what: str, node: Expr | Stmt) -> None:
        if not holds:
            raise self._fail(what, node)

    def run(self) -> None:
        for buffer in self._fn.buffers:
            for extent in buffer.shape:
                self._expr(extent)
        self._stmt(self._fn.body)

    def _stmt(self, s: Stmt) -> None:
        self._need(type(s) in _STMTS, f"no {type(s).__name__} belongs here", s)
        match s:
            case For():
                self._loop(s)
            case Store(buffer, indices, value):
                self._access(buffer, indices, value.dtype, s)
                self._need(buffer.writable, f"{buffer.name} is read only", s)
                self._expr(value)
            case IfThen(cond, then, otherwise):
                self._need(cond.dtype.is_bool, f"the condition is {cond.dtype}", s)
                self._expr(cond)
                self._stmt(then)
                if otherwise is not None:
                    self._stmt(otherwise)
            case Seq(stmts):
                self._all(stmts)
            case Allocate(buffer, body):
                self._allocate(s, buffer, body)
            case Let(var, value, body):
                self._expr(value)
                self._need(var.dtype == value.dtype, f"{var.dtype} bound to {value.dtype}", s)
                with self._bound(var, s):
                    self._stmt(body)
            case Evaluate(value):
                self._expr(value)
            case Prefetch(buffer, indices):
                self._access(buffer, indices, buffer.dtype, s)
            case Require(cond, _):
                self._need(cond.dtype == BOOL, f"the condition is {cond.dtype}", s)
                self._all((cond, *s.values))

    def _all(self, nodes: Iterable[Expr | Stmt]) -> None:
        for node in nodes:
            if isinstance(node, Expr):
                self._expr(node)
            else:
                self._stmt(node)

    @contextmanager
    def _bound(self, var: Var, s: Stmt) -> Iterator[None]:
        self._need(var.uid not in self._vars, f"{var.name} is bound twice", s)
        self._vars.add(var.uid)
        self._legal.append(set())
        yield
        self._legal.pop()
        self._vars.remove(var.uid)

    def _loop(self, s: For) -> None:
        self._need(s.kind in self._rules.loops, f"no {s.kind} loop belongs here", s)
        for end in (s.begin, s.extent):
            self._need(end.dtype == s.var.dtype, f"{s.var.dtype} loop to {end.dtype}", s)
            self._expr(end)
        self._need(s.var.dtype.is_int, f"the loop variable is {s.var.dtype}", s)
        with self._bound(s.var, s):
            self._stmt(s.body)

    def _allocate(self, s: Stmt, buffer: Buffer, body: Stmt) -> None:
        outside = buffer.scope in ("arg", "const")
        self._need(not outside, "an argument or a constant is allocated", s)
        self._need(buffer.uid not in self._buffers, f"{buffer.name} is allocated twice", s)
        for extent in buffer.shape:
            self._expr(extent)
            constant = isinstance(extent, IntImm) or buffer.scope != "local"
            self._need(constant, "a local buffer has no constant size", s)
        self._buffers.add(buffer.uid)
        self._legal.append(set())
        self._stmt(body)
        self._legal.pop()
        self._buffers.remove(buffer.uid)

    def _access(
        self, buffer: Buffer, indices: tuple[Expr, ...], value: DType, node: Expr | Stmt
    ) -> None:
        if buffer.uid not in self._buffers:
            raise self._fail(f"{buffer.name} is not allocated here", node)
        wanted = 1 if self._rules.one_index else len(buffer.shape)
        # Here and below, what happens most often makes no text.
        if len(indices) != wanted:
            raise self._fail(f"{wanted} indices expected", node)
        lanes = max((i.dtype.lanes for i in indices), default=1)
        if value != (buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(lanes)):
            raise self._fail(f"{value} does not fit {buffer.dtype} at {lanes} lanes", node)
        for index in indices:
            if not index.dtype.is_int:
                raise self._fail(f"the index is {index.dtype}", node)
            self._expr(index)

    def _expr(self, e: Expr) -> None:
        for legal in self._legal:
            if id(e) in legal:
                return
        self._check(e)
        self._legal[-1].add(id(e))

    def _check(self, e: Expr) -> None:
        if type(e) not in self._rules.exprs:
            raise self._fail(f"no {type(e).__name__} belongs here", e)
        match e:
            case Var(_, _, uid):
                self._need(uid in self._vars, "the variable is bound nowhere", e)
            case Load(buffer, indices, dtype):
                self._access(buffer, indices, dtype, e)
                return
            case _:
                problem = _type_problem(e)
                self._need(problem is None, problem or "", e)
        for child in expr_children(e):
            self._expr(child)


def _call_problem(e: Call) -> str | None:
    if e.name in dots.NAMES:
        return dots.misfit(e)
    return None if e.name in INTRINSICS else f"{e.name} is no intrinsic"


def _type_problem(e: Expr) -> str | None:
    """Say what is wrong with the dtypes of an expression, if anything is."""
    match e:
        case Binary(_, a, b, dtype) if not a.dtype == b.dtype == dtype:
            return f"{a.dtype} and {b.dtype} give {dtype}"
        case Compare(_, a, b, dtype) if a.dtype != b.dtype or dtype.lanes != a.dtype.lanes:
            return f"{a.dtype} and {b.dtype} are compared to {dtype}"
        case Logic(_, a, b, dtype) if not a.dtype == b.dtype == dtype or not dtype.is_bool:
            return f"{a.dtype} and {b.dtype} are joined to {dtype}"
        case Select(cond, a, b, dtype) | IfThenElse(cond, a, b, dtype):
            if not a.dtype == b.dtype == dtype or not cond.dtype.is_bool:
                return f"{cond.dtype} chooses between {a.dtype} and {b.dtype} for {dtype}"
            if cond.dtype.lanes not in (1, dtype.lanes):
                return f"{cond.dtype} chooses {dtype}"
        case Cast(dtype, value) if dtype.lanes != value.dtype.lanes:
            return f"{value.dtype} cast to {dtype}"
        case Call():
            return _call_problem(e)
        case Broadcast(value, lanes, dtype) if dtype != value.dtype.with_lanes(lanes):
            return f"{value.dtype} broadcast to {dtype}"
        case Ramp(base, stride, lanes, dtype):
            if base.dtype != stride.dtype or dtype != base.dtype.with_lanes(lanes):
                return f"{base.dtype} and {stride.dtype} ramp to {dtype}"
    return None
