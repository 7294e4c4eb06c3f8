"""Activations against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers

X = numbers(3, 4, 5)


def test_of_elements() -> None:
    check(nn.relu, [X], np.maximum(X, 0))
    check(lambda a: nn.leaky_relu(a, 0.1), [X], np.where(X > 0, X, X * np.float32(0.1)))
    check(lambda a: nn.softplus(a, 2.0), [X], np.log1p(np.exp(2 * X)) / 2)
    large = X * 100
    check(nn.softplus, [large], np.log1p(np.exp(large.astype("f8"))))


def test_prelu() -> None:
    slope = numbers(4, seed=1)
    check(nn.prelu, [X, slope], np.where(X > 0, X, X * slope[:, None]))
    slope = numbers(5, seed=1)
    check(lambda a, b: nn.prelu(a, b, -1), [X, slope], np.where(X > 0, X, X * slope))
    check(nn.prelu, [X, slope[:1].copy()], np.where(X > 0, X, X * slope[0]))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.prelu: .*got 4 and 5"):
        nn.prelu(te.placeholder((3, 4, 5)), te.placeholder((5,)))
