"""Thresholds: from where on in a loop a guard inside it holds, whatever the inner loops do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farbench_compiler.ir import poly
from farbench_compiler.ir.expr import Expr, IfThenElse, IntImm, Load, Var, binary
from farbench_compiler.ir.interval import Interval, bounds
from farbench_compiler.ir.poly import Poly
from farbench_compiler.ir.prove import facts_of
from farbench_compiler.ir.relax import Relaxer
from farbench_compiler.ir.simplify import Simplifier
from farbench_compiler.ir.stmt import For, IfThen, Let, Stmt, Store
from farbench_compiler.ir.structural import key
from farbench_compiler.ir.visit import children, free_vars, node_count, walk

Ranges = Mapping[Var, Interval]

# Choices between values must be this share of a loop's code, one in so many, to split it.
CHOICE_SHARE = 4


@dataclass(frozen=True, slots=True)
class Threshold:
    """A guard holds for var < at (`below`) or for var >= at; where it does, worst >= 0."""

    at: Expr
    below: bool
    worst: Poly

    @property
    def name(self) -> str:
        """A text that thresholds of the same place and direction share."""
        return f"{'<' if self.below else '>='}{key(self.at)}"

    def facts(self, first: bool) -> tuple[Poly, ...]:
        """Give what is known in the part before the threshold, or in the part behind it."""
        if first == self.below:
            return (self.worst,)
        return (poly.add(poly.number(-1), self.worst, -1),)


@dataclass(frozen=True, slots=True)
class _Guard:
    """A condition below a loop: fact >= 0, with the loops in between, and what it guards.

    `choice` tells that it chooses between values, where the code runs either way.
    """

    fact: Poly
    inner: Ranges
    size: int
    choice: bool


class GuardedStmts:
    """Tells which statements hold a guard, and looks at each of them once."""

    def __init__(self) -> None:
        # By identity; the statement is kept alive, so that its id stays its own.
        self._known: dict[int, tuple[Stmt, bool]] = {}

    def __contains__(self, s: Stmt) -> bool:
        known = self._known.get(id(s))
        if known is None:
            known = self._known[id(s)] = (s, self._looked_at(s))
        return known[1]

    def _looked_at(self, s: Stmt) -> bool:
        match s:
            case IfThen():
                return True
            case Store(_, _, value):
                return any(isinstance(node, IfThenElse) for node in walk(value))
        return any(child in self for child in children(s) if isinstance(child, Stmt))


def thresholds(body: Stmt, var: Var, ranges: Ranges) -> Iterator[Threshold]:
    """Find the thresholds of the guards in the body of a loop over `var`."""
    seen: set[str] = set()
    total: int | None = None
    for guard in _guards(body, {}, 1):
        if guard.choice:
            total = code_size(body) if total is None else total
            # A copy of much code for the sake of a little (a padded border) would not pay.
            if guard.size * CHOICE_SHARE < total:
                continue
        if not any(var in term.atoms for term in guard.fact.terms.values()):
            continue
        found = _solve(guard.fact, var, guard.inner, ranges)
        if found is not None and found.name not in seen:
            seen.add(found.name)
            yield found


def _guards(s: Stmt, inner: Ranges, times: int) -> Iterator[_Guard]:
    """Give each conjunct of the guards below, with the loops between it and the top."""
    match s:
        case For(var, begin, extent, _, body):
            inside = {**inner, var: Interval(begin, begin + extent - 1)}
            yield from _guards(body, inside, times * _copies(s))
            return
        case Let(var, value, body):
            yield from _guards(body, {**inner, var: bounds(value, inner)}, times)
            return
        case IfThen(cond, _, _):
            yield from (_Guard(fact, inner, 0, False) for fact in facts_of(cond))
        case Store(_, _, value):
            choices = [n for n in walk(value) if isinstance(n, IfThenElse)]
            size = times * code_size(s) if choices else 0
            for n in choices:
                yield from (_Guard(fact, inner, size, True) for fact in facts_of(n.cond))
            return
    for child in children(s):
        if isinstance(child, Stmt):
            yield from _guards(child, inner, times)


def _solve(fact: Poly, var: Var, inner: Ranges, ranges: Ranges) -> Threshold | None:
    """Solve min(fact over the inner loops) >= 0 for the variable, in which it must be linear."""
    moving = {v: r for v, r in inner.items() if _holds(fact, v)}
    fixed = {v: r for v, r in ranges.items() if v not in moving}
    e = poly.to_expr(fact, var.dtype)
    low = Relaxer(moving, fixed)(e).low if moving else Simplifier(fixed).expr(e)
    if not isinstance(low, Expr) or any(isinstance(n, Load) for n in walk(low)):
        return None
    if any(v in inner for v in free_vars(low)):
        return None
    worst = poly.of(low)
    name = (key(var),)
    term = worst.terms.get(name)
    if term is None or sum(_mentions(t.atoms, var) for t in worst.terms.values()) != 1:
        return None
    rest = Poly({n: t for n, t in worst.terms.items() if n != name}, worst.constant, worst.pure)
    step = abs(term.coefficient)
    r = poly.to_expr(rest, var.dtype)
    if term.coefficient < 0:  # r - step*var >= 0
        at = binary("floordiv", r, IntImm(step, var.dtype)) + 1
    else:  # r + step*var >= 0
        at = binary("floordiv", step - 1 - r, IntImm(step, var.dtype))
    return Threshold(Simplifier(fixed).expr(at), term.coefficient < 0, worst)


def _mentions(atoms: tuple[Expr, ...], var: Var) -> bool:
    return any(var in free_vars(atom) for atom in atoms)


def _holds(fact: Poly, var: Var) -> bool:
    return any(_mentions(term.atoms, var) for term in fact.terms.values())


def code_size(s: Stmt) -> int:
    """Count the nodes of a statement as they are once its loops are unrolled."""
    if isinstance(s, For):
        return 1 + _copies(s) * code_size(s.body)
    return 1 + sum(
        node_count(child) if isinstance(child, Expr) else code_size(child) for child in children(s)
    )


def _copies(s: For) -> int:
    unrolled = s.kind == "unrolled" and isinstance(s.extent, IntImm)
    return max(1, s.extent.value) if unrolled and isinstance(s.extent, IntImm) else 1
