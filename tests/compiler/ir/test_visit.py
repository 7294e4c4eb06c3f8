"""Walking, rebuilding, substitution and structural equality."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
)
from farbench_compiler.ir.stmt import Allocate, Evaluate, For, IfThen, Let, Seq, Stmt, Store
from farbench_compiler.ir.structural import key, same
from farbench_compiler.ir.visit import (
    Extension,
    free_vars,
    map_children,
    node_count,
    substitute,
    walk,
)

X, Y = Var("x"), Var("y")
T = X < Y
A = Buffer("A", dtype("float32"), (IntImm(4),), "arg")
V4 = X.dtype.with_lanes(4)
EXPRS: list[Expr] = [
    X, Y, IntImm(3), IntImm(3, dtype("int32")), FloatImm(0.0), FloatImm(-0.0),
    FloatImm(0.0, dtype("float64")), Cast(dtype("float32"), X), X + Y, Y + X, X * Y,
    Compare("lt", X, Y), Compare("le", X, Y), Logic("and", T, T), Logic("or", T, T), Not(T),
    Select(T, X, Y, X.dtype), IfThenElse(T, X, Y, X.dtype), Call("abs", (X,), X.dtype),
    Call("clz", (X,), X.dtype), Load(A, (X,), A.dtype), Load(A, (Y,), A.dtype),
    Ramp(X, IntImm(1), 4, V4), Broadcast(X, 4, V4), Broadcast(X, 8, X.dtype.with_lanes(8)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), [*itertools.combinations(range(len(EXPRS)), 2)])
def test_different_expressions_have_different_keys(a: int, b: int) -> None:
    assert not same(EXPRS[a], EXPRS[b])
    assert key(EXPRS[a]) != key(EXPRS[b])


@pytest.mark.parametrize("e", EXPRS)
def test_a_rebuilt_expression_is_the_same(e: Expr) -> None:
    z = Var("z")
    there_and_back = substitute(substitute(e, {X: z}), {z: X})
    assert same(there_and_back, e)
    assert key(there_and_back) == key(e)
    assert map_children(e, lambda child: child) is e


def test_substitution_reaches_everything() -> None:
    buffer = Buffer("t", dtype("float32"), (X,))
    body: Stmt = Seq((
        For(Var("i"), X, X, "serial", Store(A, (X,), Cast(A.dtype, X))),
        IfThen(X < 1, Evaluate(X), Evaluate(X + 1)),
        Allocate(buffer, Let(Var("l"), X, Evaluate(X))),
    ))  # fmt: skip
    new = substitute(body, {X: Y})
    assert X not in free_vars(new)
    assert Y in free_vars(new)
    assert same(substitute(new, {Y: X}), body)
    assert substitute(body, {Var("other"): Y}) is body


def test_walk_goes_parents_first_in_order() -> None:
    e = (X + 1) * Y
    assert [type(n).__name__ for n in walk(e)] == ["Binary", "Binary", "Var", "IntImm", "Var"]


@dataclass(frozen=True, slots=True, eq=False)
class Twice(Extension):
    """A node that the IR does not know."""

    value: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.value,)

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        return Twice(children[0])


def test_foreign_nodes_take_part() -> None:
    assert isinstance(substitute(Twice(X), {X: Y}), Twice)
    assert X in free_vars(Binary("add", Twice(X), Y, X.dtype))
    assert same(Twice(X), Twice(X))
    assert not same(Twice(X), Twice(Y))


@pytest.mark.parametrize("e", EXPRS)
def test_nodes_are_counted_as_a_walk_meets_them(e: Expr) -> None:
    twice = (e, e) if isinstance(e, Var) else (IntImm(1), e)
    for root in (e, Call("pow", twice, e.dtype)):
        assert node_count(root) == node_count(root) == sum(1 for _ in walk(root))
