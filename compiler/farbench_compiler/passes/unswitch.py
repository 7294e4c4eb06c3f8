"""Lift conditions out of the loops that they do not depend on.

A guarded vector loop deep inside a nest has a branch without guards and one with them; lifted out
of the reduction around it, each branch keeps its sums in registers. What is lifted has two
branches already, so that no code is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farbench_compiler.ir.expr import Call, Expr, Load, Var
from farbench_compiler.ir.simplify import sequence
from farbench_compiler.ir.stmt import Allocate, For, IfThen, Let, LoopFunction, Seq, Stmt
from farbench_compiler.ir.structural import same
from farbench_compiler.ir.visit import map_children, walk


def unswitch(fn: LoopFunction) -> LoopFunction:
    """Lift what conditions it can; neighbours with one condition become one branch."""
    return replace(fn, body=_lift(fn.body))


def _lift(s: Stmt) -> Stmt:
    return _raise(map_children(s, _same, _lift))


def _same(e: Expr) -> Expr:
    return e


def _raise(s: Stmt) -> Stmt:
    """Bring the condition of the only branch below a statement above it."""
    match s:
        case Seq(stmts):
            return _joined(stmts)
        case For(var, _, _, _, IfThen() as branch) if _independent(branch.cond, var):
            loop = s
            return _around(branch, lambda body: _raise(replace(loop, body=body)))
        case Let(var, _, IfThen() as branch) if _independent(branch.cond, var):
            let = s
            return _around(branch, lambda body: _raise(replace(let, body=body)))
        case Allocate(_, IfThen() as branch) if _independent(branch.cond, None):
            place = s
            return _around(branch, lambda body: replace(place, body=body))
    return s


def _around(branch: IfThen, wrap: Callable[[Stmt], Stmt]) -> Stmt:
    otherwise = None if branch.otherwise is None else wrap(branch.otherwise)
    return IfThen(branch.cond, wrap(branch.then), otherwise)


def _independent(cond: Expr, var: Var | None) -> bool:
    """Tell whether a scalar condition is index arithmetic without `var`: it never changes there."""
    if cond.dtype.lanes > 1:
        return False
    uid = None if var is None else var.uid
    changes = (
        isinstance(n, (Load, Call)) or (isinstance(n, Var) and n.uid == uid) for n in walk(cond)
    )
    return not any(changes)


def _joined(stmts: tuple[Stmt, ...]) -> Stmt:
    """Put neighbours that have one condition under it together."""
    done: list[Stmt] = []
    for s in stmts:
        last = done[-1] if done else None
        if isinstance(s, IfThen) and isinstance(last, IfThen) and _alike(last.cond, s.cond):
            done[-1] = _both(last, s)
        else:
            done.append(s)
    return sequence(done)


def _alike(a: Expr, b: Expr) -> bool:
    return _independent(a, None) and same(a, b)


def _both(first: IfThen, second: IfThen) -> IfThen:
    rest = [b.otherwise for b in (first, second) if b.otherwise is not None]
    then = _raise(sequence((first.then, second.then)))
    return IfThen(first.cond, then, _raise(sequence(rest)) if rest else None)
