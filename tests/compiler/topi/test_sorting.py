"""Sorting and searching, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.lower import lower
from farbench_compiler.te import Tensor

from .evaluate import Array, check, evaluate, numbers

X = numbers(3, 7, 4)
EQUALS = (numbers(5, 33, seed=2) * 3).round().astype("int32")
EDGES = np.array([np.nan, 2, np.inf, -np.inf, np.nan, -0.0, 0.0], np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_each_axis(axis: int) -> None:
    check(lambda x: topi.sort(x, axis), [X], np.sort(X, axis))
    check(lambda x: topi.sort(x, axis, False), [X], -np.sort(-X, axis))
    check(lambda x: topi.argsort(x, axis=axis, dtype="int32"), [X], np.argsort(X, axis))


def test_equal_elements_keep_their_order_both_ways() -> None:
    up, down = (np.argsort(x, -1, kind="stable") for x in (EQUALS, -EQUALS))
    check(lambda x: topi.argsort(x, dtype="int64"), [EQUALS], up)
    check(lambda x: topi.argsort(x, is_ascend=0), [EQUALS], down)


def test_not_a_number_is_the_greatest() -> None:
    check(topi.sort, [EDGES], np.sort(EDGES))
    check(lambda x: topi.argsort(x, is_ascend=False, dtype="int32"), [EDGES], [0, 4, 2, 1, 5, 6, 3])


def _one(found: Tensor | list[Tensor], which: int = 0) -> Tensor:
    return found[which] if isinstance(found, list) else found


def test_topk() -> None:
    greatest = -np.sort(-X, 1)[:, :3]
    check(lambda x: _one(topi.topk(x, 3, 1)), [X], greatest)
    check(lambda x: _one(topi.topk(x, 3, 1), 1), [X], np.argsort(-X, 1)[:, :3])
    check(lambda x: _one(topi.topk(x, 0, 1, "values", True)), [X], np.sort(X, 1))
    places = np.argsort(X, 2)[:, :, :1]
    check(lambda x: _one(topi.topk(x, 1, 2, "indices", True, "int32")), [X], places)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right: bool) -> None:
    side: Any = "right" if right else "left"
    row, values = np.sort(EQUALS[0]), numbers(2, 9, dtype="int32")
    check(
        lambda a, v: topi.searchsorted(a, v, right), [row, values],
        np.searchsorted(row, values, side),
    )  # fmt: skip
    rows = np.sort(X[0], 1)
    each = [np.searchsorted(a, v, side) for a, v in zip(rows, numbers(7, 5), strict=True)]
    check(
        lambda a, v: topi.searchsorted(a, v, right, "int32"), [rows, numbers(7, 5)], np.stack(each)
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-4, 4), max_size=40), st.booleans())
def test_rows_of_a_symbolic_length(row: list[int], ascending: bool) -> None:
    x: Array = np.array(row, "int16")
    a = te.placeholder((te.var("n"),), "int16", name="A")
    out = topi.argsort(a, is_ascend=ascending, dtype="int64")
    got = np.full(x.shape, -1, "int64")
    interp.run(lower(te.create_schedule(out.op), [a, out]), [x, got])
    np.testing.assert_array_equal(got, np.argsort(x if ascending else -x, kind="stable"))


def test_a_row_of_one_and_of_none() -> None:
    for count in (0, 1):
        assert evaluate(topi.sort, X[0, 0, :count]).shape == (count,)


def test_wrong_use_names_the_operator() -> None:
    a = te.placeholder((3, 4), name="A")
    with pytest.raises(ScheduleError, match=r"topi\.sort: axis 2 is outside"):
        topi.sort(a, 2)
    with pytest.raises(ScheduleError, match=r"topi\.topk: k is 5, A has 4 elements"):
        topi.topk(a, 5)
    with pytest.raises(ScheduleError, match=r"topi\.topk: ret_type is 'all'; give 'both'"):
        topi.topk(a, 1, ret_type="all")  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match=r"topi\.argsort: valid_count is not here"):
        topi.argsort(a, a)
    with pytest.raises(ScheduleError, match=r"topi\.searchsorted: A has 2 dimensions, B 1"):
        topi.searchsorted(a, te.placeholder((3,), name="B"))
