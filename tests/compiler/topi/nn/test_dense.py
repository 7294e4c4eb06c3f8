"""Products of matrices against numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import Array, check, numbers


def turned(x: Array, transpose: bool) -> Array:
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if transpose else x


BOTH = list(itertools.product((False, True), repeat=2))


@pytest.mark.parametrize(("ta", "tb"), BOTH)
def test_matmul(ta: bool, tb: bool) -> None:
    a, b, bias = numbers(5, 7), numbers(7, 6, seed=1), numbers(6)
    given = [turned(a, ta), turned(b, tb)]
    check(lambda x, y: nn.matmul(x, y, None, None, ta, tb), given, a @ b)
    check(lambda x, y, z: nn.matmul(x, y, z, None, ta, tb), [*given, bias], a @ b + bias)


def test_dense() -> None:
    a, b, bias = numbers(5, 7), numbers(6, 7, seed=1), numbers(6)
    check(nn.dense, [a, b, bias], a @ b.T + bias)
    left, right = numbers(4, 50, dtype="int8") * 25, numbers(3, 50, dtype="int8") * 25
    wanted = left.astype("int32") @ right.astype("int32").T
    check(lambda x, y: nn.dense(x, y, out_dtype="int32"), [left, right], wanted)


@pytest.mark.parametrize("batches", [(3, 3), (1, 3), (3, 1)])
@pytest.mark.parametrize(("ta", "tb"), BOTH)
def test_batch_matmul(ta: bool, tb: bool, batches: tuple[int, int]) -> None:
    a, b = numbers(batches[0], 4, 5), numbers(batches[1], 5, 6, seed=1)
    check(
        lambda x, y: nn.batch_matmul(x, y, None, None, ta, tb),
        [turned(a, ta), turned(b, tb)],
        a @ b,
    )


def test_what_cannot_be() -> None:
    a, b = te.placeholder((4, 5)), te.placeholder((4, 6))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.matmul: .*got 5 and 4"):
        nn.matmul(a, b)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.dense: .*got 5 and 6"):
        nn.dense(a, b)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.dense: columns and bias .*got 4 and 6"):
        nn.dense(a, a, te.placeholder((6,)))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.batch_matmul: .* 2 dimensions, expected 3"):
        nn.batch_matmul(a, b)
    three, two = te.placeholder((3, 4, 5)), te.placeholder((2, 4, 5))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.batch_matmul: .*do not broadcast"):
        nn.batch_matmul(three, two)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.batch_matmul: oshape .*got 4 and 9"):
        nn.batch_matmul(three, three, (3, 4, 9))
    with pytest.raises(ScheduleError, match=r"topi\.nn\.batch_matmul: oshape has 2 sizes"):
        nn.batch_matmul(three, three, (3, 4))
