"""Products of tensors, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError

from .evaluate import check, numbers

A, B, SQUARE = numbers(3, 4, 5), numbers(5, 4, 2, seed=1), numbers(4, 4)


def test_matmul() -> None:
    a, b = A[0], B[:, :, 0]
    check(topi.matmul, [a, b], a @ b)
    check(lambda x, y: topi.matmul(x, y, True, True), [a.T.copy(), b.T.copy()], a @ b)


@pytest.mark.parametrize("axes", [0, 1, ((1, 2), (1, 0)), (-1, 0)])
def test_tensordot(axes: Any) -> None:
    check(lambda x, y: topi.tensordot(x, y, axes), [A, B], np.tensordot(A, B, axes))


@pytest.mark.parametrize(
    "text", ["ijk,kjl->il", "ijk,kjl", "ijk,klm->milj", "ijk,kjl->", "ijk, kjl -> lkij"]
)
def test_einsum_of_two(text: str) -> None:
    check(lambda x, y: topi.einsum(text, x, y), [A, B], np.einsum(text, A, B))


@pytest.mark.parametrize("text", ["ii->i", "ii", "ij->ji", "ij->j"])
def test_einsum_of_one(text: str) -> None:
    check(lambda x: topi.einsum(text, x), [SQUARE], np.einsum(text, SQUARE))


def test_wrong_use_names_the_operator() -> None:
    a, b = te.placeholder((3, 4), name="A"), te.placeholder((3, 5), name="B")
    with pytest.raises(ScheduleError, match=r"topi\.tensordot: sizes that meet in dimension 0"):
        topi.tensordot(a, b, 1)
    with pytest.raises(ScheduleError, match=r"topi\.tensordot: axes .* do not pair dimensions"):
        topi.tensordot(a, b, ((0, 1), (0,)))
    with pytest.raises(ScheduleError, match=r"topi\.einsum: 'ij->ik' is about 1 tensors, not 2"):
        topi.einsum("ij->ik", a, b)
    with pytest.raises(ScheduleError, match=r"topi\.einsum: 'z' must name dimensions"):
        topi.einsum("ij,ik->z", a, b)
    with pytest.raises(ScheduleError, match=r"topi\.einsum: 'i\.\.\.' is none"):
        topi.einsum("i...", a)
