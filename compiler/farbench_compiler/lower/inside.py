"""Refuse what surely leaves a tensor: an affine index whose range is known and not inside.

Only what certainly runs is looked at: under loops of a constant number of steps, outside of every
condition. There a sum of multiples of loop variables takes its least and its greatest value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from farbench_compiler.errors import LoweringError
from farbench_compiler.ir import poly as P
from farbench_compiler.ir.expr import (
    Buffer,
    Cast,
    Expr,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Select,
    Var,
)
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.poly import Poly
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.prove import Prover
from farbench_compiler.ir.stmt import For, IfThen, Let, LoopFunction, Prefetch, Stmt, Store
from farbench_compiler.ir.visit import children, expr_children

Steps = Mapping[Var, Interval]


def check_inside(fn: LoopFunction) -> None:
    """Raise LoweringError for an index that is outside of its tensor's extent in some step."""
    _stmt(fn.name, fn.body, {})


def _stmt(name: str, s: Stmt, steps: Steps) -> None:
    match s:
        case IfThen() | Prefetch():
            return
        case For(var, IntImm(begin), IntImm(extent), _, body):
            if extent > 0:
                _stmt(name, body, {**steps, var: Interval(begin, begin + extent - 1)})
            return
        case For():
            return
        case Let(_, value, body):
            _exprs(name, (value,), steps)
            _stmt(name, body, steps)
            return
        case Store(buffer, indices, _):
            _check(name, "written", buffer, indices, steps)
    for child in children(s):
        if isinstance(child, Stmt):
            _stmt(name, child, steps)
        else:
            _exprs(name, (child,), steps)


def _exprs(name: str, exprs: Iterable[Expr], steps: Steps) -> None:
    for e in exprs:
        if isinstance(e, (IfThenElse, Select)):
            _exprs(name, (e.cond,), steps)
        elif isinstance(e, Logic):
            _exprs(name, (e.a,), steps)
        else:
            if isinstance(e, Load):
                _check(name, "read", e.buffer, e.indices, steps)
            _exprs(name, expr_children(e), steps)


def _check(name: str, what: str, buffer: Buffer, indices: tuple[Expr, ...], steps: Steps) -> None:
    for at, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
        size = _size(extent)
        if size is None or index.dtype.lanes > 1:
            continue
        known = P.of(index)
        if not _is_affine(known, steps):
            continue
        low, high = Prover(steps).bounds(known).numbers
        if low is not None and high is not None and (low < 0 or high >= size):
            raise LoweringError(
                f"{name}: {buffer.name} is {what} outside of dimension {at}: index "
                f"{to_text(index)} runs from {low} to {high}, the extent is {size}; change the "
                "shape or choose with te.if_then_else"
            )


def _size(extent: Expr) -> int | None:
    plain = extent.value if isinstance(extent, Cast) else extent
    return plain.value if isinstance(plain, IntImm) else None


def _is_affine(p: Poly, steps: Steps) -> bool:
    """Tell whether the bounds of a polynomial are taken: one loop variable a term, each alone."""
    atoms = [term.atoms for term in p.terms.values()]
    return all(len(some) == 1 and isinstance(some[0], Var) and some[0] in steps for some in atoms)
