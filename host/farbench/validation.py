"""An output against its reference: right or wrong, by how much, and where first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numpy = npt.NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """How an output differs from its reference; `first_index` is the first wrong element."""

    valid: bool
    max_error: float
    tolerance: float
    first_index: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.valid:
            return f"valid (largest error {self.max_error:.3g}, allowed {self.tolerance:.3g})"
        return (
            f"wrong: largest error {self.max_error:.3g}, allowed {self.tolerance:.3g}, "
            f"first at {list(self.first_index or ())}"
        )


def compare(output: Numpy, reference: Numpy, tolerance: float = 0.0) -> Comparison:
    """Compare element by element; with tolerance 0 all must be equal.

    NaN equals NaN and an infinity itself; a difference in shape or dtype is an error of the
    caller (ValueError).
    """
    if output.shape != reference.shape or output.dtype != reference.dtype:
        raise ValueError(
            f"cannot compare {output.dtype}{list(output.shape)} "
            f"with {reference.dtype}{list(reference.shape)}"
        )
    same = output == reference
    if output.dtype.kind == "f":
        same |= np.isnan(output) & np.isnan(reference)
    error = np.where(same, 0.0, _distance(output, reference))
    wrong = ~same & ((error > tolerance) | (tolerance == 0))
    largest = float(error.max(initial=0.0))
    if not wrong.any():
        return Comparison(True, largest, tolerance)
    first = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return Comparison(False, largest, tolerance, tuple(int(i) for i in first))


def _distance(output: Numpy, reference: Numpy) -> Numpy:
    if output.dtype.kind in "iub":
        # Subtracted as they are: float64 would round large integers together.
        high, low = np.maximum(output, reference), np.minimum(output, reference)
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(output.astype(np.float64) - reference.astype(np.float64))
    return np.where(np.isnan(error), np.inf, error)


def sum_tolerance(terms: int, dtype: str, left: float, right: float) -> float:
    """Bound how far two sums of `terms` products may lie apart, in whatever order each is taken.

    `left` and `right` bound the factors, whose signs are mixed. A partial sum is then about
    sqrt(terms) long and the roundings on it add up as a random walk of `terms` steps, so the error
    is about eps * terms; a wrong index or a lost term is larger by orders of magnitude.
    """
    return float(np.finfo(dtype).eps) * terms * left * right
