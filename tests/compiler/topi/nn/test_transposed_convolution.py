"""Transposed convolutions against numpy, element by element."""

from __future__ import annotations

import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers

from .reference import transposed


@pytest.mark.parametrize("groups", [1, 2])
def test_lines_and_images(groups: int) -> None:
    x, w = numbers(2, 4, 6, 5), numbers(4, 3, 3, 4, seed=1)
    edges, more = ((1, 0), (2, 1)), (1, 0)
    wanted = transposed(x, w, (3, 2), edges, more, groups)
    check(
        lambda a, b: nn.group_conv2d_transpose_nchw(
            a, b, (3, 2), (1, 2, 0, 1), "float32", more, groups
        ),
        [x, w],
        wanted,
    )
    line, taps = x[:, :, 0].copy(), w[:, :, 0].copy()
    wanted = transposed(line, taps, (2,), ((1, 1),), (1,), groups)
    check(
        lambda a, b: nn.group_conv1d_transpose_ncw(a, b, 2, 1, None, 1, groups),
        [line, taps],
        wanted,
    )


def test_the_plain_functions() -> None:
    x, w = numbers(1, 2, 4, 3, 3), numbers(2, 3, 2, 3, 2, seed=1)
    wanted = transposed(x, w, (2, 1, 2), ((0, 0),) * 3, (0, 0, 0))
    check(lambda a, b: nn.conv3d_transpose_ncdhw(a, b, (2, 1, 2), 0, None, 0), [x, w], wanted)
    x, w = x[:, :, 0].copy(), w[:, :, 0].copy()
    wanted = transposed(x, w, (1, 1), ((1, 1), (1, 0)), (0, 0))
    check(lambda a, b: nn.conv2d_transpose_nchw(a, b, 1, "SAME", None, 0), [x, w], wanted)
    x, w = x[:, :, 0].copy(), w[:, :, 0].copy()
    wanted = transposed(x, w, (3,), ((0, 0),), (2,))
    check(lambda a, b: nn.conv1d_transpose_ncw(a, b, 3, "VALID", "float32", 2), [x, w], wanted)


def test_what_cannot_be() -> None:
    x, w = te.placeholder((1, 4, 5)), te.placeholder((4, 3, 3))
    with pytest.raises(ScheduleError, match=r"conv1d_transpose_ncw: output_padding is \[2\]"):
        nn.conv1d_transpose_ncw(x, w, 2, 0, None, 2)
    with pytest.raises(ScheduleError, match="3 does not divide the 4 channels"):
        nn.group_conv1d_transpose_ncw(x, w, 2, 0, None, 0, 3)
