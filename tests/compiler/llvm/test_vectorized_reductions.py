"""Reduce loops that a schedule vectorises, whole or split: right for every reducer and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from farbench_compiler import te
from farbench_compiler.lower import lower
from tests.compiler.llvm.jit import aligned, run

Array = NDArray[Any]
REDUCERS: dict[str, Callable[..., Array]] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min,
}  # fmt: skip
FACTORS: dict[str, tuple[int, ...]] = {"whole": (), "split": (8,), "split twice": (24, 4)}
TARGETS = ("native", "llvm -mcpu=x86-64")


def reduce_rows(data: Array, reducer: str, factors: tuple[int, ...], target: str) -> Array:
    """Reduce the rows of a matrix of symbolic width, the innermost loop vectorised."""
    width = te.var("n")
    x = te.placeholder((data.shape[0], width), str(data.dtype), name="X")
    k = te.reduce_axis((0, width), name="k")
    y = te.compute((data.shape[0],), lambda i: getattr(te, reducer)(x[i, k], axis=k), name="Y")
    schedule = te.create_schedule(y.op)
    inner = k
    for factor in factors:
        _, inner = schedule[y].split(inner, factor=factor)
    schedule[y].vectorize(inner)
    got = aligned(np.full(data.shape[0], 77).astype(data.dtype))
    assert run(lower(schedule, [x, y]), [aligned(data), got], [data.shape[1]], target=target) == 0
    return got


@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64"])
def test_every_reducer_and_dtype(dtype: str, reducer: str, factors: tuple[int, ...]) -> None:
    """Small whole numbers: every order of them gives the same result."""
    source = np.random.default_rng(1)
    for width in (5, 101):
        whole = source.integers(1, 3, (3, width)) if reducer == "prod" else (
            source.integers(0, 4, (3, width)))  # fmt: skip
        if reducer == "prod":
            whole[:, 10:] = 1
        data = whole.astype(dtype)
        wanted = REDUCERS[reducer](data, axis=1).astype(dtype)
        np.testing.assert_array_equal(reduce_rows(data, reducer, factors, "native"), wanted)


@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("reducer", ["max", "min"])
def test_nan_wins(reducer: str, factors: tuple[int, ...]) -> None:
    data = np.arange(4 * 37, dtype=np.float32).reshape(4, 37)
    for row, column in enumerate((0, 17, 36)):
        data[row, column] = np.nan
    data[3, 5] = -np.inf
    got = reduce_rows(data, reducer, factors, "native")
    np.testing.assert_array_equal(got, REDUCERS[reducer](data, axis=1))


@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_sums_of_any_floats_are_near(factors: tuple[int, ...]) -> None:
    data = np.random.default_rng(2).standard_normal((2, 1000)).astype(np.float32)
    wanted = data.astype(np.float64).sum(axis=1)
    for target in TARGETS:
        got = reduce_rows(data, "sum", factors, target)
        most = np.abs(data.astype(np.float64)).sum(axis=1) * 1000 * np.finfo(np.float32).eps
        assert (np.abs(got - wanted) <= most).all()
