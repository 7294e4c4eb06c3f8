"""Softmax, layer norm and activations against numpy, for rows of any length."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

from farbench_compiler.build import build
from farbench_compiler.ops.activation import gelu, sigmoid
from farbench_compiler.ops.normalization import layer_norm
from farbench_compiler.ops.softmax import log_softmax, softmax

from .programs import Array, Place, numbers

COLUMNS = (1, 3, 16, 77, 128, 200)
CLOSE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}


def wide_softmax(x: Array) -> Array:
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("columns", COLUMNS)
def test_softmax(columns: int, place: Place) -> None:
    x = numbers((5, columns), "float32", columns) * 30
    got = place.compute(softmax(5, columns, "float32", place.target), [x], x.shape)
    np.testing.assert_allclose(got, wide_softmax(x), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("columns", COLUMNS)
def test_log_softmax(columns: int, place: Place) -> None:
    x = numbers((5, columns), "float32", columns) * 30
    got = place.compute(log_softmax(5, columns, "float32", place.target), [x], x.shape)
    np.testing.assert_allclose(got, np.log(wide_softmax(x)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", CLOSE)
def test_softmax_of_other_dtypes(dtype: str, place: Place) -> None:
    x = numbers((4, 70), dtype, 3)
    program = softmax(4, 70, dtype, place.target, parallel=True)
    got = place.compute(program, [x], x.shape)
    np.testing.assert_allclose(got, wide_softmax(x), rtol=CLOSE[dtype], atol=1e-7)


def test_softmax_of_nan_and_infinity(place: Place) -> None:
    x = numbers((3, 40), "float32", 9)
    x[0, 7], x[1, 9], x[2, 11] = np.nan, -np.inf, 3e38
    got = place.compute(softmax(3, 40, "float32", place.target), [x], x.shape)
    assert np.isnan(got[0]).all()
    assert got[1, 9] == 0
    assert got[2, 11] == 1


@pytest.mark.parametrize("columns", COLUMNS)
def test_layer_norm(columns: int, place: Place) -> None:
    x = numbers((5, columns), "float32", columns) + np.float32(10)
    gamma, beta = numbers((columns,), "float32", 1), numbers((columns,), "float32", 2)
    wide = x.astype(np.float64)
    away = wide - wide.mean(axis=1, keepdims=True)
    wanted = away / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * gamma + beta
    program = layer_norm(5, columns, "float32", place.target)
    got = place.compute(program, [x, gamma, beta], x.shape)
    np.testing.assert_allclose(got, wanted, atol=1e-3 if columns == 1 else 5e-5)


@pytest.mark.parametrize("n", [1, 77, 1024])
def test_activations(n: int, place: Place) -> None:
    x = numbers((n,), "float32", 4) * 6
    wide = x.astype(np.float64)
    got = place.compute(gelu(n, "float32", place.target), [x], x.shape)
    np.testing.assert_allclose(got, wide / 2 * (1 + erf(wide * np.sqrt(0.5))), atol=1e-6)
    got = place.compute(sigmoid(n, "float32", place.target, parallel=True), [x], x.shape)
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-wide)), rtol=1e-6)


def test_large_outputs_are_written_past_the_caches_and_rows_read_ahead() -> None:
    small, large = (build(*softmax(rows, 1024, target="x86-64-v4")) for rows in (1024, 8192))
    assert "!nontemporal" not in small.get_source("ll")
    assert "!nontemporal" in large.get_source("ll")
    assert "llvm.prefetch" in small.get_source("ll")
    wide = build(*softmax(16, 1 << 16, target="x86-64-v4"))
    assert "llvm.prefetch" not in wide.get_source("ll")
