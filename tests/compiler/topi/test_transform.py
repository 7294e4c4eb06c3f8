"""Functions that move elements against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError
from farbench_compiler.lower import lower
from farbench_compiler.te import Tensor
from tests.compiler.llvm.jit import aligned, run


def _check(a: Tensor, b: Tensor, x: NDArray[np.int32], wanted: NDArray[np.int32]) -> None:
    got = aligned(np.zeros_like(wanted))
    assert run(lower(te.create_schedule(b.op), [a, b]), [aligned(x), got], [len(x)]) == 0
    np.testing.assert_array_equal(got, wanted)


X = np.arange(24, dtype="int32").reshape(2, 3, 4)


@pytest.mark.parametrize("axes", [None, (1, 0, 2), (2, 0, 1), (-1, 0, 1)])
def test_transpose(axes: tuple[int, ...] | None) -> None:
    a = te.placeholder((te.var("n"), 3, 4), "int32", name="A")
    _check(a, topi.transpose(a, axes), X, np.ascontiguousarray(np.transpose(X, axes)))


@pytest.mark.parametrize("axis", [0, 1, 3, -1, -4])
def test_expand_dims(axis: int) -> None:
    a = te.placeholder((te.var("n"), 3, 4), "int32", name="A")
    _check(a, topi.expand_dims(a, axis), X, np.expand_dims(X, axis))


def test_axes_that_cannot_be() -> None:
    a = te.placeholder((2, 3), name="A")
    with pytest.raises(ScheduleError, match="axes"):
        topi.transpose(a, (0, 0))
    with pytest.raises(ScheduleError, match="axis"):
        topi.expand_dims(a, 3)
