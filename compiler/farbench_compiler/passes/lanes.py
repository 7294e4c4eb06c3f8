"""Expressions over all lanes of a vectorised loop at once."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.ir import poly as P
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
    binary,
    const,
)
from farbench_compiler.ir.fold import CompareOp
from farbench_compiler.ir.simplify import Simplifier
from farbench_compiler.ir.structural import key
from farbench_compiler.ir.visit import map_children, walk


class NotLanes(Exception):
    """A part that has no form over all lanes at once; the loop around it stays a loop."""


class Lanes:
    """Turns an expression of one iteration into that of `lanes` iterations from `begin` on.

    What does not depend on the loop variable stays scalar.
    """

    def __init__(self, var: Var, begin: Expr, lanes: int, simplifier: Simplifier) -> None:
        self._var = var
        self._begin = begin
        self._lanes = lanes
        self._simplifier = simplifier

    def depends(self, e: Expr) -> bool:
        """Tell whether lanes differ in an expression."""
        return any(isinstance(n, Var) and n.uid == self._var.uid for n in walk(e))

    def affine(self, e: Expr) -> tuple[Expr, Expr] | None:
        """Give (value of the first lane, step from lane to lane), both uniform, if it is so."""
        p = P.of(self._simplifier.expr(e))
        one = P.Term(1, (self._var,))
        step, rest = P.split_by(p, one)
        if self.depends(P.to_expr(step, e.dtype)) or self.depends(P.to_expr(rest, e.dtype)):
            return None
        base = P.multiply(step, P.of(self._begin))
        if base is None:
            return None
        return P.to_expr(P.add(rest, base), e.dtype), P.to_expr(step, e.dtype)

    def vector(self, e: Expr) -> Expr:
        """Give the expression over all lanes, as a vector."""
        new = self.expr(e)
        return new if new.dtype.lanes > 1 else self.spread(new)

    def spread(self, e: Expr) -> Expr:
        """Give a vector of copies."""
        return Broadcast(e, self._lanes, e.dtype.with_lanes(self._lanes))

    def expr(self, e: Expr) -> Expr:
        """Give the expression over all lanes; scalar where all lanes agree."""
        if e.dtype.lanes > 1:
            raise NotLanes("a vector inside of a vectorised loop")
        if not self.depends(e):
            return e
        if isinstance(e, Load):
            (index,) = e.indices
            where = self.index(index)
            return Load(e.buffer, (where,), e.dtype.with_lanes(where.dtype.lanes))
        if e.dtype.is_int:
            found = self.affine(e)
            if found is not None:
                return self._ramp(*found)
        rebuild = _REBUILD.get(type(e))
        if rebuild is None:
            raise NotLanes(type(e).__name__)
        return rebuild(self, e)

    def index(self, e: Expr) -> Expr:
        """Give an index over all lanes: uniform, a ramp, or any vector."""
        found = self.affine(e)
        return self.expr(e) if found is None else self._ramp(*found)

    def _ramp(self, base: Expr, step: Expr) -> Expr:
        if P.of(step).is_constant and P.of(step).constant == 0:
            return base
        return Ramp(base, step, self._lanes, base.dtype.with_lanes(self._lanes))

    def binary(self, e: Binary) -> Expr:
        """Rebuild arithmetic."""
        a, b = self.vector(e.a), self.vector(e.b)
        return Binary(e.op, a, b, a.dtype)

    def choice(self, e: Select | IfThenElse) -> Expr:
        """Rebuild a choice; a uniform condition stays scalar."""
        cond, a, b = self.expr(e.cond), self.vector(e.a), self.vector(e.b)
        return type(e)(cond, a, b, a.dtype)

    def truth(self, e: Compare | Logic) -> Expr:
        """Rebuild a comparison or a conjunction."""
        a, b = self.vector(e.a), self.vector(e.b)
        dtype = e.dtype.with_lanes(self._lanes)
        return Compare(e.op, a, b, dtype) if isinstance(e, Compare) else Logic(e.op, a, b, dtype)

    def other(self, e: Cast | Not | Call) -> Expr:
        """Rebuild an elementwise operation."""
        dtype = e.dtype.with_lanes(self._lanes)
        match e:
            case Cast(_, value):
                return Cast(dtype, self.vector(value))
            case Not(a, _):
                return Not(self.vector(a), dtype)
            case Call(name, args, _):
                return Call(name, tuple(self.vector(arg) for arg in args), dtype)

    def everywhere(self, cond: Expr) -> Expr | None:
        """Give a scalar condition that implies `cond` in all lanes; None if none is found.

        A comparison of what is affine in the lane holds in all lanes if it does in the first and
        the last one.
        """
        if not self.depends(cond):
            return cond
        match cond:
            case Logic("and", a, b, _):
                x, y = self.everywhere(a), self.everywhere(b)
                return None if x is None or y is None else Logic("and", x, y)
            case Compare("lt" | "le" | "gt" | "ge" as op, a, b, _) if a.dtype.is_int:
                found = self.affine(binary("sub", a, b))
                if found is None or a.dtype.bits != 64:
                    return None
                return self._at_ends(op, *found)
        return None

    def _at_ends(self, op: CompareOp, base: Expr, step: Expr) -> Expr:
        """Compare base + lane * step with 0 in the lanes where it is greatest or least."""
        zero = const(0, base.dtype)
        last = binary("add", base, binary("mul", step, self._lanes - 1))
        ends = [Compare(op, end, zero) for end in (base, last)]
        if not isinstance(step, IntImm):
            return self._simplifier.expr(Logic("and", ends[0], ends[1]))
        rising = (step.value > 0) == (op in ("lt", "le"))
        return self._simplifier.expr(ends[1] if rising else ends[0])


_REBUILD: dict[type[Expr], Callable[..., Expr]] = {
    Binary: Lanes.binary,
    Select: Lanes.choice,
    IfThenElse: Lanes.choice,
    Compare: Lanes.truth,
    Logic: Lanes.truth,
    Cast: Lanes.other,
    Not: Lanes.other,
    Call: Lanes.other,
}


def assume(e: Expr, truths: dict[str, Expr]) -> Expr:
    """Replace subexpressions by what they are known to be, looked up by structural key."""
    known = truths.get(key(e)) if e.dtype.is_bool else None
    return map_children(e, lambda child: assume(child, truths)) if known is None else known
