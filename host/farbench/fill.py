"""Seeded fills in numpy: bit for bit what a device's runtime writes from the same seed.

Element i depends on seed and i alone (splitmix64). The formulas stand in
`farbench_compiler/runtime_c/farbench_runtime.h`; a fixed test holds both to the same values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from farbench.errors import UsageError
from farbench_compiler.ir.bfloat import BFLOAT16, to_bfloat16
from farbench_rpc.manifest import DTYPES as _SIZES

DTYPES = tuple(_SIZES)
KINDS = ("uniform", "constant")

Numpy = npt.NDArray[Any]
Bits = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_WORD = 1 << 64
_CHUNK = 1 << 20  # elements at a time, so that the intermediate values stay in cache


def default_range(dtype: str) -> tuple[float, float]:
    """Give [low, high) that a random array has unless told: [0, 1) for floats, small integers."""
    if dtype.startswith(("float", "bfloat")):
        return 0.0, 1.0
    if dtype == "bool":
        return 0.0, 2.0
    return (0.0, 16.0) if dtype.startswith("uint") else (-8.0, 8.0)


def describe(seed: int, kind: str, low: float, high: float) -> str:
    """Say in words how an array was filled."""
    if kind == "constant":
        return f"constant {low:g}"
    return f"seed {seed}, uniform [{low:g}, {high:g})"


def reference(
    seed: int, kind: str, low: float, high: float, dtype: str, shape: tuple[int, ...] | int
) -> Numpy:
    """Give the array that a device fills from these; UsageError when they fit no dtype."""
    if dtype not in DTYPES:
        raise UsageError(f"no dtype {dtype!r}; a fill knows {', '.join(DTYPES)}")
    if kind not in KINDS:
        raise UsageError(f"no fill {kind!r}; there are {', '.join(KINDS)}")
    of = numpy_dtype(dtype)
    if kind == "constant":
        return np.full(shape, _constant(low, of), dtype=of)
    made: Numpy = np.empty(shape, dtype=of)
    flat = made.reshape(-1)
    write = _writer(of, float(low), float(high))
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = write(bits(seed, start, part.size))
    return made


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Give numpy's dtype of a name; bfloat16 is the `ml_dtypes` package's."""
    return BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)


def bits(seed: int, start: int, count: int) -> Bits:
    """Give the 64 random bits of the elements start, start + 1, ..."""
    index = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z = np.uint64(seed % _WORD) + index * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    mixed: Bits = z ^ (z >> np.uint64(31))
    return mixed


def _constant(low: float, of: np.dtype[Any]) -> Any:
    if of.kind in "iu":
        info = np.iinfo(of)
        if low != math.floor(low) or not info.min <= low <= info.max:
            raise UsageError(f"{of.name} cannot hold the constant {low:g}")
        return int(low)
    if of == BFLOAT16:
        return to_bfloat16(np.float64(low))
    with np.errstate(over="ignore"):
        return low != 0 if of.kind == "b" else np.float64(low).astype(of)


def _writer(of: np.dtype[Any], low: float, high: float) -> Any:
    if of.kind == "b":
        return lambda r: (r >> np.uint64(63)).astype(np.bool_)
    if of.kind == "f" or of == BFLOAT16:
        if not low < high or not math.isfinite(high - low):
            raise UsageError(f"a uniform fill needs low < high, not [{low:g}, {high:g})")
        return lambda r: _floats(r, of, low, high - low)
    return _integers(of, low, high)


def _floats(r: Bits, of: np.dtype[Any], low: float, width: float) -> Numpy:
    unit = (r >> np.uint64(11)).astype(np.float64) * 2.0**-53
    with np.errstate(over="ignore"):
        scaled = low + unit * width
        return to_bfloat16(scaled) if of == BFLOAT16 else scaled.astype(of)


def _integers(of: np.dtype[Any], low: float, high: float) -> Any:
    info = np.iinfo(of)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError("a uniform fill needs finite limits")
    first, past = math.ceil(low), math.ceil(high)
    span = past - first
    if span < 1 or first < info.min or past - 1 > info.max:
        raise UsageError(f"{of.name} has no value in [{low:g}, {high:g}), or not all of them")

    def write(r: Bits) -> Numpy:
        if span <= 1 << 32:
            r = ((r >> np.uint64(32)) * np.uint64(span)) >> np.uint64(32)
        elif span < _WORD:
            r = r % np.uint64(span)
        # The sum wraps as the runtime's does: two's complement in 64 bits, then the low ones.
        return (r + np.uint64(first % _WORD)).astype(of)

    return write
