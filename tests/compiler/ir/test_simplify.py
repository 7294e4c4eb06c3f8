"""Simplification keeps every value and finds the forms that schedules leave behind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import (
    Binary,
    Buffer,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Logic,
    Not,
    Select,
    Var,
    binary,
    logic,
)
from farbench_compiler.ir.interval import Interval, bounds
from farbench_compiler.ir.simplify import prove, simplify
from farbench_compiler.ir.stmt import Evaluate, For, IfThen, Seq, Store
from farbench_compiler.ir.structural import same

from .evaluate import evaluate

X, Y, Z, N, M = (Var(name) for name in "xyznm")
RANGES = {X: Interval(0, 9), Y: Interval(0, 7), Z: Interval(-3, 12)}


def exprs() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(
        st.sampled_from([X, Y, Z]), st.integers(-9, 20).map(IntImm), st.just(IntImm(8))
    )

    def grow(below: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        some = st.sampled_from(["add", "sub", "mul", "min", "max"])
        periods = st.sampled_from([1, 2, 3, 4, 6, 8, 16, -4])
        division = st.sampled_from(["floordiv", "floormod", "truncdiv", "truncmod"])
        return st.one_of(
            st.builds(lambda o, a, b: Binary(o, a, b, a.dtype), some, below, below),
            st.builds(lambda o, a, c: Binary(o, a, IntImm(c), a.dtype), division, below, periods),
            st.builds(lambda c, a, b: Select(c, a, b, a.dtype), conditions(below), below, below),
        )

    return st.recursive(leaves, grow, max_leaves=10)


def conditions(below: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    ops = st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])
    compares = st.builds(Compare, ops, below, below)
    both = st.builds(
        lambda o, a, b: Logic(o, a, b), st.sampled_from(["and", "or"]), compares, compares
    )
    return st.one_of(compares, both, compares.map(Not))


VALUES = st.fixed_dictionaries(
    {X.uid: st.integers(0, 9), Y.uid: st.integers(0, 7), Z.uid: st.integers(-3, 12)}
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(exprs(), conditions(exprs())), VALUES)
def test_simplify_keeps_the_value(e: Expr, values: dict[int, int]) -> None:
    assert evaluate(simplify(e, RANGES), values) == evaluate(e, values)


@settings(max_examples=200, deadline=None)
@given(exprs(), VALUES)
def test_bounds_hold_the_value(e: Expr, values: dict[int, int]) -> None:
    low, high = bounds(e, RANGES).numbers
    value = evaluate(e, values)
    assert low is None or low <= value
    assert high is None or value <= high


SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(max_examples=200, deadline=None)
@given(st.data(), SIZES)
def test_symbolic_ranges_keep_the_value(data: st.DataObject, sizes: tuple[int, int]) -> None:
    n, m = sizes
    ranges = {
        N: Interval(1, None), M: Interval(1, None), X: Interval(0, N - 1), Y: Interval(0, M - 1),
        Z: Interval(0, (N + 7) // 8 - 1),
    }  # fmt: skip
    atoms = st.sampled_from([X, Y, Z, N, M, X * M + Y, Z * 8, N * M, N // 8, N % 8])
    e = data.draw(
        st.one_of(
            conditions(atoms),
            st.builds(
                lambda o, a, b: Binary(o, a, b, a.dtype),
                st.sampled_from(["floordiv", "floormod", "min", "max"]),
                atoms,
                st.sampled_from([N, M, N * M, IntImm(8)]),
            ),
        )
    )
    values = {N.uid: n, M.uid: m}
    values[X.uid] = data.draw(st.integers(0, n - 1))
    values[Y.uid] = data.draw(st.integers(0, m - 1))
    values[Z.uid] = data.draw(st.integers(0, (n + 7) // 8 - 1))
    assert evaluate(simplify(e, ranges), values) == evaluate(e, values)


SPLIT = X * 8 + Y
CASES = [
    (SPLIT // 8, X),
    (SPLIT % 8, Y),
    (SPLIT // 4, X * 2 + Y // 4),
    (SPLIT // 16 * 16 + SPLIT % 16, SPLIT),
    (X + Y - X, Y),
    ((Z // 6) * 6 + Z % 6, Z),
    ((Z % 64) // 8 * 8 + Z % 8, Z % 64),
    ((N // 8) // 4, N // 32),
    (X * N + Y - N * X, Y),
    (binary("min", X, Y + 10), X),
    (binary("max", N - 1, N), N),
    ((X + N) - (N + X), IntImm(0)),
]


@pytest.mark.parametrize(("given_", "wanted"), CASES)
def test_canonical_forms(given_: Expr, wanted: Expr) -> None:
    assert same(simplify(given_, RANGES), wanted)


def test_symbolic_proofs() -> None:
    ranges = {N: Interval(1, None), X: Interval(0, (N - 1) // 8), Y: Interval(0, N - 1)}
    assert prove(X * 8 < N, ranges)
    assert prove(binary("min", X * 8 + 8, N) <= N, ranges)
    assert prove((N + 7) // 8 * 8 >= N, ranges)
    assert not prove(X * 8 + 7 < N, ranges)


def test_fused_symbolic_loop_splits_again() -> None:
    ranges = {N: Interval(1, None), M: Interval(1, None), X: Interval(0, N - 1),
              Y: Interval(0, M - 1)}  # fmt: skip
    fused = X * M + Y
    assert same(simplify(fused // M, ranges), X)
    assert same(simplify(fused % M, ranges), Y)
    assert prove(fused < N * M, ranges)


def test_narrow_arithmetic_that_may_wrap_is_left_alone() -> None:
    a = Var("a", dtype("int8"))
    assert not prove(a + 1 > a)
    assert prove(a + 1 > a, {a: Interval(0, 100)})


def test_float_arithmetic_is_never_changed() -> None:
    f = Var("f", FloatImm(0.0).dtype)
    for e in (f + 0.0, f * 1.0, f - f, f * 0.0, Select(f < f, f, f + 0.0, f.dtype), Not(f < f)):
        assert same(simplify(e), e)


def test_known_conditions_disappear_below() -> None:
    buffer = Buffer("b", X.dtype, (N,))
    store = Store(buffer, (X,), X)
    inner = IfThen(X + 1 <= N, store)
    assert same(simplify(IfThen(X < N, inner)), simplify(IfThen(X < N, store)))
    contradiction = IfThen(X < N, IfThen(X >= N, store))
    assert same(simplify(contradiction), Seq(()))


def test_loops_of_one_and_none_disappear() -> None:
    buffer = Buffer("b", X.dtype, (IntImm(4),))
    body = Store(buffer, (X,), X)
    once = For(X, IntImm(3), IntImm(1), "serial", body)
    assert same(simplify(once), Store(buffer, (IntImm(3),), IntImm(3)))
    assert same(simplify(For(X, IntImm(0), IntImm(0), "serial", body)), Seq(()))
    assert same(simplify(Seq((Evaluate(X), body))), body)


def test_logic_keeps_one_of_two_alike() -> None:
    cond = N < M
    assert same(simplify(logic("and", cond, N + 1 <= M)), simplify(cond))
