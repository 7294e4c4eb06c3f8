"""Pooling against numpy: windows, padding, a last window that reaches beyond, whole images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import Array, check, numbers

from .reference import moved, taps

POOLS = {1: nn.pool1d, 2: nn.pool2d, 3: nn.pool3d}


def pooled(
    x: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    edges: Sequence[tuple[int, int]],
    kind: str,
    ceil: bool,
    counted: bool,
) -> Array:
    """Pool [N, C, *sizes]; what a mean divides by is found by pooling ones."""
    over = tuple(range(len(kernel)))
    more = [(0, s - 1 if ceil else 0) for s in stride]
    near = np.pad(
        x.astype("f8"),
        [(0, 0), (0, 0), *((b + p, a + q) for (b, a), (p, q) in zip(edges, more, strict=True))],
        constant_values=-np.inf if kind == "max" else 0,
    )
    seen = taps(near, kernel, stride, dilation)
    if kind == "max":
        return np.asarray(seen.max(over))
    ones = np.pad(np.ones_like(x), [(0, 0), (0, 0), *edges], constant_values=float(counted))
    ones = np.pad(ones, [(0, 0), (0, 0), *more])
    counts = np.maximum(taps(ones, kernel, stride, dilation).sum(over), 1)
    return np.asarray(seen.sum(over) / counts)


CASES: dict[str, tuple[Any, ...]] = {
    "plain": ((2, 2, 2), (2, 2, 2), (1, 1, 1), ((0, 0),) * 3, False),
    "padded": ((3, 2, 3), (2, 1, 2), (1, 1, 1), ((1, 1), (0, 1), (1, 0)), False),
    "ceil": ((3, 3, 2), (2, 3, 2), (1, 1, 1), ((1, 0), (1, 1), (0, 0)), True),
    "dilated": ((2, 3, 2), (1, 2, 1), (2, 1, 3), ((1, 1), (1, 1), (1, 1)), False),
    "dilated ceil": ((2, 3, 2), (3, 2, 2), (2, 1, 2), ((1, 1), (1, 1), (1, 0)), True),
}


@pytest.mark.parametrize("kind", ["max", "avg", "avg without padding"])
@pytest.mark.parametrize(
    ("count", "case"), [*((2, case) for case in CASES), (1, "dilated ceil"), (3, "padded")]
)
def test_windows(count: int, case: str, kind: str) -> None:
    *given, edges, ceil = CASES[case]
    kernel, stride, dilation = (part[:count] for part in given)
    edges, counted = edges[:count], kind == "avg"
    x = numbers(2, 3, *(8, 7, 6)[:count])
    wanted = pooled(x, kernel, stride, dilation, edges, kind[:3], ceil, counted)
    padding = (*(b for b, _ in edges), *(a for _, a in edges))
    check(
        lambda a: POOLS[count](
            a, kernel, stride, dilation, padding, kind[:3], ceil, count_include_pad=counted
        ),
        [x],
        wanted,
    )


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_layouts(kind: str) -> None:
    x = numbers(2, 4, 6, 5)
    wanted = pooled(x, (3, 2), (2, 1), (1, 1), ((1, 1), (0, 0)), kind, False, True)
    check(
        lambda a: nn.pool2d(a, (3, 2), (2, 1), 1, (1, 0, 1, 0), kind, layout="NHWC"),
        [moved(x, "NCHW", "NHWC")],
        moved(wanted, "NCHW", "NHWC"),
    )
    blocks = [np.moveaxis(a.reshape(2, 2, 2, *a.shape[2:]), 2, -1) for a in (x, wanted)]
    check(
        lambda a: nn.pool2d(a, (3, 2), (2, 1), 1, (1, 0, 1, 0), kind, layout="NCHW2c"),
        [np.ascontiguousarray(blocks[0])],
        blocks[1],
    )


def test_integers_round_towards_zero() -> None:
    x = numbers(1, 2, 6, dtype="int32")
    sums = x.reshape(1, 2, 3, 2).sum(-1)
    check(lambda a: nn.pool1d(a, 2, 2, 1, 0, "avg"), [x], (sums / 2).astype("int32"))
    check(lambda a: nn.pool1d(a, 2, 2, 1, 0, "max"), [x], x.reshape(1, 2, 3, 2).max(-1))


def test_the_older_name() -> None:
    x = numbers(1, 2, 6, 4)
    wanted = x.reshape(1, 2, 3, 2, 2, 2).max((3, 5))
    check(lambda a: nn.pool(a, (2, 2), (2, 2), (0, 0, 0, 0), "max"), [x], wanted)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_whole_images(kind: str) -> None:
    x = numbers(2, 3, 5, 4)
    reduce = np.max if kind == "max" else np.mean
    check(lambda a: nn.global_pool(a, kind), [x], reduce(x, (2, 3), keepdims=True))
    check(lambda a: nn.global_pool(a, kind, "NHWC"), [x], reduce(x, (1, 2), keepdims=True))


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("outs", [(3, 2), (4, 5), (7, 3), (1, 1), (6, 4)])
def test_adaptive(outs: tuple[int, int], kind: str) -> None:
    x = numbers(2, 3, 6, 8)
    reduce = np.max if kind == "max" else np.mean
    wanted = np.empty((2, 3, *outs))
    for i, j in np.ndindex(*outs):
        rows = slice(i * 6 // outs[0], -(-(i + 1) * 6 // outs[0]))
        columns = slice(j * 8 // outs[1], -(-(j + 1) * 8 // outs[1]))
        wanted[:, :, i, j] = reduce(x[:, :, rows, columns], (2, 3))
    check(lambda a: nn.adaptive_pool(a, outs, kind), [x], wanted)


def test_adaptive_along_one_and_three_axes() -> None:
    x = numbers(1, 2, 6)
    check(lambda a: nn.adaptive_pool1d(a, (3,), "avg"), [x], x.reshape(1, 2, 3, 2).mean(-1))
    x = numbers(1, 2, 4, 2, 6)
    wanted = x.reshape(1, 2, 2, 2, 1, 2, 3, 2).max((3, 5, 7))
    check(lambda a: nn.adaptive_pool3d(a, (2, 1, 3), "max"), [x], wanted)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((9, 1, 1, 0, "max"), "does not fit size 8"),
        ((2, 1, 1, 0, "mean"), "pool_type 'mean'"),
        ((2, (1, 2, 3), 1, 0, "max"), "stride"),
        ((2, 1, 1, -1, "max"), "padding"),
    ],
)
def test_what_cannot_be(arguments: tuple[Any, ...], what: str) -> None:
    with pytest.raises(ScheduleError, match=rf"topi\.nn\.pool2d: .*{what}"):
        nn.pool2d(te.placeholder((1, 3, 8, 8)), *arguments)


def test_windowed_axes_stay_in_one_piece() -> None:
    with pytest.raises(ScheduleError, match="needs axis W, in one piece"):
        nn.pool2d(te.placeholder((1, 3, 8, 8, 4)), 2, 2, 1, 0, "max", layout="NCHW4w")
