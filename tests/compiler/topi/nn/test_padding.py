"""Padding against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import check, numbers


def test_pad() -> None:
    x = numbers(3, 4)
    check(
        lambda a: nn.pad(a, (1, 0), (2, 3), 7.5),
        [x],
        np.pad(x, ((1, 2), (0, 3)), constant_values=7.5),
    )
    check(lambda a: nn.pad(a, (2, 1)), [x], np.pad(x, ((2, 2), (1, 1))))
    check(lambda a: nn.pad(a, (0, 0)), [x], x)
    check(lambda a: nn.pad(a, (-1, 1), (0, -2)), [x], np.pad(x[1:, :-2], ((0, 0), (1, 0))))
    whole = numbers(2, 3, dtype="int8")
    check(lambda a: nn.pad(a, (1, 1), pad_value=-3), [whole], np.pad(whole, 1, constant_values=-3))


@pytest.mark.parametrize("mode", ["SYMMETRIC", "REFLECT"])
def test_mirror_pad(mode: str) -> None:
    x = numbers(4, 5, 2)
    wanted = np.pad(x, ((2, 3), (3, 1), (0, 0)), mode=mode.lower())  # type: ignore[call-overload]
    check(lambda a: nn.mirror_pad(a, (2, 3, 0), (3, 1, 0), mode), [x], wanted)


def test_dilate() -> None:
    x = numbers(3, 4)
    wanted = np.full((7, 4), 0.5, "float32")
    wanted[::3] = x
    check(lambda a: nn.dilate(a, (3, 1), 0.5), [x], wanted)


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("pad", ((1,),), "have 1 and 1 numbers for the 2 dimensions"),
        ("mirror_pad", ((1, 4), None, "REFLECT"), "axis 1 of size 4 cannot mirror 4"),
        ("mirror_pad", ((1, 5),), "axis 1 of size 4 cannot mirror 5"),
        ("mirror_pad", ((1, 1), None, "WRAP"), "mode 'WRAP'"),
        ("dilate", ((1, 0),), "strides"),
    ],
)
def test_what_cannot_be(name: str, arguments: tuple[Any, ...], what: str) -> None:
    with pytest.raises(ScheduleError, match=rf"topi\.nn\.{name}: .*{what}"):
        getattr(nn, name)(te.placeholder((3, 4)), *arguments)
