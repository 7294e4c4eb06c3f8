"""Proofs about integer expressions: is a polynomial never negative, given ranges and facts?

A proof bounds the polynomial by numbers; where that is not enough it replaces a variable by the
symbolic end of its range, a quotient by what it is at most or least, a minimum by an operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from farbench_compiler.ir import poly as P
from farbench_compiler.ir.expr import Binary, Compare, Expr, IntImm, Logic, Not, Var
from farbench_compiler.ir.interval import Interval, bounds, multiply, scale
from farbench_compiler.ir.poly import Poly
from farbench_compiler.ir.structural import key

_BUDGET = 48  # polynomials looked at in one proof; index arithmetic needs a handful


class Prover:
    """Prove facts about integers, under ranges of variables and polynomials known to be >= 0."""

    def __init__(self, ranges: Mapping[Var, Interval], facts: Iterable[Poly] = ()) -> None:
        self.ranges = ranges
        self.facts = tuple(facts)
        self._bounds: dict[str, Interval] = {}
        self._left = 0

    def bounds(self, p: Poly) -> Interval:
        """Bound a polynomial by numbers."""
        low: int | None = p.constant
        high: int | None = p.constant
        for term in p.terms.values():
            first, *others = term.atoms
            product = self._atom(first)
            for atom in others:
                product = multiply(product, self._atom(atom))
            least, most = scale(product, term.coefficient).numbers
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
            if low is None and high is None:
                break
        return Interval(low, high)

    def _atom(self, atom: Expr) -> Interval:
        name = key(atom)
        found = self._bounds.get(name)
        if found is None:
            found = self._bounds[name] = bounds(atom, self.ranges)
        return found

    def non_negative(self, p: Poly) -> bool:
        """Prove p >= 0; False says nothing."""
        self._left = _BUDGET
        return self._prove(p) or any(self._prove(P.add(p, fact, -1)) for fact in self.facts)

    def less(self, a: Poly, b: Poly) -> bool:
        """Prove a < b."""
        return self.non_negative(P.add(P.add(b, a, -1), P.number(-1)))

    def _prove(self, p: Poly) -> bool:
        low, high = self.bounds(p).numbers
        if low is not None and low >= 0:
            return True
        if (high is not None and high < 0) or self._left <= 0:
            return False
        self._left -= 1
        return any(all(self._prove(q) for q in weaker) for weaker in self._weaken(p))

    def _weaken(self, p: Poly) -> Iterator[tuple[Poly, ...]]:
        """Give tuples of polynomials such that p >= 0 where all of a tuple are >= 0."""
        for name in sorted(p.terms, reverse=True):
            term = p.terms[name]
            rest = P.add(p, Poly({name: term}), -1)
            for at, atom in enumerate(term.atoms):
                others = term.atoms[:at] + term.atoms[at + 1 :]
                if isinstance(atom, Var):
                    yield from self._by_range(rest, term.coefficient, atom, others)
                elif isinstance(atom, Binary):
                    yield from self._by_operation(rest, term.coefficient, atom, others)

    def _by_range(
        self, rest: Poly, factor: int, var: Var, others: tuple[Expr, ...]
    ) -> Iterator[tuple[Poly, ...]]:
        known = self.ranges.get(var)
        end = None if known is None else (known.low if factor > 0 else known.high)
        if isinstance(end, Expr) and not isinstance(end, IntImm) and self._positive(others):
            yield from self._replaced(rest, factor, P.of(end), others)

    def _by_operation(
        self, rest: Poly, factor: int, atom: Binary, others: tuple[Expr, ...]
    ) -> Iterator[tuple[Poly, ...]]:
        op, a, b = atom.op, atom.a, atom.b
        if op in ("min", "max"):
            if self._positive(others):
                options = [self._with(rest, factor, P.of(x), others) for x in (a, b)]
                if (op == "min") == (factor < 0):
                    yield from ((q,) for q in options if q is not None)
                elif options[0] is not None and options[1] is not None:
                    yield options[0], options[1]
        elif op == "floordiv" and isinstance(b, IntImm) and b.value > 0 and not others:
            # b*q lies in [a - b + 1, a]: multiply all by b and put a bound for b*q.
            part = P.of(a) if factor < 0 else P.add(P.of(a), P.number(1 - b.value))
            yield (P.add(P.scale(rest, b.value), part, factor),)
        elif op == "floordiv" and self._positive((b,), least=1):
            low_gap = P.add(P.number(1), P.of(b), -1)
            part = P.of(a) if factor < 0 else P.add(P.of(a), low_gap)
            whole = rest if self._by_key(b, others) else P.multiply(rest, P.of(b))
            if whole is not None and (whole is rest or not others):
                yield (P.add(whole, part, factor),)
        elif op == "floormod" and factor < 0 and self._positive((b, *others)):
            yield from self._replaced(rest, factor, P.add(P.of(b), P.number(-1)), others)

    @staticmethod
    def _by_key(divisor: Expr, others: tuple[Expr, ...]) -> bool:
        return len(others) == 1 and key(others[0]) == key(divisor)

    def _positive(self, atoms: tuple[Expr, ...], least: int = 0) -> bool:
        lows = (self._atom(atom).numbers[0] for atom in atoms)
        return all(low is not None and low >= least for low in lows)

    def _replaced(
        self, rest: Poly, factor: int, by: Poly, others: tuple[Expr, ...]
    ) -> Iterator[tuple[Poly, ...]]:
        found = self._with(rest, factor, by, others)
        if found is not None:
            yield (found,)

    @staticmethod
    def _with(rest: Poly, factor: int, by: Poly, others: tuple[Expr, ...]) -> Poly | None:
        product: Poly | None = by
        for other in others:
            product = None if product is None else P.multiply(product, P.atom(other))
        return None if product is None else P.add(rest, product, factor)


def facts_of(cond: Expr) -> list[Poly]:
    """Read what a condition says about integers: polynomials that are >= 0 where it holds."""
    match cond:
        case Logic("and", a, b, _):
            return facts_of(a) + facts_of(b)
        case Not(a, _):
            return _negated(a)
        case Compare(op, a, b, _) if a.dtype.is_int and a.dtype.lanes == 1:
            return _compared(op, P.of(a), P.of(b))
    return []


def _negated(cond: Expr) -> list[Poly]:
    opposite = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
    match cond:
        case Logic("or", a, b, _):
            return _negated(a) + _negated(b)
        case Not(a, _):
            return facts_of(a)
        case Compare(op, a, b, _) if a.dtype.is_int and a.dtype.lanes == 1:
            return _compared(opposite[op], P.of(a), P.of(b))
    return []


def negated_facts_of(cond: Expr) -> list[Poly]:
    """Read what the failure of a condition says about integers."""
    return _negated(cond)


def _compared(op: str, a: Poly, b: Poly) -> list[Poly]:
    if not (a.pure and b.pure):
        return []
    difference = P.add(b, a, -1)  # b - a
    match op:
        case "lt":
            return [P.add(difference, P.number(-1))]
        case "le":
            return [difference]
        case "gt":
            return [P.add(P.scale(difference, -1), P.number(-1))]
        case "ge":
            return [P.scale(difference, -1)]
        case "eq":
            return [difference, P.scale(difference, -1)]
    return []
