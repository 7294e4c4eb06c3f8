"""Partition loops so that their main parts run without guards.

A guard that depends on a loop holds for all steps of the loops inside it once the loop's variable
is below (or above) a threshold. The loop is split there: serial loops into two loops, parallel
loops and bound values into two branches, so that no thread waits for the short part alone.
Outermost loops come first; in what is left over, constant thresholds trim the inner loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farbench_compiler.ir import poly
from farbench_compiler.ir.expr import Expr, IntImm, Var, binary, compare
from farbench_compiler.ir.interval import Interval, bounds
from farbench_compiler.ir.poly import Poly
from farbench_compiler.ir.prove import Prover
from farbench_compiler.ir.simplify import Simplifier, sequence
from farbench_compiler.ir.stmt import Allocate, For, IfThen, Let, Seq, Stmt
from farbench_compiler.ir.visit import map_children, substitute, walk
from farbench_compiler.lower.threshold import Threshold, code_size, thresholds

# A copy of a body is made while the program stays below this size, in nodes once unrolled.
SIZE_LIMIT = 60_000
# Cuts hold the cuts before them: without a bound, loops with several guards of symbolic size would
# grow them exponentially.
CUT_LIMIT = 12


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

    @property
    def simplifier(self) -> Simplifier:
        return Simplifier(self.ranges, self.facts)

    def proves(self, e: Expr) -> bool:
        """Prove that an expression is not negative."""
        return Prover(self.ranges, self.facts).non_negative(poly.of(self.simplifier.expr(e)))


def partition(body: Stmt, ranges: Mapping[Var, Interval]) -> Stmt:
    """Split loops at the thresholds of the guards inside them."""
    budget = _Budget(max(0, SIZE_LIMIT - code_size(body)))
    return _Partitioner(budget).stmt(body, _Known(ranges))


@dataclass(frozen=True)
class _Partitioner:
    budget: _Budget

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

    def _loop(self, s: For, known: _Known) -> Stmt:
        end = known.simplifier.expr(s.begin + s.extent)
        inside = known.under({s.var: Interval(s.begin, known.simplifier.expr(end - 1))})
        for found in thresholds(s.body, s.var, inside.ranges):
            made = self._split_loop(s, end, found, known)
            if made is not None:
                return made
        return For(s.var, s.begin, s.extent, s.kind, self.stmt(s.body, inside))

    def _split_loop(self, s: For, end: Expr, found: Threshold, known: _Known) -> Stmt | None:
        """Split a loop at a threshold; None where that gains nothing or costs too much."""
        low = binary("max", found.at, s.begin)
        cut = known.simplifier.expr(binary("min", low, end))
        if s.kind in ("vectorized", "unrolled") and not isinstance(cut, IntImm):
            return None
        if sum(1 for _ in walk(cut)) > CUT_LIMIT:
            return None
        above = known.proves(s.begin - cut)  # the cut is at the beginning
        below = known.proves(cut - end)
        if (above if found.below else below) or not self.budget.takes(code_size(s.body)):
            return None
        before = known.under(_range(s.var, s.begin, cut, known), found.facts(True))
        behind = known.under(_range(s.var, cut, end, known), found.facts(False))
        if s.kind == "parallel":
            yes, no = (self._body(s.body, s.var, k) for k in (before, behind))
            cond = compare("lt", s.var, cut)
            return For(s.var, s.begin, s.extent, s.kind, IfThen(cond, yes, no))
        return sequence((
            self._part(s, s.begin, cut, known, before),
            self._part(s, cut, end, known, behind),
        ))  # fmt: skip

    def _part(self, s: For, begin: Expr, end: Expr, known: _Known, inside: _Known) -> Stmt:
        """Give the loop from begin to end; what is known `inside` holds in its body alone."""
        extent = known.simplifier.expr(end - begin)
        if known.proves(0 - extent):
            return Seq(())
        if isinstance(extent, IntImm) and extent.value == 1:
            return self._body(s.body, s.var, inside)
        body = inside.simplifier.stmt(s.body)
        return self.stmt(For(s.var, begin, extent, s.kind, body), known)

    def _body(self, body: Stmt, var: Var, known: _Known) -> Stmt:
        """Simplify and partition a body where its variable lies in the range that is known."""
        span = known.ranges[var]
        low, high = span.low, span.high
        if isinstance(low, Expr) and isinstance(high, Expr) and known.proves(low - high):
            body = substitute(body, {var: low})
        return self.stmt(known.simplifier.stmt(body), known)

    def _let(self, var: Var, value: Expr, body: Stmt, known: _Known) -> Stmt:
        span = bounds(value, known.ranges)
        inside = known.under({var: span})
        low, high = span.numbers
        for found in thresholds(body, var, inside.ranges):
            at = known.simplifier.expr(found.at)
            if not self.budget.takes(code_size(body)):
                break
            last = None if high is None else IntImm(high)
            first = None if low is None else IntImm(low)
            yes = inside.under({var: Interval(first, at - 1)}, found.facts(True))
            no = inside.under({var: Interval(at, last)}, found.facts(False))
            made = (self._body(body, var, k) for k in (yes, no))
            return Let(var, value, IfThen(compare("lt", var, at), *made))
        return Let(var, value, self.stmt(body, inside))


def _range(var: Var, begin: Expr, end: Expr, known: _Known) -> dict[Var, Interval]:
    return {var: Interval(begin, known.simplifier.expr(end - 1))}
