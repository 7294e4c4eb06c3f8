"""Comparisons for people's own tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def assert_allclose(
    actual: npt.ArrayLike, desired: npt.ArrayLike, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Raise AssertionError where two arrays differ by more than atol + rtol * |desired|."""
    np.testing.assert_allclose(np.asarray(actual), np.asarray(desired), rtol=rtol, atol=atol)
