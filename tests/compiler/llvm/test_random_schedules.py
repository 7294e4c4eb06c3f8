"""Random legal schedules, compiled: what they compute is what numpy computes.

The units differ in how the passes treat vectors: masked ends, ends one by one, no vectors at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

from farbench_compiler import passes
from farbench_compiler.ir.expr import Cast, IntImm
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.llvm import emit
from farbench_compiler.target import Target
from tests.compiler.lower.programs import Program
from tests.compiler.lower.test_random_schedules import cases

from .jit import Runtime, aligned, call


@dataclass(frozen=True)
class _Unit:
    """Vectors as the passes are told of them."""

    vector_bits: int
    features: tuple[str, ...]


UNITS = {
    "masks": _Unit(512, ("avx512f",)),
    "ends one by one": _Unit(128, ()),
    "no vectors": _Unit(64, ()),
}


def sizes_of(fn: LoopFunction, arrays: Sequence[NDArray[np.int32]]) -> list[int]:
    """Find the size symbols from the shapes of the arrays, in the order of the slots."""
    found = {}
    for buffer, array in zip(fn.buffers, arrays, strict=True):
        for extent, size in zip(buffer.shape, array.shape, strict=True):
            plain = extent.value if isinstance(extent, Cast) else extent
            if not isinstance(plain, IntImm):
                found[plain] = size
    return [found[symbol] for symbol in fn.symbols]


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_a_compiled_schedule_gives_what_numpy_gives(
    case: tuple[Program, LoopFunction, int], unit: _Unit
) -> None:
    program, fn, seed = case
    rng = np.random.default_rng(seed)
    inputs = [aligned(rng.integers(-9, 9, s, dtype=np.int32)) for s in program.shapes]
    expected = program.reference(*inputs)
    arrays = [*inputs, aligned(np.full(expected.shape, -77, np.int32))]
    emitted = emit([passes.run(fn, unit)], Target.parse("native"))
    runtime = Runtime()
    assert call(emitted, fn.name, arrays, sizes_of(fn, arrays), runtime) == 0
    assert not runtime.held
    np.testing.assert_array_equal(arrays[-1], expected)
