"""Batches of products and dense layers, against numpy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler import ops
from farbench_compiler.errors import ScheduleError
from tests.compiler.llvm.jit import run

from .programs import Place, check, numbers

NATIVE = Place("native", partial(run, target="native"))
SIZES = st.integers(1, 40)


def check_batch(
    place: Place, shape: tuple[int, int, int, int], dtype: str = "float32", *,
    transposed: bool = False, parallel: bool = False,
) -> None:  # fmt: skip
    batch, m, n, k = shape
    a = numbers((batch, m, k), dtype, 1)
    b = numbers((batch, n, k) if transposed else (batch, k, n), dtype, 2)
    program = ops.batch_matmul(
        *shape, dtype, place.target, transposed=transposed, parallel=parallel
    )
    wide = "f8" if np.dtype(dtype).kind == "f" else dtype
    right = b.astype(wide).transpose(0, 2, 1) if transposed else b.astype(wide)
    check(place.compute(program, [a, b], (batch, m, n)), a.astype(wide) @ right, k)


def check_dense(place: Place, m: int, n: int, k: int, *, held: bool, parallel: bool) -> None:
    a, w = numbers((m, k), "float32", 1), numbers((n, k), "float32", 2)
    program = ops.dense(
        m, n, k, "float32", place.target, weight=w if held else None, parallel=parallel
    )
    given_arrays = [a] if held else [a, w]
    check(place.compute(program, given_arrays, (m, n)), a.astype("f8") @ w.astype("f8").T, k)


@pytest.mark.parametrize("transposed", [False, True])
def test_batches_on_any_machine(place: Place, transposed: bool) -> None:
    check_batch(place, (3, 19, 37, 23), transposed=transposed)


@pytest.mark.parametrize("held", [False, True])
def test_dense_on_any_machine(place: Place, held: bool) -> None:
    check_dense(place, 9, 35, 21, held=held, parallel=False)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_batches_of_any_dtype(dtype: str) -> None:
    check_batch(NATIVE, (2, 11, 20, 17), dtype)


@given(st.tuples(st.integers(1, 4), SIZES, SIZES, SIZES), st.booleans(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_batch_here(shape: tuple[int, int, int, int], transposed: bool, parallel: bool) -> None:
    check_batch(NATIVE, shape, transposed=transposed, parallel=parallel)


@given(SIZES, SIZES, SIZES, st.booleans(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_dense_here(m: int, n: int, k: int, held: bool, parallel: bool) -> None:
    check_dense(NATIVE, m, n, k, held=held, parallel=parallel)


def test_weights_of_another_shape_are_named() -> None:
    with pytest.raises(
        ScheduleError, match=r"dense: weight is float32\[3, 4\], expected float32\[4, 3\]"
    ):
        ops.dense(2, 4, 3, weight=np.zeros((3, 4), np.float32))
