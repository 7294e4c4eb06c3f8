"""Validation: what is equal, what is close, and where an output is wrong first."""

from __future__ import annotations

import numpy as np
import pytest

from farbench.validation import compare, sum_tolerance


def test_equal_outputs_are_valid_without_tolerance() -> None:
    values = np.array([1.0, np.nan, np.inf, -0.0], dtype=np.float32)
    assert compare(values, values.copy()).valid


def test_the_first_wrong_element_is_named() -> None:
    reference = np.zeros((3, 4), dtype=np.float32)
    output = reference.copy()
    output[1, 2] = 0.5
    output[2, 0] = 2.0
    found = compare(output, reference, tolerance=0.1)
    assert not found.valid
    assert (found.first_index, found.max_error) == ((1, 2), 2.0)
    assert "first at [1, 2]" in str(found)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_number_that_became_nan_or_infinite_is_wrong(wrong: float) -> None:
    reference = np.ones(4, dtype=np.float32)
    output = reference.copy()
    output[3] = wrong
    found = compare(output, reference, tolerance=1e30)
    assert not found.valid
    assert found.first_index == (3,)


def test_integers_are_compared_exactly_at_their_limits() -> None:
    reference = np.array([2**63 - 1], dtype=np.int64)
    assert not compare(reference - 1, reference).valid


def test_a_lost_term_of_a_sum_is_beyond_the_tolerance() -> None:
    draw = np.random.default_rng(0)
    a = draw.uniform(-1, 1, (64, 4608)).astype(np.float32)
    b = draw.uniform(-1, 1, (4608, 64)).astype(np.float32)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    tolerance = sum_tolerance(4608, "float32", 1, 1)
    assert compare(a @ b, exact, tolerance).valid
    assert not compare(a[:, :-1] @ b[:-1], exact, tolerance).valid


def test_other_shapes_are_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="cannot compare"):
        compare(np.zeros(3), np.zeros(4))
