"""Softmax along any axis, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import Array, check, numbers


def reference(x: Array, axis: int) -> Array:
    power = np.exp(x.astype("f8") - x.max(axis, keepdims=True))
    return np.asarray(power / power.sum(axis, keepdims=True))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_as_numpy_does(dtype: str, axis: int) -> None:
    x = numbers(4, 5, 6, dtype=dtype) * 8
    wanted, rtol = reference(x, axis), 2e-3 if dtype == "float16" else 2e-5
    check(lambda a: nn.softmax(a, axis), [x], wanted, rtol, 1e-4)
    check(lambda a: nn.log_softmax(a, axis), [x], np.log(wanted), rtol, 1e-4)


def test_fast_softmax_and_large_numbers() -> None:
    x = numbers(3, 7) * 1000
    check(nn.fast_softmax, [x], reference(x, 1))


def test_what_cannot_be() -> None:
    with pytest.raises(ScheduleError, match=r"topi\.nn\.softmax: axis 2 is outside"):
        nn.softmax(te.placeholder((3, 4)), 2)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.log_softmax: .* is int32, not a float"):
        nn.log_softmax(te.placeholder((3, 4), "int32"))
