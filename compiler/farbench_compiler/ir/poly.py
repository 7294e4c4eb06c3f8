"""Integer expressions as polynomials: sums of coefficient * product of atoms, plus a constant.

Sums, differences and products of integers wrap like the ring of their width, so that collecting
and cancelling terms is right for any integer dtype. Whatever else an expression holds (a variable,
a quotient, a load) is an atom, known by its structural key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import gcd

from farbench_compiler.ir.dtypes import DType, int_range
from farbench_compiler.ir.expr import Binary, Call, Expr, IntImm, Load, Var
from farbench_compiler.ir.structural import key
from farbench_compiler.ir.visit import Extension, walk

Monomial = tuple[str, ...]
MAX_TERMS = 24


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient * product of atoms (in the order of their keys)."""

    coefficient: int
    atoms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial; `terms` by the keys of their atoms, none with coefficient 0.

    `pure` tells that it is index arithmetic, free of loads and calls: such sums do not overflow.
    """

    terms: dict[Monomial, Term] = field(default_factory=dict)
    constant: int = 0
    pure: bool = True

    @property
    def is_constant(self) -> bool:
        """Tell whether no term is left."""
        return not self.terms

    def coefficients(self) -> Iterable[int]:
        """Give the coefficients of all terms."""
        return (term.coefficient for term in self.terms.values())


def number(value: int) -> Poly:
    """Make a constant."""
    return Poly({}, value)


def atom(expr: Expr) -> Poly:
    """Make the polynomial that is one atom."""
    if isinstance(expr, IntImm):
        return number(expr.value)
    return Poly({(key(expr),): Term(1, (expr,))}, 0, _is_index(expr))


def _is_index(expr: Expr) -> bool:
    if isinstance(expr, Var):
        return True
    return not any(isinstance(node, (Load, Call, Extension)) for node in walk(expr))


def add(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """Give a + factor * b."""
    if not b.terms:
        return Poly(a.terms, a.constant + b.constant * factor, a.pure and b.pure)
    if factor == 1 and not a.terms:
        return Poly(b.terms, a.constant + b.constant, a.pure and b.pure)
    terms = dict(a.terms)
    for name, term in b.terms.items():
        old = terms.get(name)
        coefficient = term.coefficient * factor + (old.coefficient if old else 0)
        if coefficient:
            terms[name] = Term(coefficient, term.atoms)
        else:
            terms.pop(name, None)
    return Poly(terms, a.constant + b.constant * factor, a.pure and b.pure)


def scale(a: Poly, factor: int) -> Poly:
    """Give factor * a."""
    return add(number(0), a, factor)


def multiply(a: Poly, b: Poly) -> Poly | None:
    """Give the product; None where distributing it would not make it simpler."""
    if a.is_constant:
        return _keep_purity(scale(b, a.constant), a)
    if b.is_constant:
        return _keep_purity(scale(a, b.constant), b)
    pure = a.pure and b.pure
    single = len(a.terms) == len(b.terms) == 1 and not a.constant and not b.constant
    if not single and not (pure and (len(a.terms) + 1) * (len(b.terms) + 1) <= MAX_TERMS):
        return None
    result = Poly({}, a.constant * b.constant, pure)
    for x in (*a.terms.values(), Term(a.constant, ())):
        for y in (*b.terms.values(), Term(b.constant, ())):
            if x.coefficient and y.coefficient and (x.atoms or y.atoms):
                result = add(result, _product(x, y))
    return _keep_purity(result, a if not a.pure else b)


def _keep_purity(result: Poly, other: Poly) -> Poly:
    return result if other.pure or not result.pure else Poly(result.terms, result.constant, False)


def _product(x: Term, y: Term) -> Poly:
    keyed = sorted(((key(e), e) for e in (*x.atoms, *y.atoms)), key=lambda pair: pair[0])
    term = Term(x.coefficient * y.coefficient, tuple(e for _, e in keyed))
    return Poly({tuple(k for k, _ in keyed): term}, 0)


def split(a: Poly, divisor: int) -> tuple[Poly, Poly]:
    """Give (quotient, rest) with a = divisor * quotient + rest, no term of rest divisible."""
    quotient: dict[Monomial, Term] = {}
    rest: dict[Monomial, Term] = {}
    for name, term in a.terms.items():
        if term.coefficient % divisor == 0:
            quotient[name] = Term(term.coefficient // divisor, term.atoms)
        else:
            rest[name] = term
    whole, left = divmod(a.constant, divisor)
    return Poly(quotient, whole, a.pure), Poly(rest, left, a.pure)


def split_by(a: Poly, divisor: Term) -> tuple[Poly, Poly]:
    """Give (quotient, rest) with a = divisor * quotient + rest for a symbolic divisor."""
    wanted = [key(atom) for atom in divisor.atoms]
    quotient, rest = Poly({}, 0, a.pure), Poly({}, a.constant, a.pure)
    for name, term in a.terms.items():
        left = _without(name, term.atoms, wanted)
        if left is None or term.coefficient % divisor.coefficient:
            rest = add(rest, Poly({name: term}, 0))
            continue
        factor, (names, atoms) = term.coefficient // divisor.coefficient, left
        part = Poly({names: Term(factor, atoms)}, 0) if names else number(factor)
        quotient = add(quotient, part)
    return quotient, rest


def _without(
    name: Monomial, atoms: tuple[Expr, ...], wanted: list[str]
) -> tuple[Monomial, tuple[Expr, ...]] | None:
    pairs = list(zip(name, atoms, strict=True))
    for want in wanted:
        found = next((at for at, (k, _) in enumerate(pairs) if k == want), None)
        if found is None:
            return None
        del pairs[found]
    return tuple(k for k, _ in pairs), tuple(e for _, e in pairs)


def content(a: Poly) -> int:
    """Give the greatest common divisor of the coefficients (0 for a constant)."""
    result = 0
    for coefficient in a.coefficients():
        result = gcd(result, coefficient)
    return result


def multiple_of(a: Poly) -> int:
    """Give the greatest number that divides every value (0 for the constant 0)."""
    return gcd(content(a), a.constant)


def wrap(value: int, dtype: DType) -> int:
    """Bring a number into the range of an integer dtype, as its arithmetic would."""
    low, _ = int_range(dtype)
    return (value - low) % (1 << dtype.bits) + low


def _centred(value: int, dtype: DType) -> int:
    """Bring a number to the residue nearest to 0, also for unsigned dtypes."""
    half = 1 << (dtype.bits - 1)
    return (value + half) % (1 << dtype.bits) - half


def to_expr(a: Poly, dtype: DType) -> Expr:
    """Write the polynomial as an expression: largest coefficients first, then the constant."""
    constant = _centred(a.constant, dtype)
    terms = sorted(
        ((_centred(t.coefficient, dtype), name, t.atoms) for name, t in a.terms.items()),
        key=lambda t: (t[0] < 0, -abs(t[0]), -len(t[1]), t[1]),
    )
    terms = [term for term in terms if term[0]]
    result: Expr | None = None
    if not terms or (terms[0][0] < 0 and constant > 0):
        result, constant = IntImm(wrap(constant, dtype), dtype), 0
    for coefficient, _, atoms in terms:
        result = _append(result, coefficient, _product_of(atoms, dtype), dtype)
    if constant:
        result = _append(result, constant, None, dtype)
    assert result is not None
    return result


def _product_of(atoms: tuple[Expr, ...], dtype: DType) -> Expr:
    product = atoms[0]
    for other in atoms[1:]:
        product = Binary("mul", product, other, dtype)
    return product


def _append(result: Expr | None, factor: int, of: Expr | None, dtype: DType) -> Expr:
    """Give result + factor * of (`of` None is 1)."""
    negate = factor < 0 and factor != int_range(dtype)[0]
    size = IntImm(wrap(-factor if negate else factor, dtype), dtype)
    if of is None:
        part: Expr = size
    else:
        part = of if size.value == 1 else Binary("mul", of, size, dtype)
    if result is None:
        return Binary("sub", IntImm(0, dtype), part, dtype) if negate else part
    return Binary("sub" if negate else "add", result, part, dtype)


def same_atom(expr: Expr) -> Expr:
    """Leave an atom as it is."""
    return expr


def of(expr: Expr, on_atom: Callable[[Expr], Expr] = same_atom) -> Poly:
    """Read an integer expression as a polynomial; `on_atom` may rewrite each atom first."""
    if on_atom is not same_atom:
        return _of(expr, on_atom)
    try:
        known: Poly = expr._memo_poly
    except AttributeError:
        known = _of(expr, same_atom)
        object.__setattr__(expr, "_memo_poly", known)
    return known


def _of(expr: Expr, on_atom: Callable[[Expr], Expr]) -> Poly:
    if isinstance(expr, Binary):
        found = _sum_or_product(expr, on_atom)
        if found is not None:
            return found
    elif isinstance(expr, IntImm):
        return number(expr.value)
    new = on_atom(expr)
    return atom(new) if new is expr else of(new)


def _sum_or_product(e: Binary, on_atom: Callable[[Expr], Expr]) -> Poly | None:
    """Read an operation that polynomials have; None where it is an atom."""
    op, a, b = e.op, e.a, e.b
    if op == "add":
        return add(of(a, on_atom), of(b, on_atom))
    if op == "sub":
        return add(of(a, on_atom), of(b, on_atom), -1)
    if op == "mul":
        x, y = of(a, on_atom), of(b, on_atom)
        product = multiply(x, y)
        return product or atom(Binary("mul", to_expr(x, e.dtype), to_expr(y, e.dtype), e.dtype))
    if op == "shl" and isinstance(b, IntImm) and 0 <= b.value < e.dtype.bits:
        return scale(of(a, on_atom), 1 << b.value)
    return None
