"""Upsampling against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers


def test_whole_factors_repeat_elements() -> None:
    x = numbers(2, 3, 4, 5)
    wanted = x.repeat(2, 2).repeat(3, 3)
    check(lambda a: nn.upsampling(a, 2, 3), [x], wanted)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    check(lambda a: nn.upsampling(a, 2, 3, "NHWC"), [last], np.moveaxis(wanted, 1, -1))
    volume = numbers(1, 2, 3, 2, 4)
    check(
        lambda a: nn.upsampling3d(a, 2, 1, 2, coordinate_transformation_mode="asymmetric"),
        [volume],
        volume.repeat(2, 2).repeat(2, 4),
    )


def test_corners_stay() -> None:
    x = numbers(1, 2, 3, 4)
    rows = np.array([np.interp(np.linspace(0, 3, 6), np.arange(4), r) for r in x.reshape(-1, 4)])
    columns = rows.reshape(2, 3, 6).transpose(0, 2, 1).reshape(-1, 3)
    whole = np.array([np.interp(np.linspace(0, 2, 6), np.arange(3), c) for c in columns])
    wanted = whole.reshape(1, 2, 6, 6).transpose(0, 1, 3, 2)
    check(lambda a: nn.upsampling(a, 2, 1.5, "NCHW", "bilinear", True), [x], wanted)


def test_what_cannot_be() -> None:
    with pytest.raises(ScheduleError, match=r"topi\.nn\.upsampling: scale 1.5 of axis H"):
        nn.upsampling(te.placeholder((1, 3, te.var("h"), 4)), 1.5, 2)
