"""Simplify loop IR: canonical index arithmetic, conditions decided by proof, dead code removed.

Integer arithmetic is brought to a canonical sum (`poly`); quotients and remainders of such sums
split into what is divisible and what stays within one period (`algebra`). Floating-point
arithmetic is never changed: not its order, not its operations, not its special values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import overload

from farbench_compiler.ir import algebra
from farbench_compiler.ir import poly as P
from farbench_compiler.ir.dtypes import BOOL
from farbench_compiler.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElse,
    IntImm,
    Logic,
    Not,
    Select,
    Var,
    cast,
    logic,
)
from farbench_compiler.ir.fold import CompareOp, fold_int
from farbench_compiler.ir.interval import Interval, bounds
from farbench_compiler.ir.poly import Poly
from farbench_compiler.ir.prove import Prover, facts_of, negated_facts_of
from farbench_compiler.ir.stmt import Allocate, Evaluate, For, IfThen, Let, Seq, Stmt
from farbench_compiler.ir.structural import same
from farbench_compiler.ir.visit import free_vars, map_children

_FLIPPED: dict[CompareOp, CompareOp] = {"gt": "lt", "ge": "le"}
_OPPOSITE: dict[CompareOp, CompareOp] = {
    "lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq",
}  # fmt: skip
TRUE, FALSE = IntImm(1, BOOL), IntImm(0, BOOL)


@overload
def simplify(node: Expr, ranges: Mapping[Var, Interval] | None = None) -> Expr: ...
@overload
def simplify(node: Stmt, ranges: Mapping[Var, Interval] | None = None) -> Stmt: ...


def simplify(node: Expr | Stmt, ranges: Mapping[Var, Interval] | None = None) -> Expr | Stmt:
    """Simplify an expression or statement, where its free variables have the given ranges."""
    simplifier = Simplifier(ranges or {})
    return simplifier.expr(node) if isinstance(node, Expr) else simplifier.stmt(node)


def prove(cond: Expr, ranges: Mapping[Var, Interval] | None = None) -> bool:
    """Tell whether a condition always holds; False says nothing."""
    found = simplify(cond, ranges)
    return isinstance(found, IntImm) and bool(found.value)


class Simplifier:
    """Simplifies under ranges of variables and facts (polynomials known to be >= 0).

    `values` replaces variables. With `news`, all was simplified before, and these are the variables
    of which more is known now: what reads neither them nor a replaced one is left as it is.
    """

    def __init__(
        self,
        ranges: Mapping[Var, Interval],
        facts: Iterable[Poly] = (),
        values: Mapping[Var, Expr] | None = None,
        news: frozenset[Var] | None = None,
    ) -> None:
        self._prover = Prover(ranges, facts)
        self._values: Mapping[Var, Expr] = values or {}
        self._news = None if news is None else news.union(self._values)

    def under(
        self,
        ranges: Mapping[Var, Interval] | None = None,
        facts: Iterable[Poly] = (),
        news: Iterable[Var] = (),
    ) -> Simplifier:
        """Give a simplifier that knows more; `news` are variables of which it knows more."""
        more = {**self._prover.ranges, **ranges} if ranges else self._prover.ranges
        known = None if self._news is None else self._news.union(news)
        return Simplifier(more, (*self._prover.facts, *facts), self._values, known)

    def replacing(self, var: Var, value: Expr) -> Simplifier:
        """Give a simplifier that puts a value, simplified already, in the place of a variable."""
        values = {**self._values, var: value}
        return Simplifier(self._prover.ranges, self._prover.facts, values, self._news)

    def _told_by(self, before: Expr, now: Expr) -> Simplifier:
        """Give a simplifier for what a condition decides, which was simplified just now."""
        if self._news is None or now is before:
            return self
        return self.under(news=free_vars(now))

    def expr(self, e: Expr) -> Expr:
        """Simplify an expression."""
        if isinstance(e, Var):
            return self._values.get(e, e)
        if self._news is not None and self._news.isdisjoint(free_vars(e)):
            return e
        if isinstance(e, Binary) and e.dtype.is_int and e.dtype.lanes == 1:
            return P.to_expr(algebra.recombine(P.of(e, self._atom), e.dtype), e.dtype)
        return self._other(e)

    def _atom(self, e: Expr) -> Expr:
        """Simplify what is no sum or product; sees scalar integers alone."""
        if not isinstance(e, Binary):
            return self.expr(e)
        if self._news is not None and self._news.isdisjoint(free_vars(e)):
            return e
        x, y = self.expr(e.a), self.expr(e.b)
        a, b = P.of(x), P.of(y)
        prover, dtype = self._prover, e.dtype
        exact = algebra.is_exact(a, dtype, prover) and algebra.is_exact(b, dtype, prover)
        rounds_down = exact and prover.non_negative(a) and prover.non_negative(b)
        if e.op in ("truncdiv", "truncmod") and rounds_down:
            e = Binary("floordiv" if e.op == "truncdiv" else "floormod", e.a, e.b, dtype)
        if exact and e.op in ("floordiv", "floormod"):
            found = algebra.divide(a, b, dtype, prover)
            if found is not None:
                part = found[0] if e.op == "floordiv" else found[1]
                return P.to_expr(algebra.recombine(part, dtype), dtype)
        if e.op in ("min", "max"):
            chosen = self._extreme(e, a, b, exact)
            if chosen is not None:
                return P.to_expr(chosen, dtype)
        return self._rebuilt(e, x, y)

    def _extreme(self, e: Binary, a: Poly, b: Poly, exact: bool) -> Poly | None:
        """Choose an operand of min or max by proof."""
        least, most = (a, b) if e.op == "min" else (b, a)
        difference = P.add(most, least, -1)
        if difference.is_constant and not difference.constant:
            return a
        if not exact:
            return None
        if self._prover.non_negative(difference):
            return a
        return b if self._prover.non_negative(P.scale(difference, -1)) else None

    @staticmethod
    def _rebuilt(e: Binary, a: Expr, b: Expr) -> Expr:
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            folded = fold_int(e.op, a.value, b.value, e.dtype)
            if folded is not None:
                return IntImm(folded, e.dtype)
        if isinstance(b, IntImm) and e.op in ("floordiv", "truncdiv") and b.value == 1:
            return a
        if isinstance(b, IntImm) and e.op in ("floormod", "truncmod") and b.value == 1:
            return IntImm(0, e.dtype)
        if isinstance(b, IntImm) and e.op in ("shl", "shr", "bitor", "bitxor") and b.value == 0:
            return a
        return e if a is e.a and b is e.b else Binary(e.op, a, b, e.dtype)

    def _other(self, e: Expr) -> Expr:
        match e:
            case Compare(op, a, b, _) if a.dtype.is_int and a.dtype.lanes == 1:
                return self._compare(op, self.expr(a), self.expr(b))
            case Logic(op, a, b, dtype) if dtype.lanes == 1:
                x = self.expr(a)
                facts = facts_of(x) if op == "and" else negated_facts_of(x)
                inside = self._told_by(a, x)
                y = (inside.under(facts=facts) if facts else inside).expr(b)
                return x if same(x, y) else logic(op, x, y)
            case Not(a, dtype) if dtype.lanes == 1:
                return _negate(self.expr(a))
            case Select() | IfThenElse() if e.cond.dtype.lanes == 1:
                return self._choice(e, self.expr(e.cond), e.a, e.b)
            case Cast(dtype, value):
                return cast(dtype, self.expr(value))
        return map_children(e, self.expr)

    def _choice(self, e: Select | IfThenElse, cond: Expr, a: Expr, b: Expr) -> Expr:
        if isinstance(cond, IntImm):
            return self.expr(a if cond.value else b)
        inside = self._told_by(e.cond, cond)
        x = inside.under(facts=facts_of(cond)).expr(a)
        y = inside.under(facts=negated_facts_of(cond)).expr(b)
        if same(x, y):
            return x
        kind = Select if isinstance(e, Select) else IfThenElse
        return kind(cond, x, y, e.dtype)

    def _compare(self, op: CompareOp, x: Expr, y: Expr) -> Expr:
        if op in _FLIPPED:
            op, x, y = _FLIPPED[op], y, x
        a, b, dtype, prover = P.of(x), P.of(y), x.dtype, self._prover
        if not (algebra.is_exact(a, dtype, prover) and algebra.is_exact(b, dtype, prover)):
            alike = P.add(a, b, -1)
            if alike.is_constant and not alike.constant:
                return TRUE if op in ("eq", "le") else FALSE
            return Compare(op, x, y)
        if op in ("eq", "ne"):
            return self._equality(op, P.add(a, b, -1), x, y)
        difference = P.add(b, a, -1)
        if op == "lt":
            difference = P.add(difference, P.number(-1))
        if prover.non_negative(difference):  # a <= b, as integers
            return TRUE
        if prover.non_negative(P.add(P.number(-1), difference, -1)):
            return FALSE
        return self._ordered(difference, x)

    def _ordered(self, difference: Poly, like: Expr) -> Expr:
        """Write difference >= 0 as a comparison of what is positive and what is negative in it."""
        g = P.content(difference)
        whole, _ = P.split(difference, g)
        whole = self._drop_fine_part(whole)
        more = {n: t for n, t in whole.terms.items() if t.coefficient > 0}
        less = {n: P.Term(-t.coefficient, t.atoms) for n, t in whole.terms.items() if n not in more}
        c, dtype = whole.constant, like.dtype
        if not less:
            return Compare("ge", P.to_expr(Poly(more), dtype), IntImm(-c, dtype))
        if not more:
            return Compare("lt", P.to_expr(Poly(less), dtype), IntImm(c + 1, dtype))
        if c < 0:
            less_by = Poly(less, -c - 1)
            return Compare("lt", P.to_expr(less_by, dtype), P.to_expr(Poly(more), dtype))
        return Compare("le", P.to_expr(Poly(less), dtype), P.to_expr(Poly(more, c), dtype))

    def _drop_fine_part(self, p: Poly) -> Poly:
        """Shorten g*x + y >= 0 to x >= 0 where 0 <= y < g."""
        for step in sorted({abs(k) for k in p.coefficients()} - {1}, reverse=True):
            coarse, fine = P.split(p, step)
            low, high = self._prover.bounds(fine).numbers
            if coarse.terms and low is not None and high is not None and 0 <= low <= high < step:
                return coarse
        return p

    def _equality(self, op: CompareOp, difference: Poly, x: Expr, y: Expr) -> Expr:
        if difference.is_constant:
            equal = difference.constant == 0
            return TRUE if equal == (op == "eq") else FALSE
        above = P.add(difference, P.number(-1))
        below = P.add(P.number(-1), difference, -1)
        apart = self._prover.non_negative(above) or self._prover.non_negative(below)
        if apart or difference.constant % P.content(difference):
            return FALSE if op == "eq" else TRUE
        return Compare(op, x, y)

    def stmt(self, s: Stmt) -> Stmt:
        """Simplify a statement; one that does nothing becomes an empty `Seq`."""
        match s:
            case For():
                return self._loop(s)
            case IfThen(cond, then, otherwise):
                decided = self.expr(cond)
                return self._told_by(cond, decided)._branch(decided, then, otherwise)
            case Seq(stmts):
                return sequence(self.stmt(part) for part in stmts)
            case Let(var, value, body):
                bound = self.expr(value)
                if isinstance(bound, (IntImm, Var)):
                    return self.replacing(var, bound).stmt(body)
                ranges = {var: bounds(bound, self._prover.ranges)}
                news = () if bound is value else (var,)
                return Let(var, bound, self.under(ranges, news=news).stmt(body))
            case Allocate():
                new = map_children(s, self.expr, self.stmt)
                return new.body if isinstance(new, Allocate) and is_empty(new.body) else new
            case Evaluate():  # every expression is pure
                return Seq(())
        return map_children(s, self.expr, self.stmt)

    def _loop(self, s: For) -> Stmt:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        count = P.of(extent)
        if self._prover.non_negative(P.scale(count, -1)):
            return Seq(())
        if isinstance(extent, IntImm) and extent.value == 1:
            return self.replacing(s.var, begin).stmt(s.body)
        last = P.to_expr(P.add(P.add(P.of(begin), count), P.number(-1)), s.var.dtype)
        facts = () if count.is_constant else (P.add(count, P.number(-1)),)
        news = () if begin is s.begin and extent is s.extent else (s.var,)
        body = self.under({s.var: Interval(begin, last)}, facts, news).stmt(s.body)
        return body if is_empty(body) else For(s.var, begin, extent, s.kind, body)

    def _branch(self, cond: Expr, then: Stmt, otherwise: Stmt | None) -> Stmt:
        if isinstance(cond, IntImm):
            taken = then if cond.value else otherwise
            return Seq(()) if taken is None else self.stmt(taken)
        then = self.under(facts=facts_of(cond)).stmt(then)
        if otherwise is not None:
            otherwise = self.under(facts=negated_facts_of(cond)).stmt(otherwise)
            otherwise = None if is_empty(otherwise) else otherwise
        if is_empty(then):
            if otherwise is None:
                return then
            return IfThen(_negate(cond), otherwise)
        return IfThen(cond, then, otherwise)


def _negate(cond: Expr) -> Expr:
    match cond:
        case IntImm(value, _):
            return FALSE if value else TRUE
        case Not(a, _):
            return a
        case Compare(op, a, b, dtype) if not a.dtype.is_float:  # NaN: not (a < b) is no a >= b
            return Compare(_OPPOSITE[op], a, b, dtype)
    return Not(cond, cond.dtype)


def is_empty(s: Stmt) -> bool:
    """Tell whether a statement does nothing."""
    return isinstance(s, Seq) and not s.stmts


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """Put statements behind each other, without nesting and without empty ones."""
    flat: list[Stmt] = []
    for s in stmts:
        flat.extend(s.stmts if isinstance(s, Seq) else (s,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
