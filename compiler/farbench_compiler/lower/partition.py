"""Partition loops so that their main parts run without guards.

A guard that depends on a loop holds for all steps of the loops inside it once the loop's variable
is below (or above) a threshold. The loop is split there: serial loops into two loops, parallel
loops and bound values into two branches, so that no thread waits for the short part alone.
Outermost loops come first; in what is left over, constant thresholds trim the inner loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from farbench_compiler.ir import poly
from farbench_compiler.ir.expr import Expr, IntImm, Var, binary, compare
from farbench_compiler.ir.interval import Interval, bounds
from farbench_compiler.ir.poly import Poly
from farbench_compiler.ir.prove import Prover
from farbench_compiler.ir.simplify import Simplifier, sequence
from farbench_compiler.ir.stmt import Allocate, For, IfThen, Let, Seq, Stmt
from farbench_compiler.ir.visit import map_children, node_count
from farbench_compiler.lower.threshold import GuardedStmts, Threshold, code_size, thresholds

# A copy of a body is made while the program stays below this size, in nodes once unrolled.
SIZE_LIMIT = 60_000
# Cuts hold the cuts before them: without a bound, loops with several guards of symbolic size would
# grow them exponentially.
CUT_LIMIT = 12
# A padded and tiled loop has up to four thresholds of its own.
MAX_SPLITS = 4


@dataclass
class _Budget:
    left: int

    def takes(self, size: int) -> bool:
        """Spend `size` if that much is left."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(frozen=True)
class _Known:
    """Ranges of variables and facts (polynomials that are not negative) at one place."""

    ranges: Mapping[Var, Interval]
    facts: tuple[Poly, ...] = ()

    def under(self, ranges: Mapping[Var, Interval], facts: Iterable[Poly] = ()) -> _Known:
        return _Known({**self.ranges, **ranges}, (*self.facts, *facts))

    @cached_property
    def simplifier(self) -> Simplifier:
        return Simplifier(self.ranges, self.facts)

    def simplified(self, s: Stmt, var: Var, value: Expr | None = None) -> Stmt:
        """Simplify what was simplified before more was known of a variable, or its one value."""
        values = {} if value is None else {var: value}
        return Simplifier(self.ranges, self.facts, values, frozenset((var,))).stmt(s)

    def proves(self, e: Expr) -> bool:
        """Prove that an expression is not negative."""
        return Prover(self.ranges, self.facts).non_negative(poly.of(self.simplifier.expr(e)))


def partition(body: Stmt, ranges: Mapping[Var, Interval]) -> Stmt:
    """Split loops at the thresholds of the guards inside them."""
    budget = _Budget(max(0, SIZE_LIMIT - code_size(body)))
    return _Partitioner(budget, GuardedStmts()).stmt(body, _Known(ranges))


@dataclass(frozen=True)
class _Partitioner:
    budget: _Budget
    guarded: GuardedStmts

    def stmt(self, s: Stmt, known: _Known) -> Stmt:
        """Partition a statement and what is in it."""
        match s:
            case For():
                return self._loop(s, known)
            case Let(var, value, body):
                return self._let(var, value, body, known)
            case IfThen(cond, then, otherwise):
                rest = None if otherwise is None else self.stmt(otherwise, known)
                return IfThen(cond, self.stmt(then, known), rest)
            case Seq(stmts):
                return sequence(self.stmt(part, known) for part in stmts)
            case Allocate():
                return map_children(s, lambda e: e, lambda inner: self.stmt(inner, known))
        return s

    def _loop(self, s: For, known: _Known, done: frozenset[str] = frozenset()) -> Stmt:
        """Partition a loop at the first threshold that is not `done` and gains something."""
        last = known.simplifier.expr(s.begin + s.extent - 1)
        inside = known.under({s.var: Interval(s.begin, last)})
        if s.kind == "parallel":
            body = self._branches(s.var, s.body, inside)
            return For(s.var, s.begin, s.extent, s.kind, body)
        for found in self._open(s.body, s.var, inside, done):
            made = self._split_loop(s, found, known, done | {found.name})
            if made is not None:
                return made
        return For(s.var, s.begin, s.extent, s.kind, self.stmt(s.body, inside))

    def _open(
        self, body: Stmt, var: Var, known: _Known, done: frozenset[str]
    ) -> Iterator[Threshold]:
        """Give the thresholds that are left; where a proof fails, the same one turns up again."""
        if len(done) < MAX_SPLITS and body in self.guarded:
            found = thresholds(body, var, known.ranges)
            yield from (t for t in found if t.name not in done)

    def _split_loop(
        self, s: For, found: Threshold, known: _Known, done: frozenset[str]
    ) -> Stmt | None:
        """Split a loop at a threshold; None where that gains nothing or costs too much."""
        end = known.simplifier.expr(s.begin + s.extent)
        low = binary("max", found.at, s.begin)
        cut = known.simplifier.expr(binary("min", low, end))
        if s.kind in ("vectorized", "unrolled") and not isinstance(cut, IntImm):
            return None
        if node_count(cut) > CUT_LIMIT:
            return None
        never = known.proves(s.begin - cut) if found.below else known.proves(cut - end)
        if never or not self.budget.takes(code_size(s.body)):
            return None
        before = known.under(_range(s.var, s.begin, cut, known), found.facts(True))
        behind = known.under(_range(s.var, cut, end, known), found.facts(False))
        return sequence((
            self._part(s, (s.begin, cut), known, before, done),
            self._part(s, (cut, end), known, behind, done),
        ))  # fmt: skip

    def _part(
        self, s: For, ends: tuple[Expr, Expr], known: _Known, inside: _Known, done: frozenset[str]
    ) -> Stmt:
        """Give the loop between two ends; what is known `inside` holds in its body alone."""
        extent = known.simplifier.expr(ends[1] - ends[0])
        if known.proves(0 - extent):
            return Seq(())
        if isinstance(extent, IntImm) and extent.value == 1:
            return self._one_value(s.body, s.var, inside)
        body = inside.simplified(s.body, s.var)
        return self._loop(For(s.var, ends[0], extent, s.kind, body), known, done)

    def _one_value(self, body: Stmt, var: Var, known: _Known) -> Stmt:
        """Simplify and partition a body whose variable has one value."""
        low = known.ranges[var].low
        value = low if isinstance(low, Expr) else None
        return self.stmt(known.simplified(body, var, value), known)

    def _let(self, var: Var, value: Expr, body: Stmt, known: _Known) -> Stmt:
        low, high = bounds(value, known.ranges).numbers
        first = None if low is None else IntImm(low)
        last = None if high is None else IntImm(high)
        return Let(var, value, self._branches(var, body, known.under({var: Interval(first, last)})))

    def _branches(
        self, var: Var, body: Stmt, known: _Known, done: frozenset[str] = frozenset()
    ) -> Stmt:
        """Branch at the thresholds of a variable whose range is known."""
        low, high = known.ranges[var].low, known.ranges[var].high
        if isinstance(low, Expr) and isinstance(high, Expr) and known.proves(low - high):
            return self._one_value(body, var, known)
        for found in self._open(body, var, known, done):
            at = known.simplifier.expr(found.at)
            never = known.proves(var - at) if found.below else known.proves(at - 1 - var)
            if never or not self.budget.takes(code_size(body)):
                continue
            parts = (
                known.under({var: Interval(low, at - 1)}, found.facts(True)),
                known.under({var: Interval(at, high)}, found.facts(False)),
            )
            yes, no = (
                self._branches(var, part.simplified(body, var), part, done | {found.name})
                for part in parts
            )
            return IfThen(compare("lt", var, at), yes, no)
        return self.stmt(body, known)


def _range(var: Var, begin: Expr, end: Expr, known: _Known) -> dict[Var, Interval]:
    return {var: Interval(begin, known.simplifier.expr(end - 1))}
