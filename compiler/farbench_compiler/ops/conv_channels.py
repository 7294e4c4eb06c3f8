"""Convolution with vectors over output channels, for weights that the library holds.

Weights are packed so that one vector holds a tap of neighbouring output channels. A register tile
is some output positions by some such vectors; each step of the sum loads the vectors and spreads
one input element for each position. So no lane is lost to the image's width, however narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from farbench_compiler import te
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.ops.window import Window
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor
from farbench_compiler.topi.arguments import known

Numpy = npt.NDArray[Any]
_SPARE = 4  # registers beside sums: the weights of a step, an input element


@dataclass(frozen=True, slots=True)
class PositionTile:
    """`rows` x `columns` output positions by `vectors` of `lanes` output channels."""

    rows: int
    columns: int
    vectors: int
    lanes: int


def position_tile(target: Target, data: Tensor, cout: int, out: tuple[int, int]) -> PositionTile:
    """Choose a tile whose sums stay in registers and that divides the positions well."""
    lanes = lanes_of(target, sum_dtype(data.dtype))
    free = target.vector_registers - _SPARE
    height, width = out
    vectors = min(2, -(-cout // lanes)) if free >= 16 else 1
    most = max(1, free // vectors)
    across = -(-width // -(-width // most))  # equal parts, none longer than `most`
    return PositionTile(max(1, min(height, most // across)), across, vectors, lanes)


def pack(weight: Numpy, lanes: int, dtype: str) -> Numpy:
    """Lay OIHW weights out as [channel vector, input channel, row, column, lane]."""
    cout, cin, height, width = weight.shape
    packed = np.zeros((-(-cout // lanes) * lanes, cin, height, width), dtype)
    packed[:cout] = weight
    return np.ascontiguousarray(
        packed.reshape(-1, lanes, cin, height, width).transpose(0, 2, 3, 4, 1)
    )


def channel_conv2d(
    data: Tensor, weight: Numpy, tall: Window, wide: Window, target: Target, *, parallel: bool
) -> tuple[Schedule, list[Tensor]]:
    """Convolve NCHW data by constant OIHW weights; arguments data, out."""
    cout = weight.shape[0]
    tile = position_tile(target, data, cout, (tall.out, wide.out))
    sums_in = sum_dtype(data.dtype)
    packed = te.constant(pack(weight, tile.lanes, str(sums_in)), name="weight")
    extent = (
        tall.size + tall.before + tall.after,
        wide.size + wide.before + wide.after,
    )
    image = padded(data, (tall.before, wide.before), extent)
    sums = _sums(image, packed, tall, wide)
    images = data.shape[0]

    def element(n: Expr, o: Expr, h: Expr, w: Expr) -> Expr:
        value: Expr = sums[n, o // tile.lanes, h, w, o % tile.lanes]
        return value.astype(data.dtype)

    out = te.compute((images, cout, tall.out, wide.out), element, name="out")
    schedule = te.create_schedule(out.op)
    _schedule(schedule, out, sums, tile, parallel=parallel)
    if image is not data:
        stage = schedule[image]
        if tile.lanes > 1:
            stage.vectorize(stage.op.axis[3])
        if parallel:
            stage.parallel(stage.op.axis[1])
    return schedule, [data, out]


def padded(data: Tensor, before: tuple[int, int], extent: tuple[int, int]) -> Tensor:
    """Give NCHW data of another height and width, zeros above and left and behind.

    In the dtype of its sums; the data itself where nothing changes.
    """
    sums = sum_dtype(data.dtype)
    images, channels, height, width = data.shape
    plain = before == (0, 0) and extent == (known(height), known(width))
    if plain and sums == data.dtype:
        return data

    def element(n: Expr, c: Expr, h: Expr, w: Expr) -> Expr:
        row, column = h - before[0], w - before[1]
        inside = te.all(row >= 0, row < height, column >= 0, column < width)
        return te.if_then_else(inside, data[n, c, row, column].astype(sums), te.const(0, sums))

    return te.compute((images, channels, *extent), element, name="image")


def _sums(image: Tensor, packed: Tensor, tall: Window, wide: Window) -> Tensor:
    """Sum for each output: [images, channel vector, row, column, lane]."""
    vectors, cin, high, broad, lanes = packed.shape
    c = te.reduce_axis((0, cin), name="c")
    kh = te.reduce_axis((0, high), name="kh")
    kw = te.reduce_axis((0, broad), name="kw")

    def element(n: Expr, v: Expr, h: Expr, w: Expr, lane: Expr) -> Expr:
        row = h * tall.stride + kh * tall.dilation
        column = w * wide.stride + kw * wide.dilation
        term: Expr = packed[v, c, kh, kw, lane] * image[n, c, row, column]
        return te.sum(term, axis=[c, kh, kw])

    return te.compute((image.shape[0], vectors, tall.out, wide.out, lanes), element, name="sums")


def sum_in_registers(
    schedule: Schedule, out: Tensor, sums: Tensor, tile: PositionTile, *, parallel: bool
) -> tuple[Stage, Stage]:
    """Sum a tile in registers, keep it on the stack, then write it out channel by channel.

    The stages on the stack and in registers, whose own loops are left as they are.
    """
    registers = schedule.cache_write(sums, "local")
    final = schedule[out]
    n, o, h, w = final.op.axis
    o_out, o_in = final.split(o, factor=tile.vectors * tile.lanes)
    h_out, w_out, h_in, w_in = final.tile(h, w, tile.rows, tile.columns)
    final.reorder(n, o_out, h_out, w_out, o_in, h_in, w_in)
    kept, inner = schedule[sums], schedule[registers]
    for stage in (kept, inner):
        stage.compute_at(final, w_out)
    kept.set_scope("local")
    if parallel:
        final.parallel(final.fuse(n, o_out))
    return kept, inner


def _schedule(
    schedule: Schedule, out: Tensor, sums: Tensor, tile: PositionTile, *, parallel: bool
) -> None:
    """Write a tile's positions and vectors out, and vectorise its lanes."""
    kept, inner = sum_in_registers(schedule, out, sums, tile, parallel=parallel)
    n_in, v, h, w, lane = inner.op.axis
    # Positions outside: an input element meets all its weights while it is in a register.
    inner.reorder(*inner.op.reduce_axis, n_in, h, w, v, lane)
    for stage in (kept, inner):
        *_, v, h, w, lane = stage.op.axis
        for axis in (v, h, w):
            stage.unroll(axis)
        if tile.lanes > 1:
            stage.vectorize(lane)
