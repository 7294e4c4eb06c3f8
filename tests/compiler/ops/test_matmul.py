"""Products of any size and dtype, against numpy."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.llvm.jit import run

from .programs import Place, check_matmul

NATIVE = Place("native", partial(run, target="native"))
SIZES = st.integers(1, 70)
SHAPES = ((1, 1, 1), (1, 33, 5), (33, 1, 5), (5, 33, 1), (40, 64, 20), (37, 53, 29))
# Few rows, few columns, rows that are read as they lie.
NARROW = ((3, 70, 45), (8, 9, 200), (41, 2, 130), (9, 8, 31), (30, 21, 256), (2, 170, 90))


@pytest.mark.parametrize(("m", "n", "k"), [*SHAPES, *NARROW])
def test_any_shape_on_any_machine(m: int, n: int, k: int, place: Place) -> None:
    check_matmul(place, m, n, k)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64"])
def test_any_dtype_on_any_machine(dtype: str, place: Place) -> None:
    check_matmul(place, 19, 37, 23, dtype)
    check_matmul(place, 2, 37, 23, dtype)
    check_matmul(place, 19, 3, 23, dtype)


@given(SIZES, SIZES, SIZES, st.sampled_from(["float32", "float64", "float16"]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_shape_here(m: int, n: int, k: int, dtype: str, parallel: bool) -> None:
    check_matmul(NATIVE, m, n, k, dtype, parallel=parallel)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (5, 0, 3), (5, 4, 0)])
def test_sizes_of_0(m: int, n: int, k: int) -> None:
    check_matmul(NATIVE, m, n, k)


def test_rows_beyond_one_block_of_the_cache() -> None:
    # 256 KiB hold 21 panels of 3000 steps at most: several blocks, the last one shorter.
    check_matmul(NATIVE, 211, 17, 3000)


def test_long_sums_of_halves_keep_their_digits() -> None:
    check_matmul(NATIVE, 4, 8, 4096, "float16")
