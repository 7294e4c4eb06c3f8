"""Symbolic bounds hold every value and are what a stencil or a tile needs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler.ir.expr import Expr, IntImm, Select, Var, binary
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.relax import Relaxer
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.structural import same

from .evaluate import evaluate

X, Y, N, M = (Var(name) for name in "xynm")
OVER = {X: Interval(IntImm(0), IntImm(7)), Y: Interval(IntImm(0), N - 1)}
FIXED = {N: Interval(1, None), M: Interval(0, None)}


def bounds(e: Expr) -> tuple[Expr, Expr]:
    found = Relaxer(OVER, FIXED)(e)
    assert isinstance(found.low, Expr)
    assert isinstance(found.high, Expr)
    return found.low, found.high


def test_a_tile_and_a_stencil() -> None:
    low, high = bounds(M * 8 + X + 2)
    assert same(low, simplify(M * 8 + 2))
    assert same(high, simplify(M * 8 + 9))
    low, high = bounds(N - Y)
    assert same(low, IntImm(1))
    assert same(high, N)


def test_fixed_expressions_are_their_own_bounds() -> None:
    low, high = bounds(N * M + 1)
    assert same(low, high)


def test_what_has_no_bound() -> None:
    free = Relaxer({X: Interval(None, None)})(X + 1)
    assert free.low is None
    assert free.high is None


def exprs() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from([X, Y, N, M]), st.integers(-4, 9).map(IntImm))

    def grow(below: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        ops = st.sampled_from(["add", "sub", "min", "max"])
        digits = st.sampled_from(["floordiv", "floormod", "mul"])
        factors = st.sampled_from([1, 2, 3, 8])
        return st.one_of(
            st.builds(binary, ops, below, below),
            st.builds(binary, digits, below, factors),
            st.builds(lambda a, b: Select(a < b, a, b, a.dtype), below, below),
        )

    return st.recursive(leaves, grow, max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(exprs(), st.integers(1, 5), st.integers(0, 4), st.data())
def test_every_value_lies_between(e: Expr, n: int, m: int, data: st.DataObject) -> None:
    found = Relaxer(OVER, FIXED)(e)
    values = {N.uid: n, M.uid: m}
    values[X.uid] = data.draw(st.integers(0, 7))
    values[Y.uid] = data.draw(st.integers(0, n - 1))
    value = evaluate(e, values)
    if isinstance(found.low, Expr):
        assert evaluate(found.low, values) <= value
    if isinstance(found.high, Expr):
        assert value <= evaluate(found.high, values)
