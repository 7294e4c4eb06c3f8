"""Elements moved between space, channels and batch, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers

from .reference import moved


@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 3, 4), (2, 3, 4, 5)])
def test_flatten(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    check(nn.flatten, [x], x.reshape(shape[0], -1))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_space_and_depth(layout: str) -> None:
    x = numbers(2, 3, 4, 6)
    parts = x.reshape(2, 3, 2, 2, 3, 2)
    deep = parts.transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    given, wanted = moved(x, "NCHW", layout), moved(deep, "NCHW", layout)
    check(lambda a: nn.space_to_depth(a, 2, layout), [given], wanted)
    check(lambda a: nn.depth_to_space(a, 2, layout), [wanted], given)
    inner = parts.transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    check(lambda a: nn.depth_to_space(a, 2, layout, "CDR"), [moved(inner, "NCHW", layout)], given)


def test_space_and_batch() -> None:
    x = numbers(2, 3, 5, 2)
    near = np.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=0.5)
    wanted = near.reshape(2, 2, 2, 2, 3, 2).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 2)
    check(lambda a: nn.space_to_batch_nd(a, (2, 3), (1, 0), (0, 1), 0.5), [x], wanted)
    check(lambda a: nn.batch_to_space_nd(a, (2, 3), (1, 0), (0, 1)), [wanted], x)


def test_what_cannot_be() -> None:
    x = te.placeholder((2, 3, 4, 6))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.space_to_depth: 3 does not divide the 4"):
        nn.space_to_depth(x, 3)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.depth_to_space: 4 does not divide the 3"):
        nn.depth_to_space(x, 2)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.depth_to_space: mode 'RCD'"):
        nn.depth_to_space(x, 1, mode="RCD")
    with pytest.raises(
        ScheduleError, match=r"topi\.nn\.space_to_batch_nd: 2 does not divide the 3"
    ):
        nn.space_to_batch_nd(x, (2,), (0,), (0,))
    with pytest.raises(
        ScheduleError, match=r"topi\.nn\.batch_to_space_nd: 1 blocks, 2 and 1 edges"
    ):
        nn.batch_to_space_nd(x, (2,), (0, 1), (0,))
    with pytest.raises(ScheduleError, match=r"crops leave \[-1\]"):
        nn.batch_to_space_nd(x, (2,), (3,), (4,))
