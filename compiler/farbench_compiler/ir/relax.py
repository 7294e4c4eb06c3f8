"""Symbolic bounds: what an index reaches while some of its variables run over their ranges.

Where `interval` answers with numbers, `relax` answers with expressions over the variables that
are held fixed. Bound inference asks it which part of a tensor a consumer reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from farbench_compiler.ir import poly as P
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import (
    Binary,
    Cast,
    Expr,
    IfThenElse,
    IntImm,
    Select,
    Var,
    binary,
    const,
)
from farbench_compiler.ir.interval import Interval, bounds
from farbench_compiler.ir.poly import Poly, Term
from farbench_compiler.ir.simplify import Simplifier
from farbench_compiler.ir.visit import free_vars

Pair = tuple[Poly, Poly]


class Relaxer:
    """Bounds expressions while the variables of `over` run; `ranges` knows of the fixed ones.

    The ends in `over` are ints or expressions over fixed variables.
    """

    def __init__(
        self, over: Mapping[Var, Interval], ranges: Mapping[Var, Interval] | None = None
    ) -> None:
        self._over = over
        self._ranges = {**(ranges or {}), **over}
        self._simplifier = Simplifier(self._ranges)

    def __call__(self, expr: Expr) -> Interval:
        """Give the bounds: ends are simplified expressions, None where there is no bound."""
        pair = self._pair(self._simplifier.expr(expr))
        if pair is None:
            return Interval()
        low, high = (self._simplifier.expr(P.to_expr(p, expr.dtype)) for p in pair)
        return Interval(low, high)

    def _fixed(self, expr: Expr) -> bool:
        return not any(var in self._over for var in free_vars(expr))

    def _pair(self, expr: Expr) -> Pair | None:
        p = P.of(expr)
        low = high = P.number(p.constant)
        for name, term in p.terms.items():
            if all(self._fixed(atom) for atom in term.atoms):
                whole = Poly({name: term})
                low, high = P.add(low, whole), P.add(high, whole)
                continue
            found = self._term(term)
            if found is None:
                return None
            low, high = P.add(low, found[0]), P.add(high, found[1])
        return low, high

    def _term(self, term: Term) -> Pair | None:
        moving = [atom for atom in term.atoms if not self._fixed(atom)]
        fixed = [atom for atom in term.atoms if self._fixed(atom)]
        if len(moving) != 1:
            return None
        pair = self._atom(moving[0])
        sign = self._sign(fixed)
        if pair is None or sign is None:
            return None
        ends = []
        for p in pair:
            product: Poly | None = p
            for atom in fixed:
                product = None if product is None else P.multiply(product, P.atom(atom))
            if product is None:
                return None
            ends.append(P.scale(product, term.coefficient))
        return (ends[0], ends[1]) if term.coefficient * sign > 0 else (ends[1], ends[0])

    def _sign(self, atoms: list[Expr]) -> int | None:
        sign = 1
        for atom in atoms:
            low, high = bounds(atom, self._ranges).numbers
            if low is not None and low >= 0:
                continue
            if high is None or high > 0:
                return None
            sign = -sign
        return sign

    def _atom(self, atom: Expr) -> Pair | None:
        match atom:
            case Var():
                known = self._over[atom]
                if known.low is None or known.high is None:
                    return None
                ends = [e if isinstance(e, Expr) else const(e) for e in (known.low, known.high)]
                return P.of(ends[0]), P.of(ends[1])
            case Binary("floordiv", a, IntImm(c, _) as by, dtype) if c > 0:
                pair = self._pair(a)
                if pair is None:
                    return None
                return self._both(*(binary("floordiv", P.to_expr(p, dtype), by) for p in pair))
            case Binary("min" | "max" as op, a, b, dtype):
                x, y = self._pair(a), self._pair(b)
                if x is None or y is None:
                    return None
                both = zip(x, y, strict=True)
                return self._both(*(Binary(op, *self._exprs(p, q, dtype), dtype) for p, q in both))
            case Select(_, a, b, dtype) | IfThenElse(_, a, b, dtype):
                x, y = self._pair(a), self._pair(b)
                if x is None or y is None:
                    return None
                low = Binary("min", *self._exprs(x[0], y[0], dtype), dtype)
                return self._both(low, Binary("max", *self._exprs(x[1], y[1], dtype), dtype))
            case Cast(dtype, value) if dtype.is_int and value.dtype.is_int:
                pair = self._pair(value)
                if pair is None:
                    return None
                return self._both(*(Cast(dtype, P.to_expr(p, value.dtype)) for p in pair))
        return self._by_numbers(atom)

    def _by_numbers(self, atom: Expr) -> Pair | None:
        if isinstance(atom, Binary) and atom.op == "floormod" and self._fixed(atom.b):
            low, _ = bounds(atom.b, self._ranges).numbers
            if low is not None and low > 0:
                return P.number(0), P.add(P.of(atom.b), P.number(-1))
        low, high = bounds(atom, self._ranges).numbers
        return None if low is None or high is None else (P.number(low), P.number(high))

    def _both(self, low: Expr, high: Expr) -> Pair:
        return P.of(self._simplifier.expr(low)), P.of(self._simplifier.expr(high))

    @staticmethod
    def _exprs(p: Poly, q: Poly, dtype: DType) -> tuple[Expr, Expr]:
        return P.to_expr(p, dtype), P.to_expr(q, dtype)
