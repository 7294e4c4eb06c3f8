"""Layouts changed, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError

from .evaluate import check, numbers

X = numbers(2, 8, 3, 5)
PACKED = X.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)


def test_there_and_back() -> None:
    check(lambda x: topi.layout_transform(x, "NCHW", "NHWC"), [X], X.transpose(0, 2, 3, 1))
    check(lambda x: topi.layout_transform(x, "NCHW", "NCHW4c"), [X], PACKED)
    check(lambda x: topi.layout_transform(x, "NCHW4c", "NCHW"), [PACKED.copy()], X)


def test_from_blocks_to_others() -> None:
    wanted = X.reshape(2, 4, 2, 3, 5).transpose(0, 3, 2, 1, 4)
    check(lambda x: topi.layout_transform(x, "NCHW4c", "NH2cCW"), [PACKED.copy()],
          np.ascontiguousarray(wanted))  # fmt: skip


@pytest.mark.parametrize(
    ("layouts", "why"),
    [
        (("NCHW", "NCH"), "'NCHW' and 'NCH' differ"),
        (("NCHW", "NCHW3c"), "3 does not divide the 8 elements of axis C"),
        (("NCHW", "NCHWc"), "a block has a size"),
        (("NCH", "NHC"), "A has 4 dimensions"),
    ],
)
def test_wrong_use_names_the_operator(layouts: tuple[str, str], why: str) -> None:
    a = te.placeholder((2, 8, 3, 5), name="A")
    with pytest.raises(ScheduleError, match=rf"topi\.layout_transform: .*{why}"):
        topi.layout_transform(a, *layouts)
