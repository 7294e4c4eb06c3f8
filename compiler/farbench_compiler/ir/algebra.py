"""Quotients and remainders of polynomials, split into what divides and what stays in a period."""

from __future__ import annotations

from math import gcd

from farbench_compiler.ir import poly as P
from farbench_compiler.ir.dtypes import DType, int_range
from farbench_compiler.ir.expr import Binary, Expr, IntImm
from farbench_compiler.ir.poly import Poly, Term
from farbench_compiler.ir.prove import Prover
from farbench_compiler.ir.structural import key


def is_exact(p: Poly, dtype: DType, prover: Prover) -> bool:
    """Tell whether arithmetic of this dtype gives the mathematical value, without overflow."""
    if p.pure and dtype.bits == 64:
        return True
    low, high = prover.bounds(p).numbers
    least, most = int_range(dtype)
    return low is not None and high is not None and low >= least and high <= most


def _period(r: Poly, c: int, prover: Prover) -> int | None:
    """Find q with c*q <= r < c*(q + 1) for every value of r."""
    low, high = prover.bounds(r).numbers
    if low is not None and high is not None:
        return low // c if low // c == high // c else None
    if prover.non_negative(r) and prover.less(r, P.number(c)):
        return 0
    return None


def _steps(r: Poly, c: int) -> list[int]:
    """List factors of c by which r may split into a coarse and a fine part, greatest first."""
    return sorted({gcd(k, c) for k in r.coefficients()} - {1}, reverse=True)


def _only_atom(p: Poly) -> Binary | None:
    if len(p.terms) == 1 and not p.constant:
        (term,) = p.terms.values()
        if term.coefficient == 1 and len(term.atoms) == 1 and isinstance(term.atoms[0], Binary):
            return term.atoms[0]
    return None


def quotient(p: Poly, c: int, dtype: DType, prover: Prover) -> Poly:
    """Divide by a positive constant, rounding down; p must be exact."""
    whole, r = P.split(p, c)
    g = gcd(P.content(r), c)
    if r.is_constant:
        return whole
    if g > 1:
        coarse, _ = P.split(r, g)
        r, c = coarse, c // g
    if c == 1:
        return P.add(whole, r)
    period = _period(r, c, prover)
    if period is not None:
        return P.add(whole, P.number(period))
    for step in _steps(r, c):
        coarse, fine = P.split(r, step)
        if _period(fine, step, prover) == 0:
            return P.add(whole, quotient(coarse, c // step, dtype, prover))
    match _only_atom(r):
        case Binary("floordiv", x, IntImm(a, _), _) if a > 0:
            return P.add(whole, quotient(P.of(x), a * c, dtype, prover))
        case Binary("floormod", x, IntImm(a, _), _) if a > 0 and a % c == 0:
            digit = remainder(quotient(P.of(x), c, dtype, prover), a // c, dtype, prover)
            return P.add(whole, digit)
    atom = Binary("floordiv", P.to_expr(r, dtype), IntImm(c, dtype), dtype)
    return P.add(whole, P.atom(atom))


def remainder(p: Poly, c: int, dtype: DType, prover: Prover) -> Poly:
    """Take the remainder (sign of the divisor) by a positive constant; p must be exact."""
    _, r = P.split(p, c)
    if r.is_constant:
        return r
    g = gcd(P.content(r), c)
    if g > 1:
        coarse, fine = P.split(r, g)
        return P.add(fine, P.scale(remainder(coarse, c // g, dtype, prover), g))
    period = _period(r, c, prover)
    if period is not None:
        return P.add(r, P.number(-c * period))
    for step in _steps(r, c):
        coarse, fine = P.split(r, step)
        if _period(fine, step, prover) == 0:
            return P.add(fine, P.scale(remainder(coarse, c // step, dtype, prover), step))
    match _only_atom(r):
        case Binary("floormod", x, IntImm(a, _), _) if a > 0 and a % c == 0:
            return remainder(P.of(x), c, dtype, prover)
    return P.atom(Binary("floormod", P.to_expr(r, dtype), IntImm(c, dtype), dtype))


def divide(p: Poly, by: Poly, dtype: DType, prover: Prover) -> tuple[Poly, Poly] | None:
    """Give floor quotient and remainder by a divisor proven positive; None where unknown."""
    if not prover.less(P.number(0), by):
        return None
    if by.is_constant:
        c = by.constant
        return quotient(p, c, dtype, prover), remainder(p, c, dtype, prover)
    whole, r = Poly(), p
    if len(by.terms) == 1 and not by.constant:
        (term,) = by.terms.values()
        whole, r = P.split_by(p, term)
    if (r.is_constant and not r.constant) or (prover.non_negative(r) and prover.less(r, by)):
        return whole, r
    top, bottom = P.to_expr(r, dtype), P.to_expr(by, dtype)
    q, m = Binary("floordiv", top, bottom, dtype), Binary("floormod", top, bottom, dtype)
    return P.add(whole, P.atom(q)), P.atom(m)


def recombine(p: Poly, dtype: DType) -> Poly:
    """Put k*c*(x // c) + k*(x % c) together again as k*x, and digits to longer digits."""
    changed = True
    while changed:
        changed = False
        for name, term in p.terms.items():
            found = _matching(p, name, term, dtype)
            if found is not None:
                p, changed = found, True
                break
    return p


def _matching(p: Poly, name: P.Monomial, term: Term, dtype: DType) -> Poly | None:
    match term.atoms:
        case (Binary("floormod", x, c, _) as low,):
            pass
        case _:
            return None
    rest = P.add(p, Poly({name: term}), -1)
    for other in p.terms.values():
        first = next((e for e in other.atoms if isinstance(e, Binary)), None)
        joined = None if first is None else _joined(x, c, first, dtype)
        if joined is None or first is None or first is low:
            continue
        high = P.scale(P.multiply(P.atom(first), P.of(c)) or Poly(), term.coefficient)
        if len(high.terms) == 1:
            ((high_name, high_term),) = high.terms.items()
            present = p.terms.get(high_name)
            if present is not None and present.coefficient == high_term.coefficient:
                return P.add(P.add(rest, high, -1), P.of(joined), term.coefficient)
    return None


def _joined(x: Expr, c: Expr, high: Binary, dtype: DType) -> Expr | None:
    """Give what c * high + x % c is, when `high` holds the digits of x above c."""
    name = key(Binary("floordiv", x, c, dtype))
    if key(high) == name:
        return x
    match high, c:
        case Binary("floormod", Binary() as above, IntImm(m, _), _), IntImm(low, _):
            if key(above) == name:
                return Binary("floormod", x, IntImm(low * m, dtype), dtype)
    return None
