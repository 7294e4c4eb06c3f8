"""Convolutions and windows in numpy, tap by tap, over any number of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Edges = Sequence[tuple[int, int]]


def moved(x: Array, layout: str, to: str) -> Array:
    """Reorder dimensions from one layout to another."""
    return np.ascontiguousarray(np.transpose(x, [layout.index(a) for a in to]))


def taps(x: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Array:
    """Give [*kernel, N, C, *positions]: what each tap of the windows of [N, C, *sizes] meets."""
    sizes = x.shape[2:]
    outs = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    found = np.empty((*kernel, *x.shape[:2], *outs), x.dtype)
    for at in np.ndindex(*kernel):
        place = [
            slice(i * d, i * d + (o - 1) * s + 1, s)
            for i, d, o, s in zip(at, dilation, outs, stride, strict=True)
        ]
        found[at] = x[(slice(None), slice(None), *place)]
    return found


def convolve(
    x: Array,
    w: Array,
    stride: Sequence[int],
    edges: Edges,
    dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """Convolve [N, C, *sizes] by [O, C / groups, *kernel]."""
    kernel = w.shape[2:]
    near = np.pad(x.astype("f8"), [(0, 0), (0, 0), *edges])
    seen = taps(near, kernel, stride, dilation)
    flat = seen.reshape(math.prod(kernel), *seen.shape[len(kernel) :])
    weights = w.astype("f8").reshape(*w.shape[:2], -1)
    depth, each = w.shape[1], w.shape[0] // groups
    parts = [
        np.einsum(
            "tnc...,oct->no...",
            flat[:, :, g * depth : (g + 1) * depth],
            weights[g * each : (g + 1) * each],
        )
        for g in range(groups)
    ]
    return np.concatenate(parts, axis=1)


def transposed(
    x: Array, w: Array, stride: Sequence[int], edges: Edges, more: Sequence[int], groups: int = 1
) -> Array:
    """Add each element's multiple of the kernel [I, O / groups, *kernel] where it belongs."""
    kernel, sizes = w.shape[2:], x.shape[2:]
    whole = [(n - 1) * s + k + e for n, s, k, e in zip(sizes, stride, kernel, more, strict=True)]
    each, depth = w.shape[1], x.shape[1] // groups
    out = np.zeros((x.shape[0], each * groups, *whole))
    for c in range(x.shape[1]):
        first = c // depth * each
        for at in np.ndindex(*kernel):
            place = [
                slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(at, sizes, stride, strict=True)
            ]
            for o in range(each):
                out[(slice(None), first + o, *place)] += x[:, c] * w[(c, o, *at)]
    cut = [slice(b, n - a) for n, (b, a) in zip(whole, edges, strict=True)]
    return out[(slice(None), slice(None), *cut)]
