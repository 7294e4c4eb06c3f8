"""Reductions: what they compute and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ir.interp import run
from farbench_compiler.lower import lower

Array = npt.NDArray[Any]

DATA = np.array([[3, -1, 4], [1, -5, 9]], np.int32)


def _reduce(make: Callable[[Expr, te.IterVar], Expr], x: Array) -> Array:
    a = te.placeholder(x.shape, str(x.dtype), name="A")
    k = te.reduce_axis((0, x.shape[1]), name="k")
    c = te.compute((x.shape[0],), lambda i: make(a(i, k), k), name="C")
    got = np.zeros(x.shape[0], str(c.dtype))
    run(lower(te.create_schedule(c.op), [a, c]), [x, got])
    return got


@pytest.mark.parametrize(
    ("reducer", "expected"),
    [(te.sum, [6, 5]), (te.prod, [-12, -45]), (te.max, [4, 9]), (te.min, [-1, -5])],
)
@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32", "float64"])
def test_reducers(reducer: Callable[..., Expr], expected: list[int], dtype: str) -> None:
    got = _reduce(lambda v, k: reducer(v, axis=k), DATA.astype(dtype))
    assert str(got.dtype) == dtype
    np.testing.assert_array_equal(got, expected)


def test_the_greatest_of_minus_infinities_is_minus_infinity() -> None:
    got = _reduce(lambda v, k: te.max(v, axis=k), np.full((1, 2), -np.inf, np.float32))
    np.testing.assert_array_equal(got, [-np.inf])


def test_truth_values() -> None:
    np.testing.assert_array_equal(_reduce(lambda v, k: te.all(v > -2, axis=k), DATA), [True, False])
    np.testing.assert_array_equal(_reduce(lambda v, k: te.any(v > 5, axis=k), DATA), [False, True])
    np.testing.assert_array_equal(_reduce(lambda v, k: te.sum(v > 0, axis=k), DATA), [2, 2])


def test_where_and_init() -> None:
    got = _reduce(lambda v, k: te.sum(v, axis=k, where=v > 0, init=100), DATA)
    np.testing.assert_array_equal(got, [107, 110])


def test_a_reduction_of_plain_values_combines_them() -> None:
    a = te.placeholder((3,), "int32", name="A")
    c = te.compute((3,), lambda i: te.max(a[i], 0, 2), name="C")
    got = np.zeros(3, np.int32)
    run(lower(te.create_schedule(c.op), [a, c]), [np.array([-1, 1, 5], np.int32), got])
    np.testing.assert_array_equal(got, [2, 2, 5])


def test_an_axis_that_does_not_begin_at_zero() -> None:
    a = te.placeholder((8,), "int32", name="A")
    k = te.reduce_axis((2, 5), name="k")
    c = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="C")
    got = np.zeros(1, np.int32)
    run(lower(te.create_schedule(c.op), [a, c]), [np.arange(8, dtype=np.int32), got])
    assert got[0] == 9


@pytest.mark.parametrize("split", [False, True])
def test_a_user_combiner_with_two_values(split: bool) -> None:
    def combine(x: tuple[Expr, Expr], y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        better = y[1] > x[1]
        return te.select(better, y[0], x[0]), te.select(better, y[1], x[1])

    argmax = te.comm_reducer(
        combine, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax"
    )
    x = np.array([[1, 7, 7, 2, 0], [5, 4, 3, 2, 9]], np.int32)
    a = te.placeholder(x.shape, "int32", name="A")
    k = te.reduce_axis((0, x.shape[1]), name="k")
    at, top = te.compute_all((2,), lambda i: argmax((k, a[i, k]), axis=k), name="T")
    sch = te.create_schedule(at.op)
    if split:
        sch[at].split(k, factor=2)
    where, value = np.zeros(2, np.int64), np.zeros(2, np.int32)
    run(lower(sch, [a, at, top]), [x, where, value])
    np.testing.assert_array_equal(where, x.argmax(axis=1))
    np.testing.assert_array_equal(value, x.max(axis=1))


def test_several_outputs() -> None:
    a = te.placeholder((3,), "int32", name="A")
    s, d = te.compute_all((3,), lambda i: (a[i] + 1, a[i] * 2), name="T")
    c = te.compute((3,), lambda i: s[i] * d[i], name="C")
    got = np.zeros(3, np.int32)
    x = np.arange(3, dtype=np.int32)
    run(lower(te.create_schedule(c.op), [a, c]), [x, got])
    np.testing.assert_array_equal(got, (x + 1) * x * 2)


def test_a_reduction_stands_alone() -> None:
    a = te.placeholder((3, 3), name="A")
    k = te.reduce_axis((0, 3), name="k")
    with pytest.raises(te.ScheduleError, match="compute C: a reduction stands alone"):
        te.compute((3,), lambda i: te.sum(a[i, k], axis=k) / 3, name="C")


def test_an_axis_must_be_a_reduce_axis() -> None:
    a = te.placeholder((3, 3), name="A")
    with pytest.raises(te.ScheduleError, match="give a te.reduce_axis"):
        te.compute((3,), lambda i: te.sum(a[i, i], axis=i, where=i > 0), name="C")


def test_a_reduction_of_one_value_without_an_axis_is_refused() -> None:
    a = te.placeholder((3,), name="A")
    with pytest.raises(te.ScheduleError, match="sum: give axis="):
        te.compute((3,), lambda i: te.sum(a[i]))


@pytest.mark.parametrize("dom", [3, (0, 3, 4), None])
def test_a_reduce_axis_wants_begin_and_end(dom: Any) -> None:
    with pytest.raises(te.ScheduleError, match=r"reduce_axis k: .* give \(begin, end\)"):
        te.reduce_axis(dom, name="k")
