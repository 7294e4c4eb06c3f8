"""Sampling by grids against numpy, one place after the other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import image
from tests.compiler.topi.evaluate import Array, check, numbers


def mirrored(x: float, size: int, align: bool) -> float:
    """Walk back and forth between the mirrors until the place is inside."""
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return min(max(x, 0.0), size - 1.0)


def inside(x: float, size: int, padding: str, align: bool) -> float:
    if padding == "border":
        return min(max(x, 0.0), size - 1.0)
    return mirrored(x, size, align) if padding == "reflection" else x


def cubic(d: float, alpha: float = -0.75) -> float:
    d = abs(d)
    if d <= 1:
        return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    return alpha * (d**3 - 5 * d**2 + 8 * d - 4)


def taps(method: str, x: float, size: int, padding: str, align: bool) -> list[tuple[int, float]]:
    if method == "bicubic":
        first = math.floor(x)
        return [
            (int(inside(i, size, padding, align)), cubic(x - i))
            for i in range(first - 1, first + 3)
        ]
    x = inside(x, size, padding, align)
    if method == "nearest":
        return [(int(np.round(x)), 1.0)]
    first = math.floor(x)
    return [(first, 1 - (x - first)), (first + 1, x - first)]


def sampled(data: Array, grid: Array, method: str, padding: str, align: bool) -> Array:
    sizes, count = data.shape[2:], data.ndim - 2
    out = np.zeros((*data.shape[:2], *grid.shape[2:]))
    for n, *at in np.ndindex(grid.shape[0], *grid.shape[2:]):
        axes = []
        for d, size in enumerate(sizes):
            x = (float(grid[(n, count - 1 - d, *at)]) + 1) / 2
            where = x * (size - 1) if align else x * size - 0.5
            axes.append(taps(method, where, size, padding, align))
        for found in itertools.product(*axes):
            places = tuple(i for i, _ in found)
            if all(0 <= i < size for i, size in zip(places, sizes, strict=True)):
                weight = math.prod(w for _, w in found)
                out[(n, slice(None), *at)] += data[(n, slice(None), *places)] * weight
    return out


@pytest.mark.parametrize(
    ("padding", "align"),
    [("zeros", True), ("border", False), ("reflection", True), ("reflection", False)],
)
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
def test_images(method: str, padding: str, align: bool) -> None:
    data, grid = numbers(2, 3, 5, 6), numbers(2, 2, 4, 7, seed=1) * np.float32(1.7)
    check(
        lambda a, g: image.grid_sample(a, g, method, "NCHW", padding, align),
        [data, grid],
        sampled(data, grid, method, padding, align),
        1e-4,
        1e-4,
    )


@pytest.mark.parametrize("method", ["nearest", "trilinear"])
def test_volumes(method: str) -> None:
    data, grid = numbers(1, 2, 3, 4, 5), numbers(1, 3, 2, 3, 4, seed=1) * np.float32(1.3)
    check(
        lambda a, g: image.grid_sample(a, g, method, "NCDHW", "border", False),
        [data, grid],
        sampled(data, grid, method, "border", False),
        1e-4,
        1e-4,
    )


@pytest.mark.parametrize("align", [True, False])
def test_affine_grid(align: bool) -> None:
    matrices, (height, width) = numbers(2, 2, 3), (3, 4)
    y, x = (
        np.linspace(-1, 1, n) if align else (np.arange(n) * 2 + 1) / n - 1 for n in (height, width)
    )
    plain = np.stack([*np.meshgrid(x, y), np.ones((height, width))])
    wanted = np.einsum("ndk,khw->ndhw", matrices, plain)
    check(lambda a: image.affine_grid(a, (height, width), align), [matrices], wanted)


def test_what_cannot_be() -> None:
    data, grid = te.placeholder((1, 3, 8, 8)), te.placeholder((1, 2, 4, 4))
    with pytest.raises(ScheduleError, match=r"topi\.image\.grid_sample: method 'lanczos'"):
        image.grid_sample(data, grid, "lanczos")
    with pytest.raises(ScheduleError, match="padding_mode 'mirror'"):
        image.grid_sample(data, grid, padding_mode="mirror")
    with pytest.raises(ScheduleError, match="must agree, got 2 and 3"):
        image.grid_sample(data, te.placeholder((1, 3, 4, 4)))
    with pytest.raises(ScheduleError, match=r"topi\.image\.affine_grid: target_shape"):
        image.affine_grid(te.placeholder((1, 2, 3)), (1, 4))
