"""Seeded fills: fixed values, every dtype's range, and element i of seed and i alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench import fill
from farbench.errors import UsageError

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def test_bits_are_those_of_splitmix64() -> None:
    # The first outputs of the published reference implementation for seed 1234567.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(r) for r in fill.bits(1234567, 0, 4)] == known


@pytest.mark.parametrize("dtype", fill.DTYPES)
def test_every_dtype_keeps_its_default_range(dtype: str) -> None:
    low, high = fill.default_range(dtype)
    values = fill.reference(3, "uniform", low, high, dtype, 4096)
    assert values.dtype.name == dtype
    assert values.min() >= low
    assert values.max() <= high
    assert len(np.unique(values)) > 1


@given(st.integers(0, 2**64 - 1), st.integers(0, 1000), st.integers(1, 1000))
def test_an_element_depends_on_seed_and_index_alone(seed: int, skip: int, count: int) -> None:
    whole = fill.bits(seed, 0, skip + count)
    assert (whole[skip:] == fill.bits(seed, skip, count)).all()


def test_a_long_array_is_the_same_as_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fill.reference(9, "uniform", -1, 1, "float32", 1000)
    monkeypatch.setattr(fill, "_CHUNK", 7)
    assert (fill.reference(9, "uniform", -1, 1, "float32", 1000) == whole).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_the_unit_value_scaled_and_rounded_once(dtype: str) -> None:
    unit = fill.reference(5, "uniform", 0, 1, "float64", 100)
    found = fill.reference(5, "uniform", -3, 4, dtype, 100)
    assert (found == (-3 + unit * 7).astype(dtype)).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_reach_their_whole_range(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = fill.reference(1, "uniform", info.min, float(info.max) + 1, dtype, 20_000)
    assert values.min() < info.min + (int(info.max) - int(info.min)) * 0.01
    assert values.max() > info.max - (int(info.max) - int(info.min)) * 0.01


def test_constants_and_shapes() -> None:
    assert (fill.reference(0, "constant", -2, 0, "int8", (2, 3)) == np.full((2, 3), -2)).all()
    assert fill.reference(0, "constant", 3, 0, "bool", 2).tolist() == [True, True]
    assert fill.reference(0, "uniform", 0, 1, "float32", (0, 4)).shape == (0, 4)
    assert fill.reference(0, "uniform", 0, 1, "float32", ()).shape == ()


@pytest.mark.parametrize(
    ("kind", "low", "high", "dtype"),
    [
        ("uniform", 1, 1, "float32"),
        ("uniform", 0.2, 0.8, "int32"),
        ("uniform", 0, 300, "uint8"),
        ("constant", 0.5, 0, "int8"),
        ("constant", 300, 0, "uint8"),
        ("normal", 0, 1, "float32"),
        ("uniform", 0, 1, "float8"),
    ],
)
def test_what_fits_no_dtype_is_refused(kind: str, low: float, high: float, dtype: str) -> None:
    with pytest.raises(UsageError):
        fill.reference(0, kind, low, high, dtype, 4)


def test_the_source_says_seed_and_range() -> None:
    assert fill.describe(7, "uniform", 0, 1) == "seed 7, uniform [0, 1)"
    assert fill.describe(7, "constant", 2, 0) == "constant 2"
