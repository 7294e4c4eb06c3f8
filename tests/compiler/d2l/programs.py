"""Programs that a course on tensor compilers teaches, each with a schedule for CPUs and its numpy.

Written in the style of TVM's te, with the names that its users write.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from farbench import te, topi

from .lesson import Array, Lesson, Made


def vector_add() -> Made:
    """Add vectors, in parallel over chunks of vectors."""
    a, b = (te.placeholder((100,), name=name) for name in "ab")
    c = te.compute((100,), lambda i: a[i] + b[i], name="c")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    return s, [a, b, c]


def broadcast_add() -> Made:
    """Add a column and a row."""
    a, b = te.placeholder((12, 1), name="a"), te.placeholder((1, 20), name="b")
    c = te.compute((12, 20), lambda i, j: a[i, 0] + b[0, j], name="c")
    s = te.create_schedule(c.op)
    x, y = s[c].op.axis
    s[c].parallel(x)
    s[c].vectorize(y)
    return s, [a, b, c]


def _matmul(m: int, n: int, k: int) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.IterVar]:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda x, y: te.sum(a[x, r] * b[r, y], axis=r), name="C")
    return a, b, c, r


def matmul_reordered() -> Made:
    """Multiply with the sum outside of the vectors."""
    a, b, c, k = _matmul(20, 24, 18)
    s = te.create_schedule(c.op)
    x, y = s[c].op.axis
    s[c].reorder(x, k, y)
    s[c].vectorize(y)
    s[c].parallel(x)
    return s, [a, b, c]


def matmul_blocked() -> Made:
    """Multiply by blocks that a write cache keeps near."""
    a, b, c, k = _matmul(36, 40, 28)
    s = te.create_schedule(c.op)
    near = s.cache_write(c, "global")
    rows, columns = s[c].op.axis
    x_out, y_out, _, y_in = s[c].tile(rows, columns, 16, 16)
    s[c].vectorize(y_in)
    blocks = s[c].fuse(x_out, y_out)
    s[c].parallel(blocks)
    s[near].compute_at(s[c], blocks)
    k_out, k_in = s[near].split(k, factor=4)
    row, column = s[near].op.axis
    s[near].reorder(k_out, row, k_in, column)
    s[near].vectorize(column)
    s[near].unroll(k_in)
    return s, [a, b, c]


def _padded(x: te.Tensor, pad: int, value: float = 0.0) -> te.Tensor:
    """Put a border around the last two dimensions."""
    *lead, height, width = x.shape

    def element(*i: Any) -> Any:
        h, w = i[-2] - pad, i[-1] - pad
        outside = te.any(h < 0, h >= height, w < 0, w >= width)
        return te.if_then_else(outside, te.const(value, "float32"), x[(*i[:-2], h, w)])

    return te.compute((*lead, height + 2 * pad, width + 2 * pad), element, name="padded")


def convolution() -> Made:
    """Convolve an image of several channels, tile by tile of the output's rows."""
    x, w = te.placeholder((3, 12, 12), name="X"), te.placeholder((8, 3, 3, 3), name="K")
    c, kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("c", "kh", "kw"))
    near = _padded(x, 1)
    y = te.compute(
        (8, 12, 12),
        lambda o, i, j: te.sum(near[c, i + kh, j + kw] * w[o, c, kh, kw], axis=[c, kh, kw]),
        name="Y",
    )
    s = te.create_schedule(y.op)
    o, h, v = s[y].op.axis
    h_out, h_in = s[y].split(h, factor=4)
    s[y].reorder(o, h_out, c, kh, kw, h_in, v)
    s[y].vectorize(v)
    s[y].parallel(s[y].fuse(o, h_out))
    s[near].parallel(s[near].op.axis[0])
    return s, [x, w, y]


def strided_convolution() -> Made:
    """Convolve every second place, in tiles that a write cache keeps near."""
    x, w = te.placeholder((3, 15, 15), name="X"), te.placeholder((4, 3, 3, 3), name="K")
    c, kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("ric", "rkh", "rkw"))
    near = _padded(x, 1)
    y = te.compute(
        (4, 8, 8),
        lambda o, i, j: te.sum(near[c, i * 2 + kh, j * 2 + kw] * w[o, c, kh, kw], axis=[c, kh, kw]),
        name="Y",
    )
    s = te.create_schedule(y.op)
    cached = s.cache_write(y, "local")
    o, h, v = s[y].op.axis
    h_out, v_out, _, _ = s[y].tile(h, v, 4, 4)
    tiles = s[y].fuse(o, h_out, v_out)
    s[y].parallel(tiles)
    s[cached].compute_at(s[y], tiles)
    _, row, column = s[cached].op.axis
    s[cached].reorder(*s[cached].op.reduce_axis, row, column)
    s[cached].vectorize(column)
    s[cached].unroll(row)
    s[near].parallel(s[near].op.axis[0])
    return s, [x, w, y]


def packing_convolution() -> Made:
    """Pack data and kernel in blocks of channels, convolve, and unpack, each stage scheduled."""
    block, o_blocks, i_blocks = 4, 3, 2
    x, w = te.placeholder((8, 8, 8), name="X"), te.placeholder((12, 8, 3, 3), name="K")
    near = _padded(x, 1)
    data = te.compute(
        (i_blocks, 10, 10, block), lambda c, i, j, n: near[c * block + n, i, j], name="PackedX"
    )
    kernel = te.compute(
        (o_blocks, i_blocks, 3, 3, block, block),
        lambda o, c, i, j, n, m: w[o * block + m, c * block + n, i, j],
        name="PackedK",
    )
    c, n = te.reduce_axis((0, i_blocks), name="c"), te.reduce_axis((0, block), name="n")
    kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("kh", "kw"))
    packed = te.compute(
        (o_blocks, 8, 8, block),
        lambda o, i, j, m: te.sum(
            data[c, i + kh, j + kw, n] * kernel[o, c, kh, kw, n, m], axis=[c, kh, kw, n]
        ),
        name="PackedY",
    )
    y = te.compute((12, 8, 8), lambda o, i, j: packed[o // block, i, j, o % block], name="Y")
    s = te.create_schedule(y.op)
    cached = s.cache_write(packed, "local")
    o, h, v, lane = s[packed].op.axis
    s[packed].parallel(s[packed].fuse(o, h))
    v_out, _ = s[packed].split(v, factor=4)
    s[cached].compute_at(s[packed], v_out)
    _, _, column, lane = s[cached].op.axis
    s[cached].reorder(c, kh, kw, n, column, lane)
    s[cached].unroll(n)
    s[cached].unroll(column)
    s[cached].vectorize(lane)
    for stage in (data, kernel, y):
        s[stage].parallel(s[stage].fuse(*stage.op.axis[0:2]))
        s[stage].unroll(stage.op.axis[-1])
    return s, [x, w, y]


def packed_convolution() -> Made:
    """Convolve in blocks of channels: [channel block, row, column, channel]."""
    block = 4
    x = te.placeholder((2, 10, 10, block), name="X")
    w = te.placeholder((3, 2, 3, 3, block, block), name="K")
    c = te.reduce_axis((0, 2), name="c")
    inner = te.reduce_axis((0, block), name="inner")
    kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("kh", "kw"))
    y = te.compute(
        (3, 8, 8, block),
        lambda o, i, j, lane: te.sum(
            x[c, i + kh, j + kw, inner] * w[o, c, kh, kw, inner, lane], axis=[c, kh, kw, inner]
        ),
        name="Y",
    )
    s = te.create_schedule(y.op)
    near = s.cache_write(y, "local")
    o, h, v, lane = s[y].op.axis
    v_out, v_in = s[y].split(v, factor=4)
    s[y].reorder(o, h, v_out, v_in, lane)
    s[y].vectorize(lane)
    s[near].compute_at(s[y], v_out)
    _, _, column, channel = s[near].op.axis
    s[near].reorder(c, kh, kw, inner, column, channel)
    s[near].vectorize(channel)
    s[near].unroll(column)
    s[near].unroll(kw)
    s[y].parallel(s[y].fuse(o, h))
    return s, [x, w, y]


def depthwise_convolution() -> Made:
    """Convolve each channel by a kernel of its own."""
    x, w = te.placeholder((6, 12, 12), name="X"), te.placeholder((6, 1, 3, 3), name="K")
    kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("kh", "kw"))
    near = _padded(x, 1)
    y = te.compute(
        (6, 12, 12),
        lambda c, i, j: te.sum(near[c, i + kh, j + kw] * w[c, 0, kh, kw], axis=[kh, kw]),
        name="Y",
    )
    s = te.create_schedule(y.op)
    c, h, v = s[y].op.axis
    s[y].reorder(c, h, kh, kw, v)
    s[y].vectorize(v)
    s[y].unroll(kw)
    s[near].compute_at(s[y], c)
    s[y].parallel(c)
    return s, [x, w, y]


def _pooling(kind: str) -> Made:
    x = te.placeholder((4, 12, 12), name="X")
    kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("kh", "kw"))
    near = _padded(x, 1, float("-inf") if kind == "max" else 0.0)
    if kind == "max":
        y = te.compute(
            (4, 12, 12), lambda c, i, j: te.max(near[c, i + kh, j + kw], axis=[kh, kw]), name="Y"
        )
        out = y
    else:
        y = te.compute(
            (4, 12, 12), lambda c, i, j: te.sum(near[c, i + kh, j + kw], axis=[kh, kw]), name="S"
        )
        out = te.compute(y.shape, lambda c, i, j: y[c, i, j] / (3 * 3), name="Y")
    s = te.create_schedule(out.op)
    c, _, v = s[out].op.axis
    s[out].vectorize(v)
    s[out].parallel(c)
    s[near].compute_at(s[out], c)
    if out is not y:
        s[y].compute_at(s[out], c)
        s[y].vectorize(s[y].op.axis[2])
    return s, [x, out]


def max_pooling() -> Made:
    """Take the largest of 3 by 3 neighbours."""
    return _pooling("max")


def mean_pooling() -> Made:
    """Take the mean of 3 by 3 neighbours."""
    return _pooling("mean")


def fused_pooling() -> Made:
    """Pool with the border computed where it is read, rows shared and columns in vectors."""
    x = te.placeholder((4, 12, 12), name="X")
    kh, kw = (te.reduce_axis((0, 3), name=name) for name in ("kh", "kw"))
    near = _padded(x, 1, float("-inf"))
    y = te.compute(
        (4, 12, 12), lambda c, i, j: te.max(near[c, i + kh, j + kw], axis=[kh, kw]), name="Y"
    )
    s = te.create_schedule(y.op)
    te.schedule.AutoInlineInjective(s)
    c, h, w = y.op.axis[0:3]
    s[y].parallel(s[y].fuse(c, h))
    s[y].vectorize(w)
    return s, [x, y]


def batch_norm() -> Made:
    """Normalise channels by operators on whole tensors that broadcast."""
    x = te.placeholder((6, 10, 10), name="X")
    mean, variance, gamma, beta = (
        te.placeholder((6, 1, 1), name=name) for name in ("mean", "variance", "gamma", "beta")
    )
    y = (x - mean) / topi.sqrt(variance + 1e-5) * gamma + beta
    s = te.create_schedule(y.op)
    te.schedule.AutoInlineInjective(s)
    s[y].vectorize(y.op.axis[2])
    s[y].parallel(y.op.axis[0])
    return s, [x, mean, variance, gamma, beta, y]


def _windows(x: Array, pad: int, value: float = 0.0) -> Array:
    edge = [(0, 0)] * (x.ndim - 2) + [(pad, pad)] * 2
    near = np.pad(x, edge, constant_values=value)
    view: Array = np.lib.stride_tricks.sliding_window_view(near, (3, 3), axis=(-2, -1))
    return view


def _convolved(x: Array, w: Array) -> Array:
    out: Array = np.einsum("chwij,ocij->ohw", _windows(x, 1), w)
    return out


def _packed(x: Array, w: Array) -> Array:
    view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    out: Array = np.einsum("chwnij,ocijnl->ohwl", view, w)
    return out


LESSONS = (
    Lesson("vector add", vector_add, [(100,), (100,)], np.add),
    Lesson("broadcast add", broadcast_add, [(12, 1), (1, 20)], np.add),
    Lesson("matmul reordered", matmul_reordered, [(20, 18), (18, 24)], np.matmul),
    Lesson("matmul blocked", matmul_blocked, [(36, 28), (28, 40)], np.matmul),
    Lesson("convolution", convolution, [(3, 12, 12), (8, 3, 3, 3)], _convolved),
    Lesson(
        "strided convolution",
        strided_convolution,
        [(3, 15, 15), (4, 3, 3, 3)],
        lambda x, w: _convolved(x, w)[:, ::2, ::2],
    ),
    Lesson("packing convolution", packing_convolution, [(8, 8, 8), (12, 8, 3, 3)], _convolved),
    Lesson("packed convolution", packed_convolution, [(2, 10, 10, 4), (3, 2, 3, 3, 4, 4)], _packed),
    Lesson(
        "depthwise convolution",
        depthwise_convolution,
        [(6, 12, 12), (6, 1, 3, 3)],
        lambda x, w: np.einsum("chwij,cij->chw", _windows(x, 1), w[:, 0]),
    ),
    Lesson(
        "max pooling", max_pooling, [(4, 12, 12)], lambda x: _windows(x, 1, -np.inf).max((-2, -1))
    ),
    Lesson(
        "fused pooling",
        fused_pooling,
        [(4, 12, 12)],
        lambda x: _windows(x, 1, -np.inf).max((-2, -1)),
    ),
    Lesson("mean pooling", mean_pooling, [(4, 12, 12)], lambda x: _windows(x, 1).mean((-2, -1))),
    Lesson(
        "batch norm",
        batch_norm,
        [(6, 10, 10), *[(6, 1, 1)] * 4],
        lambda x, mean, variance, gamma, beta: (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta,
    ),
)
