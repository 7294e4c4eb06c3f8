"""rfactor: two reductions instead of one, with the same result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.lower import lower
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


def row_sums(rows: Any, columns: Any) -> tuple[Schedule, Tensor, Tensor, te.IterVar]:
    a = te.placeholder((rows, columns), "int32", name="A")
    k = te.reduce_axis((0, columns), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return te.create_schedule(b.op), a, b, k


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 40), st.integers(1, 9), st.booleans(), st.booleans(),
    st.booleans(), st.sampled_from([0, 1, -1]),
)  # fmt: skip
def test_any_split_gives_the_same_sums(
    rows: int, columns: int, size: int, symbolic: bool, outer: bool, parts: bool, place: int
) -> None:
    n, m = (te.var("n"), te.var("m")) if symbolic else (rows, columns)
    s, a, b, k = row_sums(n, m)
    loops = s[b].split(k, nparts=size) if parts else s[b].split(k, factor=size)
    partial = s.rfactor(b, loops[0 if outer else 1], factor_axis=place)
    assert isinstance(partial, Tensor)
    s[partial].compute_at(s[b], b.op.axis[0])
    x = np.random.default_rng(0).integers(-99, 99, (rows, columns)).astype(np.int32)
    got = np.zeros(rows, np.int32)
    interp.run(lower(s, [a, b]), [x, got])
    np.testing.assert_array_equal(got, x.sum(1))


def test_the_kept_loop_may_be_vectorised_and_parallel() -> None:
    a = te.placeholder((1000,), name="A")
    k = te.reduce_axis((0, 1000), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(k, factor=16)
    partial = s.rfactor(b, inner)
    assert isinstance(partial, Tensor)
    lane, _ = partial.op.axis
    s[partial].reorder(*partial.op.reduce_axis, *partial.op.axis[1:], lane)
    s[partial].vectorize(lane)
    x = np.random.default_rng(0).random(1000, dtype=np.float32)
    got = np.zeros(1, np.float32)
    module = fb.build(s, [a, b])
    module(x, got)
    np.testing.assert_allclose(got[0], x.sum(), rtol=1e-5)
    assert "x float>" in module.get_source()


def test_a_whole_axis_is_kept() -> None:
    s, a, b, k = row_sums(3, 5)
    partial = s.rfactor(b, k)
    assert isinstance(partial, Tensor)
    assert [n.value for n in partial.shape] == [5, 3]  # type: ignore[attr-defined]
    x, got = np.arange(15, dtype=np.int32).reshape(3, 5), np.zeros(3, np.int32)
    interp.run(lower(s, [a, b]), [x, got])
    np.testing.assert_array_equal(got, x.sum(1))


def test_reductions_of_several_values() -> None:
    def combine(x: Any, y: Any) -> Any:
        first = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return te.select(first, x[0], y[0]), te.select(first, x[1], y[1])

    largest = te.comm_reducer(combine, lambda i, v: (te.const(-1, i), te.min_value(v)))
    a = te.placeholder((4, 21), name="A")
    k = te.reduce_axis((0, 21), name="k")
    at, top = te.compute_all((4,), lambda i: largest((k, a[i, k]), axis=k), name="T")
    s = te.create_schedule(at.op)
    outer, _ = s[at].split(k, factor=4)
    partials = s.rfactor(at, outer)
    assert isinstance(partials, tuple)
    assert len(partials) == 2
    x = np.random.default_rng(1).random((4, 21), dtype=np.float32)
    index, value = np.zeros(4, np.int64), np.zeros(4, np.float32)
    interp.run(lower(s, [a, at, top]), [x, index, value])
    np.testing.assert_array_equal(index, x.argmax(1))
    np.testing.assert_array_equal(value, x.max(1))


def test_where_and_init_are_kept_once() -> None:
    a = te.placeholder((10,), "int32", name="A")
    k = te.reduce_axis((0, 10), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k, where=k > 2, init=100), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(k, factor=4)
    s.rfactor(b, inner)
    x, got = np.arange(10, dtype=np.int32), np.zeros(1, np.int32)
    interp.run(lower(s, [a, b]), [x, got])
    assert got[0] == 100 + x[3:].sum()


def test_what_cannot_be_parted_is_named() -> None:
    s, _, b, k = row_sums(4, 16)
    with pytest.raises(ScheduleError, match="rfactor: axis i of stage B is no reduce loop"):
        s.rfactor(b, b.op.axis[0])
    with pytest.raises(ScheduleError, match="cannot become dimension 2 of 2"):
        s.rfactor(b, k, factor_axis=2)
    _, inner = s[b].split(k, factor=8)
    _, innermost = s[b].split(inner, factor=2)
    with pytest.raises(ScheduleError, match="more than one split"):
        s.rfactor(b, innermost)


def test_a_condition_of_the_reduction_is_asked_in_range_only() -> None:
    """The tail of the split comes first, then what reads the tensor."""
    a = te.placeholder((10,), "int32", name="A")
    b = te.compute((10,), lambda i: a[i] * 2, name="B")
    k = te.reduce_axis((0, 10), name="k")
    c = te.compute((1,), lambda i: te.sum(b[k], axis=k, where=b[k] > 4), name="C")
    sch = te.create_schedule(c.op)
    _, inner = sch[c].split(k, factor=4)
    partial = sch.rfactor(c, inner)
    assert isinstance(partial, Tensor)
    sch[b].compute_at(sch[partial], partial.op.axis[0])
    fn = lower(sch, [a, c])
    x = np.arange(10, dtype=np.int32)
    got = np.zeros(1, np.int32)
    interp.run(fn, [x, got])
    assert got[0] == (x * 2)[x * 2 > 4].sum()
