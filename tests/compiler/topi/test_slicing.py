"""Slices taken and set, and windows, against numpy."""

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

from .evaluate import check, numbers

X = numbers(6, 7, 5)
PLACE = st.none() | st.integers(-9, 9)
STEP = st.integers(-3, 3).filter(bool)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 7), PLACE, PLACE, STEP, st.booleans())
def test_any_slice_of_any_size(
    n: int, first: int | None, last: int | None, step: int, symbolic: bool
) -> None:
    x = np.arange(n, dtype="int32")
    a = te.placeholder((te.var("n") if symbolic else n,), "int32", name="A")
    out = topi.strided_slice(a, [first], [last], [step])
    wanted = x[first:last:step]
    if not symbolic:
        assert out.shape[0].value == len(wanted)  # type: ignore[attr-defined]
    got = np.full(wanted.shape, -1, "int32")
    interp.run(lower(te.create_schedule(out.op), [a, out]), [x, got])
    np.testing.assert_array_equal(got, wanted)


def test_axes_and_sizes() -> None:
    check(lambda x: topi.strided_slice(x, [1, -3], [6, 9], [2, 1], axes=[2, 0]), [X],
          X[-3:9, :, 1:6:2])  # fmt: skip
    check(lambda x: topi.strided_slice(x, [2, -2, 0], [3, 2, -1], slice_mode="size"), [X],
          X[2:5, -2:, :])  # fmt: skip


@pytest.mark.parametrize(
    "cut",
    [
        (slice(1, 5), slice(None, 3), slice(None)),
        (slice(None, None, 2), slice(5, 1, -2), slice(-2, None)),
    ],
)
def test_strided_set(cut: tuple[slice, ...]) -> None:
    wanted = X.copy()
    news = numbers(*wanted[cut].shape, seed=3)
    wanted[cut] = news
    starts: list[Any] = [c.start for c in cut]
    ends: list[Any] = [c.stop for c in cut]
    strides = [c.step or 1 for c in cut]
    check(lambda x, v: topi.strided_set(x, v, starts, ends, strides), [X, news], wanted)


def test_sliding_window() -> None:
    view = np.lib.stride_tricks.sliding_window_view(X, (3, 2), (1, 2))[:, ::2, ::1]
    check(lambda x: topi.sliding_window(x, 1, (3, 2), (2, 1)), [X], view)


def test_wrong_use_names_the_operator() -> None:
    a = te.placeholder((3, 4), name="A")
    with pytest.raises(ScheduleError, match=r"topi\.strided_slice: 1 begin, 1 end, strides \[0\]"):
        topi.strided_slice(a, [0], [1], [0])
    with pytest.raises(ScheduleError, match=r"topi\.strided_slice: slice_mode 'no' is unknown"):
        topi.strided_slice(a, [0], [1], slice_mode="no")
    with pytest.raises(ScheduleError, match=r"topi\.strided_set: sizes of dimension 0 of A"):
        topi.strided_set(a, a, [0], [2])
    with pytest.raises(ScheduleError, match=r"topi\.sliding_window: a window of \[4, 1\]"):
        topi.sliding_window(a, 0, [4, 1], [1, 1])
