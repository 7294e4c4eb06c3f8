"""Vector add for every dtype, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import ops

from .programs import Place, numbers

DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("n", [1, 1000, 1024])
@pytest.mark.parametrize("dtype", DTYPES)
def test_vector_add(dtype: str, n: int, place: Place) -> None:
    a, b = numbers((n,), dtype, 5), numbers((n,), dtype, 6)
    got = place.compute(ops.vector_add(n, dtype, place.target), [a, b], (n,))
    np.testing.assert_array_equal(got, a + b)


@pytest.mark.parametrize("parallel", [False, True])
def test_sizes_that_are_no_vectors(parallel: bool, place: Place) -> None:
    a, b = numbers((77,), "float32", 7), numbers((77,), "float32", 8)
    program = ops.vector_add(77, "float32", place.target, parallel=parallel)
    np.testing.assert_array_equal(place.compute(program, [a, b], (77,)), a + b)
