"""A kernel of ours on this machine: built, checked against its reference, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import farbench as fb

Numpy = npt.NDArray[Any]
Program = Callable[[], tuple[Any, Sequence[Any]]]
SEED = 1
SAMPLE_S = 0.002  # a shorter sample is mostly the clock's
MOST_CALLS = 10_000


def uniform(shape: tuple[int, ...], dtype: str = "float32", salt: int = 0) -> Numpy:
    """Give seeded elements, from [-1, 1) for floats and over the whole range for integers."""
    if np.dtype(dtype).kind in "iu":
        source = np.random.default_rng(SEED + salt)
        info = np.iinfo(dtype)
        return source.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return fb.fill.reference(SEED + salt, "uniform", -1.0, 1.0, dtype, shape)


@dataclass(frozen=True)
class Kernel:
    """A loaded function with its arguments; `calls` of it make one sample."""

    module: fb.Module
    arrays: tuple[Any, ...]
    calls: int

    @classmethod
    def of(
        cls,
        name: str,
        program: Program,
        inputs: Sequence[Numpy],
        expected: Numpy,
        tolerance: float,
    ) -> Kernel:
        """Build, run once and check the output; SystemExit where it is wrong."""
        schedule, args = program()
        module = fb.build(schedule, args, target="native")
        output = fb.nd.empty(expected.shape, expected.dtype.name)
        arrays = (*(fb.nd.array(x) for x in inputs), output)
        module(*arrays)
        error = np.abs(output.numpy().astype(np.float64) - expected.astype(np.float64)).max()
        if not error <= tolerance:
            raise SystemExit(f"{name} is wrong: largest error {error:.3g}, allowed {tolerance:.3g}")
        return cls(module, arrays, _calls(module, arrays))

    def seconds(self, samples: int) -> list[float]:
        """Take samples, in seconds a call."""
        timer = self.module.time_evaluator("main", number=self.calls, repeat=samples, exact=True)
        return list(timer(*self.arrays).results)


def _calls(module: fb.Module, arrays: Sequence[Any]) -> int:
    """Choose how many calls one sample takes."""
    timer = module.time_evaluator("main", number=1, repeat=3, exact=True)
    once_s = max(min(timer(*arrays).results), 1e-9)
    return max(1, min(MOST_CALLS, round(SAMPLE_S / once_s)))
