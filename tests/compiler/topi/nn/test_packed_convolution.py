"""Convolution of channels in blocks, against numpy on plain layouts."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import Array, check, numbers

from .reference import convolve


def packed(x: Array, block: int) -> Array:
    """Turn [N, C, H, W] into [N, C / block, H, W, block]."""
    n, c, h, w = x.shape
    return np.ascontiguousarray(x.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2))


@pytest.mark.parametrize("groups", [1, 2])
def test_as_numpy_does(groups: int) -> None:
    x, w = numbers(2, 8, 6, 5), numbers(6 * groups, 8 // groups, 3, 2, seed=1)
    o, i, kh, kw = w.shape
    kernel = w.reshape(o // 3, 3, i // 2, 2, kh, kw).transpose(0, 2, 4, 5, 3, 1)
    wanted = convolve(x, w, (2, 1), ((1, 1), (0, 1)), (1, 2), groups)
    check(
        lambda a, b: nn.conv2d_NCHWc(a, b, (2, 1), (1, 0, 1, 1), (1, 2), "NCHW2c", "NCHW3c"),
        [packed(x, 2), np.ascontiguousarray(kernel)],
        packed(wanted, 3),
    )


def test_what_cannot_be() -> None:
    x = te.placeholder((1, 3, 8, 8, 4))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.conv2d_NCHWc: .*got 4 and 2"):
        nn.conv2d_NCHWc(x, te.placeholder((2, 3, 3, 3, 2, 4)), 1, 0)
    with pytest.raises(ScheduleError, match="only NCHW with a block"):
        nn.conv2d_NCHWc(x, te.placeholder((2, 3, 3, 3, 4, 4)), 1, 0, 1, "NHWCc")
    with pytest.raises(ScheduleError, match="2 does not divide the 3 channel blocks"):
        nn.conv2d_NCHWc(x, te.placeholder((2, 2, 3, 3, 4, 4)), 1, 0)
