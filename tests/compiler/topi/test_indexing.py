"""Places that are data in several dimensions, and what is made of sizes, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError

from .evaluate import Array, check, numbers

X, ROW = numbers(3, 4, 5), numbers(6, seed=4)
PLACES = np.array([[0, 2, 1, 1], [3, 0, 2, 1]], np.int32)
BATCHES = np.array([[0, 4], [3, 1], [2, 2]], np.int64)
BYTES = np.arange(1, 200, 9, dtype=np.uint8)
COUNTS = np.array([1, 2, 3, 4, 5, 1023, 1024, 1025], np.int32)
Case = tuple[Callable[..., te.Tensor], list[Array], Any]

CASES: dict[str, Case] = {
    "gather_nd": (topi.gather_nd, [X, PLACES], X[PLACES[0], PLACES[1]]),
    "gather_nd of all": (
        topi.gather_nd, [X, np.stack([PLACES, PLACES, PLACES]) % 3],
        X[PLACES % 3, PLACES % 3, PLACES % 3],
    ),
    "adv_index": (
        lambda x, i, j: topi.adv_index(x, [i, j]), [X, BATCHES[:1, :1] % 3, PLACES],
        X[BATCHES[:1, :1] % 3, PLACES],
    ),
    "take in batches": (
        lambda x, i: topi.take(x, i, 2, 1), [X, BATCHES],
        np.stack([np.take(x, i, 1) for x, i in zip(X, BATCHES, strict=True)]),
    ),
    "unravel_index": (
        lambda i: topi.unravel_index(i, (5, 4, 2)), [PLACES * 11],
        np.stack(np.unravel_index(PLACES * 11, (5, 4, 2))),
    ),
    "unravel_index of data": (
        topi.unravel_index, [PLACES * 11, np.array([5, 4, 2], np.int32)],
        np.stack(np.unravel_index(PLACES * 11, (5, 4, 2))),
    ),
    "collapse_sum": (lambda x: topi.collapse_sum(x, (4, 1)), [X], X.sum((0, 2))[:, None]),
    "collapse_sum of one": (lambda x: topi.collapse_sum(x, (1,)), [X], [X.sum()]),
    "ceil_log2": (topi.ceil_log2, [COUNTS], np.ceil(np.log2(COUNTS)).astype("i4")),
    "ceil_log2 of bytes": (topi.ceil_log2, [BYTES], np.ceil(np.log2(BYTES.astype("f8")))),
    "ceil_log2 of floats": (
        topi.ceil_log2, [COUNTS.astype("f4")], np.ceil(np.log2(COUNTS)).astype("f4")
    ),
    "bitwise_not of bytes": (topi.bitwise_not, [BYTES], ~BYTES),
    "meshgrid": (
        lambda a, b: topi.meshgrid([a, b], "xy")[1], [ROW, X[0, 0]], np.meshgrid(ROW, X[0, 0])[1]
    ),
    "meshgrid of ij": (
        lambda a, b: topi.meshgrid([a, b])[0], [ROW, X[0, 0]],
        np.meshgrid(ROW, X[0, 0], indexing="ij")[0],
    ),
    "ndarray_size": (topi.ndarray_size, [X], np.int32(60)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_numpy_does(case: Case) -> None:
    function, arrays, wanted = case
    check(function, arrays, wanted)


def test_tags_tell_what_is_computed() -> None:
    a = te.placeholder((3, 4), name="A")

    def tag_of(x: te.Tensor) -> str:
        assert isinstance(x.op, te.ComputeOp)
        return x.op.tag

    assert topi.tag.is_broadcast(tag_of(topi.exp(a)))
    assert topi.tag.is_broadcast(tag_of(topi.add(a, a)))
    assert topi.tag.is_injective(tag_of(topi.flip(a)))
    assert not topi.tag.is_broadcast(tag_of(topi.flip(a)))
    assert tag_of(topi.sum(a)) == topi.tag.COMM_REDUCE
    assert not topi.tag.is_injective(topi.tag.COMM_REDUCE)


A = te.placeholder((3, 4), name="A")
PLACE = te.placeholder((3, 2), "int32", name="I")
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "gather_nd": (lambda: topi.gather_nd(A, PLACE), "gather_nd: the first dimension of I is 3"),
    "adv_index": (lambda: topi.adv_index(A, [PLACE] * 3), "adv_index: 3 indices for 2 dimensions"),
    "batches": (lambda: topi.take(A, PLACE, 0, 1), "take: batch_dims is 1; give 0 to 0"),
    "unravel": (lambda: topi.unravel_index(A, (2, 2)), "unravel_index: A is float32; indices"),
    "collapse": (lambda: topi.collapse_sum(A, (2, 4)), "collapse_sum: sizes of dimension 0"),
    "meshgrid": (lambda: topi.meshgrid([A]), "meshgrid: A has 2 dimensions, expected 1"),
    "sum": (lambda: topi.sum(A, 2), "sum: axis 2 is outside of the 2 dimensions of A"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_names_the_operator(wrong: tuple[Callable[[], Any], str]) -> None:
    call, why = wrong
    with pytest.raises(ScheduleError, match=rf"topi\.{why}"):
        call()
