"""bfloat16 in numpy, by the `ml_dtypes` package: its dtype, and rounding to it once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)


def to_bfloat16(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Round numbers to bfloat16, to nearest even.

    Doubles are rounded once; through float32, as the package casts them, they would be twice.
    """
    given = np.asarray(values)
    if given.dtype != np.float64:
        return given.astype(BFLOAT16)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        single = given.astype(np.float32)
        inexact = np.isfinite(given) & (single.astype(np.float64) != given)
        too_far = inexact & (np.abs(single) > np.abs(given))
    # Cut towards zero and stick what is lost to the last bit (Boldo and Melquiond, 2008).
    bits = (single.view(np.uint32) - too_far.astype(np.uint32)) | inexact.astype(np.uint32)
    return np.asarray(bits, np.uint32).view(np.float32).astype(BFLOAT16)
