"""Depthwise convolution: each channel by kernels of its own, nothing summed over channels.

A channel's padded plane is laid out by the phases of the horizontal stride, so that neighbours in
the output read neighbours in memory; some rows of output then share the vectors that their taps
have in common.
"""

from __future__ import annotations

import numpy.typing as npt

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.ops.window import Padding, Pair, Window, pair, windows
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_MOST_VECTORS = 4


def depthwise_conv2d(
    images: int,
    height: int,
    width: int,
    channels: int,
    kernel: Pair,
    stride: Pair = 1,
    padding: Padding = 0,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    multiplier: int = 1,
    dilation: Pair = 1,
    weight: npt.ArrayLike | None = None,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Convolve data [images, channels, height, width] channel by channel.

    weight is [channels * multiplier, 1, kernel height, kernel width]; an array given for it is held
    by the library. Arguments data, weight (unless given), out. `parallel` shares channels.
    """
    chosen, given = Target.parse(target), dtypes.dtype(dtype)
    tall, wide = windows(height, width, kernel, stride, padding, dilation)
    high, broad = pair(kernel)
    shape = (channels * multiplier, 1, high, broad)
    data = te.placeholder((images, channels, height, width), given, name="data")
    taps = weights_of(shape, dtype, weight)
    lanes = _lanes(lanes_of(chosen, sum_dtype(given)), wide.out)
    vectors = -(-wide.out // lanes)
    plane = _plane(data, tall, wide, vectors * lanes)
    sums = _sums(plane, taps, tall, wide, (images, channels * multiplier, vectors, lanes))

    def element(n: Expr, c: Expr, h: Expr, w: Expr) -> Expr:
        value: Expr = sums[n, c, h, w // lanes, w % lanes]
        return value.astype(given)

    out = te.compute((images, channels * multiplier, tall.out, wide.out), element, name="out")
    schedule = te.create_schedule(out.op)
    _schedule(schedule, (out, sums, plane), chosen, (lanes, vectors), parallel=parallel)
    return schedule, [data, out] if weight is not None else [data, taps, out]


def weights_of(shape: tuple[int, ...], dtype: str, weight: npt.ArrayLike | None) -> Tensor:
    """Give weights as an argument of a shape, or as a constant; ScheduleError where it differs."""
    if weight is None:
        return te.placeholder(shape, dtype, name="weight")
    held = te.constant(weight, name="weight")
    sizes = tuple(n.value for n in held.shape if isinstance(n, te.IntImm))
    if sizes != shape or str(held.dtype) != dtype:
        raise ScheduleError(
            f"conv: weight is {held.dtype}{list(sizes)}, expected {dtype}{list(shape)}"
        )
    return held


def _lanes(most: int, width: int) -> int:
    """Shorten vectors that the width does not fill."""
    while most > 1 and most // 2 >= width:
        most //= 2
    return most


def _plane(data: Tensor, tall: Window, wide: Window, columns: int) -> Tensor:
    """Lay the padded image out as [images, channels, row, phase, column]."""
    sums = sum_dtype(data.dtype)
    images, channels, height, width = data.shape

    def element(n: Expr, c: Expr, h: Expr, phase: Expr, x: Expr) -> Expr:
        row, column = h - tall.before, x * wide.stride + phase - wide.before
        inside = te.all(row >= 0, row < height, column >= 0, column < width)
        return te.if_then_else(inside, data[n, c, row, column].astype(sums), te.const(0, sums))

    rows = (tall.out - 1) * tall.stride + tall.span
    shape = (images, channels, rows, wide.phases, columns + wide.reach)
    return te.compute(shape, element, name="plane")


def _sums(
    plane: Tensor, taps: Tensor, tall: Window, wide: Window, sizes: tuple[int, int, int, int]
) -> Tensor:
    """Sum taps for each output: [images, channel, row, vector, lane]."""
    images, filters, vectors, lanes = sizes
    multiplier = filters // int(plane.shape[1].value)  # type: ignore[attr-defined]
    kh = te.reduce_axis((0, tall.kernel), name="kh")
    kw = te.reduce_axis((0, wide.kernel), name="kw")

    def element(n: Expr, c: Expr, h: Expr, vector: Expr, lane: Expr) -> Expr:
        step = kw * wide.dilation
        at = vector * lanes + lane + step // wide.stride
        row = h * tall.stride + kh * tall.dilation
        value: Expr = plane[n, c // multiplier, row, step % wide.stride, at]
        factor: Expr = taps[c, 0, kh, kw]
        return te.sum(factor.astype(plane.dtype) * value, axis=[kh, kw])

    return te.compute((images, filters, tall.out, vectors, lanes), element, name="sums")


def _schedule(
    schedule: Schedule,
    stages: tuple[Tensor, Tensor, Tensor],
    target: Target,
    sizes: tuple[int, int],
    *,
    parallel: bool,
) -> None:
    out, sums, plane = stages
    lanes, vectors = sizes
    final = schedule[out]
    n, c, h, w = final.op.axis
    if parallel:
        c = final.fuse(n, c)
        final.parallel(c)
    across = min(vectors, _MOST_VECTORS)
    free = target.vector_registers - 2 if lanes > 1 else 8
    down = max(1, min(int(out.shape[2].value), 4, free // (2 * across)))  # type: ignore[attr-defined]
    h_out, w_out, h_in, w_in = final.tile(h, w, down, across * lanes)
    final.unroll(h_in)
    inner = schedule[sums]
    inner.compute_at(final, w_out)
    inner.set_scope("local")
    *outer, row, vector, lane = inner.op.axis
    inner.reorder(*outer, *inner.op.reduce_axis, row, vector, lane)
    for axis in (*inner.op.reduce_axis, row, vector):
        inner.unroll(axis)
    schedule[plane].compute_at(final, c)
    if lanes > 1:
        final.vectorize(w_in)
        inner.vectorize(lane)
        _, column = schedule[plane].split(schedule[plane].op.axis[4], factor=lanes)
        schedule[plane].vectorize(column)
