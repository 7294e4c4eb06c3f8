"""Depthwise convolutions against numpy's in groups of one channel."""

from __future__ import annotations

import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers

from .reference import convolve, moved


@pytest.mark.parametrize("multiplier", [1, 2])
def test_as_numpy_does(multiplier: int) -> None:
    x, w = numbers(2, 3, 7, 6), numbers(3, multiplier, 3, 2, seed=1)
    wanted = convolve(x, w.reshape(-1, 1, 3, 2), (2, 1), ((1, 1), (0, 0)), (1, 2), groups=3)
    check(lambda a, b: nn.depthwise_conv2d_nchw(a, b, (2, 1), (1, 0), (1, 2)), [x, w], wanted)
    data, out = moved(x, "NCHW", "NHWC"), moved(wanted, "NCHW", "NHWC")
    check(
        lambda a, b: nn.depthwise_conv2d_nhwc(a, b, (2, 1), (1, 0), (1, 2)),
        [data, moved(w, "CMHW", "HWCM")],
        out,
    )
    check(
        lambda a, b: nn.depthwise_conv2d_nhwc(a, b, (2, 1), (1, 0), (1, 2), "HWIO"),
        [data, moved(w, "CMHW", "HWMC")],
        out,
    )


def test_only_taps_are_summed() -> None:
    out = nn.depthwise_conv2d_nchw(te.placeholder((1, 3, 8, 8)), te.placeholder((3, 1, 3, 3)), 1, 1)
    assert [axis.name for axis in out.op.reduce_axis] == ["ry", "rx"]


def test_channels_must_agree() -> None:
    with pytest.raises(ScheduleError, match=r"topi\.nn\.depthwise_conv2d_nchw: .*got 3 and 4"):
        nn.depthwise_conv2d_nchw(te.placeholder((1, 3, 8, 8)), te.placeholder((4, 1, 3, 3)), 1, 1)
    with pytest.raises(ScheduleError, match="kernel_layout 'OIHW'; give HWOI or HWIO"):
        nn.depthwise_conv2d_nhwc(
            te.placeholder((1, 8, 8, 3)), te.placeholder((3, 3, 3, 1)), 1, 1, 1, "OIHW"
        )
