"""Masks, triangles and diagonals, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError

from .evaluate import check, numbers

X = numbers(4, 3, 5)
LENGTHS = np.array([0, 3, 9], "int32")


def test_sequence_mask() -> None:
    inside = np.arange(4)[:, None] < LENGTHS
    check(lambda x, n: topi.sequence_mask(x, n, -2), [X, LENGTHS],
          np.where(inside[..., None], X, np.float32(-2)))  # fmt: skip
    check(lambda x, n: topi.sequence_mask(x, n, 0, 1), [X.transpose(1, 0, 2), LENGTHS],
          np.where(inside.T[..., None], X.transpose(1, 0, 2), np.float32(0)))  # fmt: skip


def test_reverse_sequence() -> None:
    wanted = X.copy()
    for b, n in enumerate(LENGTHS):
        wanted[:n, b] = X[:n, b][::-1]
    check(lambda x, n: topi.reverse_sequence(x, n, 0, 1), [X, LENGTHS], wanted)


@pytest.mark.parametrize("k", [-2, 0, 1])
def test_trilu(k: int) -> None:
    check(lambda x: topi.trilu(x, k, True), [X], np.triu(X, k))
    check(lambda x: topi.trilu(x, k, False), [X], np.tril(X, k))


@pytest.mark.parametrize("k", [-1, 0, 3])
def test_one_diagonal(k: int) -> None:
    wanted = X.copy()
    length = len(np.diagonal(X[0], k))
    news = numbers(4, length, seed=5)
    for b in range(4):
        for n in range(length):
            wanted[b, n - min(k, 0), n + max(k, 0)] = news[b, n]
    check(lambda x, d: topi.matrix_set_diag(x, d, k), [X, news], wanted)


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
def test_a_band(align: str) -> None:
    low, high = -2, 4
    news, wanted = numbers(4, high - low + 1, 3, seed=6), X.copy()
    up, down = align.split("_")
    for k in range(low, high + 1):
        length = len(np.diagonal(X[0], k))
        shift = 3 - length if (up if k >= 0 else down) == "RIGHT" else 0
        for n in range(length):
            wanted[:, n - min(k, 0), n + max(k, 0)] = news[:, high - k, shift + n]
    check(lambda x, d: topi.matrix_set_diag(x, d, (low, high), align), [X, news], wanted)


def test_wrong_use_names_the_operator() -> None:
    a, i = te.placeholder((3, 4), name="A"), te.placeholder((3,), "int32", name="I")
    with pytest.raises(ScheduleError, match=r"topi\.sequence_mask: axis 2 of the 2 dimensions"):
        topi.sequence_mask(a, i, 0, 2)
    with pytest.raises(ScheduleError, match=r"topi\.reverse_sequence: sequences of A and of I"):
        topi.reverse_sequence(a, i, 0, 1)
    with pytest.raises(ScheduleError, match=r"topi\.trilu: I has 1 dimensions"):
        topi.trilu(i, 0, True)
    with pytest.raises(ScheduleError, match=r"topi\.matrix_set_diag: the length of I and of"):
        topi.matrix_set_diag(a, i, 2)
