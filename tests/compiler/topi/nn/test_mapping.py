"""Scales, shifts and biases of channels against numpy."""

from __future__ import annotations

import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers


def test_scale_shift() -> None:
    x, scale, shift = numbers(2, 3, 4, 3), numbers(3, seed=1), numbers(3, seed=2)
    check(nn.scale_shift_nhwc, [x, scale, shift], x * scale + shift)
    check(nn.scale_shift_nchw, [x, scale, shift], x * scale[:, None, None] + shift[:, None, None])
    x, scale, shift = numbers(1, 2, 3, 4, 5), numbers(2, 5, seed=1), numbers(2, 5, seed=2)
    check(
        nn.scale_shift_nchwc,
        [x, scale, shift],
        x * scale[:, None, None] + shift[:, None, None],
    )


def test_bias_add() -> None:
    x, bias = numbers(2, 3, 4), numbers(3)
    check(nn.bias_add, [x, bias], x + bias[:, None])
    check(lambda a, b: nn.bias_add(a, b, -2), [x, bias], x + bias[:, None])


def test_what_cannot_be() -> None:
    x = te.placeholder((2, 3, 4, 5))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.scale_shift_nchw: .*got 3 and 5"):
        nn.scale_shift_nchw(x, te.placeholder((5,)), te.placeholder((5,)))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.bias_add: axis 4 is outside"):
        nn.bias_add(x, te.placeholder((5,)), 4)
