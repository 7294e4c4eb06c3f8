"""Regions: which part of a tensor the steps of some loops touch.

A span is the symbolic interval of an index when some variables run over their ranges and the
others stay fixed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from farbench_compiler.ir import poly
from farbench_compiler.ir.expr import Expr, Load, Var, const
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.relax import Relaxer
from farbench_compiler.ir.visit import free_vars, walk
from farbench_compiler.lower.variables import Variables


@dataclass(frozen=True, slots=True)
class Span:
    """The integers from `low` to `high`, both included."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of one dimension: begin, ..., begin + extent - 1."""

    begin: Expr
    extent: Expr


def span_of(index: Expr, fixed: Container[Var], variables: Variables) -> Span | None:
    """Bound an index while the loop variables that are not `fixed` run; None if unknown."""
    if any(isinstance(n, Load) for n in walk(index)):
        return None
    span: Span | None = Span(index, index)
    # An end may hold a variable again, through the extent of a loop: one more round frees it.
    for _ in range(4):
        if span is None:
            return None
        moving = {
            v
            for e in (span.low, span.high)
            for v in free_vars(e)
            if variables.is_loop(v) and v not in fixed
        }
        if not moving:
            return span
        relax = Relaxer({v: Interval(0, variables.extent(v) - 1) for v in moving}, variables.ranges)
        span = _joined(relax(span.low), relax(span.high))
    return None


def _joined(first: Interval, last: Interval) -> Span | None:
    low, high = first.low, last.high
    if not isinstance(low, Expr) or not isinstance(high, Expr):
        return None
    return Span(low, high)


def union(spans: Iterable[Span], variables: Variables) -> Span:
    """Give the least span that covers all."""
    low: Expr | None = None
    high: Expr | None = None
    for span in spans:
        low = span.low if low is None else variables.least(low, span.low)
        high = span.high if high is None else variables.greatest(high, span.high)
    if low is None or high is None:
        raise ValueError("no spans to join")
    return Span(low, high)


def clamp(span: Span | None, size: Expr, variables: Variables) -> Part:
    """Turn a span into the part of a dimension of `size` to compute.

    The part may reach beyond the dimension where that keeps its extent constant; whoever computes
    it guards each element. The extent never holds a loop variable.
    """
    whole = Part(const(0), variables.simplify(size))
    if span is None:
        return whole
    low, high = variables.simplify(span.low), variables.simplify(span.high)
    starts, ends = variables.proves(const(0) - low), variables.proves(high - size + 1)
    if starts and ends:
        return whole
    plain = _part(low, high, variables)
    low = const(0) if starts else low
    high = size - 1 if ends else high
    cut = _part(low, high, variables)
    if variables.varies(cut.extent) and not variables.varies(plain.extent):
        cut = plain
    if variables.varies(cut.extent):
        most = span_of(cut.extent, (), variables)
        if most is None:
            return whole
        cut = Part(cut.begin, variables.simplify(most.high))
    if variables.proves(cut.extent - size):
        return whole
    return cut


def _part(low: Expr, high: Expr, variables: Variables) -> Part:
    return Part(low, variables.simplify(high - low + 1))


def constant(e: Expr) -> int | None:
    """Give the value of a constant, else None."""
    p = poly.of(e)
    return p.constant if p.is_constant else None
