"""3x3 convolution by Winograd's F(2x2, 3x3): four outputs for sixteen products instead of 36.

    out = A^T [(G g G^T) * (B^T d B)] A

A tile of 2 x 2 outputs comes from a tile of 4 x 4 inputs d. Its transform meets that of the weights
g, which the library holds, in one product of matrices for each of the 16 elements; sums over input
channels are made there. A block of tile rows is transformed, multiplied and transformed back while
it is in a second-level cache. Results differ from those of the direct sums by a few ulp more, since
the transforms add before they multiply (Lavin and Gray, Fast Algorithms for CNNs, 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farbench_compiler import te
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.conv_channels import Numpy, padded
from farbench_compiler.ops.tiles import Tile, lanes_of, register_tile
from farbench_compiler.ops.window import Window
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_WEIGHTS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])  # G
_BLOCK_BYTES = 1_750_000  # of both transforms; measured on Zen 4 with 1 MiB a core
_BLOCKS = 8  # that threads share
_FEW_TILES = 7  # in a block: below it, passing the weights takes longer than the products
# Channels below which the transforms take what the products save: their harmonic mean, halved.
# Measured on Zen 4: 16 by 64 is 8 % slower than the direct sums, 32 by 32 a third faster.
_CHANNELS = 16
_WASTE = 1.5  # outputs of whole tiles by the outputs that there are


@dataclass(frozen=True, slots=True)
class Tiling:
    """`rows` x `columns` tiles of 2 x 2 outputs, in `blocks` of `high` tile rows."""

    rows: int
    columns: int
    blocks: int
    high: int


def tiling(tall: Window, wide: Window, bytes_a_tile: int, *, parallel: bool) -> Tiling:
    """Choose blocks of about equal height that fit the cache and that threads can share."""
    rows, columns = -(-tall.out // 2), -(-wide.out // 2)
    most = max(1, _BLOCK_BYTES // (columns * bytes_a_tile))
    if parallel:
        most = min(most, max(1, rows // _BLOCKS))
    blocks = -(-rows // most)
    high = -(-rows // blocks)
    return Tiling(rows, columns, -(-rows // high), high)


def is_faster(
    shape: tuple[int, int, int, int],
    tall: Window,
    wide: Window,
    of: DType,
    target: Target,
    *,
    parallel: bool,
) -> bool:
    """Tell whether weights [cout, cin, kh, kw] are faster met here than by direct sums."""
    cout, cin, *_ = shape
    if any((w.kernel, w.stride, w.dilation) != (3, 1, 1) for w in (tall, wide)):
        return False
    if not of.is_float or of.bits < 32 or lanes_of(target, of) < 2:
        return False
    if cin * cout < _CHANNELS * (cin + cout):
        return False
    made = tiling(tall, wide, _bytes_a_tile(cin, cout, of), parallel=parallel)
    enough = made.high * made.columns >= _FEW_TILES or made.blocks == 1
    shared = not parallel or made.blocks >= _BLOCKS // 2
    return enough and shared and 4 * made.rows * made.columns <= _WASTE * tall.out * wide.out


def _bytes_a_tile(cin: int, cout: int, of: DType) -> int:
    return 16 * (cin + cout) * of.nbytes


def transformed(weight: Numpy, lanes: int, dtype: str) -> Numpy:
    """Transform OIHW weights and lay them out as [4, 4, channel vector, input channel, lane]."""
    cout, cin = weight.shape[:2]
    vectors = -(-cout // lanes)
    wide = np.zeros((vectors * lanes, cin, 3, 3), np.float64)
    wide[:cout] = weight
    met = _WEIGHTS @ wide @ _WEIGHTS.T
    laid = met.reshape(vectors, lanes, cin, 4, 4).transpose(3, 4, 0, 2, 1)
    return np.ascontiguousarray(laid.astype(dtype))


def winograd_conv2d(
    data: Tensor, weight: Numpy, tall: Window, wide: Window, target: Target, *, parallel: bool
) -> tuple[Schedule, list[Tensor]]:
    """Convolve NCHW data by constant OIHW weights [cout, cin, 3, 3]; arguments data, out."""
    cout, cin = weight.shape[:2]
    of = data.dtype
    made = tiling(tall, wide, _bytes_a_tile(cin, cout, of), parallel=parallel)
    tile = register_tile(target, of, made.high * made.columns, cout)
    held = te.constant(transformed(weight, tile.lanes, str(of)), name="weight")
    extent = (2 * made.blocks * made.high + 2, 2 * made.columns + 2)
    image = padded(data, (tall.before, wide.before), extent)
    tiles = _tiles(image, made)
    products = _products(tiles, held, made)
    sums = _sums(products, made)

    def element(n: Expr, o: Expr, h: Expr, w: Expr) -> Expr:
        value: Expr = sums[n, o // tile.lanes, h // 2, w // 2, h % 2, w % 2, o % tile.lanes]
        return value

    out = te.compute((data.shape[0], cout, tall.out, wide.out), element, name="out")
    schedule = te.create_schedule(out.op)
    _schedule(schedule, (image, tiles, products, sums, out), made, tile, parallel=parallel)
    return schedule, [data, out]


def _sign(positive: Expr, of: DType) -> Expr:
    return te.select(positive, te.const(1.0, of), te.const(-1.0, of))


def _tiles(image: Tensor, made: Tiling) -> Tensor:
    """Transform each tile of inputs: [image, 4, 4, channel, tile row, tile column].

    A row of B^T has two elements that are not 0: 1 at `first` and -1 or, in row 1, 1 at `second`.
    """

    def first(row: Expr) -> Expr:
        return row - 2 * (row // 3)

    def second(row: Expr) -> Expr:
        return 2 - row // 2 + 2 * (row // 3)

    def sign(row: Expr) -> Expr:
        return _sign(te.all(row >= 1, row < 2), image.dtype)

    def element(n: Expr, x: Expr, y: Expr, c: Expr, row: Expr, column: Expr) -> Expr:
        def across(i: Expr) -> Expr:
            at = [image[n, c, 2 * row + i, 2 * column + j] for j in (first(y), second(y))]
            value: Expr = at[0] + sign(y) * at[1]
            return value

        value: Expr = across(first(x)) + sign(x) * across(second(x))
        return value

    images, channels = image.shape[:2]
    shape = (images, 4, 4, channels, made.blocks * made.high, made.columns)
    return te.compute(shape, element, name="tiles")


def _products(tiles: Tensor, held: Tensor, made: Tiling) -> Tensor:
    """Multiply matrices, one pair an element: [image, block, 4, 4, channel vector, tile, lane]."""
    _, _, vectors, cin, lanes = held.shape
    c = te.reduce_axis((0, cin), name="c")

    def element(n: Expr, g: Expr, x: Expr, y: Expr, v: Expr, t: Expr, lane: Expr) -> Expr:
        row, column = g * made.high + t // made.columns, t % made.columns
        term: Expr = tiles[n, x, y, c, row, column] * held[x, y, v, c, lane]
        return te.sum(term, axis=c)

    shape = (tiles.shape[0], made.blocks, 4, 4, vectors, made.high * made.columns, lanes)
    return te.compute(shape, element, name="products")


def _sums(products: Tensor, made: Tiling) -> Tensor:
    """Transform back: [image, channel vector, tile row, tile column, 2, 2, lane].

    A^T is (1 1 1 0) and (0 1 -1 -1).
    """

    def element(
        n: Expr, v: Expr, row: Expr, column: Expr, a: Expr, b: Expr, lane: Expr
    ) -> Expr:  # fmt: skip
        t = row % made.high * made.columns + column

        def across(x: Expr | int) -> Expr:
            one, two, end = (products[n, row // made.high, x, y, v, t, lane] for y in (1, 2, 3 * b))
            value: Expr = one + _sign(b < 1, products.dtype) * (two + end)
            return value

        value: Expr = across(1) + _sign(a < 1, products.dtype) * (across(2) + across(3 * a))
        return value

    images, vectors, lanes = products.shape[0], products.shape[4], products.shape[6]
    return te.compute((images, vectors, made.rows, made.columns, 2, 2, lanes), element, name="sums")


def _schedule(
    schedule: Schedule,
    stages: tuple[Tensor, Tensor, Tensor, Tensor, Tensor],
    made: Tiling,
    tile: Tile,
    *,
    parallel: bool,
) -> None:
    """Put transforms and products into the loop over blocks, sums into that over their rows."""
    image, tiles, products, sums, out = stages
    registers = schedule.cache_write(products, "local")
    final = schedule[out]
    n, o, h, w = final.op.axis
    block, row = final.split(h, factor=2 * made.high)
    vector, lane = final.split(o, factor=tile.lanes)
    row, half = final.split(row, factor=2)
    final.reorder(n, block, vector, row, lane, half, w)
    _schedule_transforms(schedule, image, tiles, parallel=parallel)
    schedule[tiles].compute_at(final, block)
    schedule[products].compute_at(final, block)
    _schedule_products(schedule, products, registers, tile)
    back = schedule[sums]
    back.compute_at(final, row)
    back.set_scope("local")
    *_, a, b, lane = back.op.axis
    back.unroll(a)
    back.unroll(b)
    back.vectorize(lane)
    if parallel:
        final.parallel(final.fuse(n, block))


def _schedule_transforms(
    schedule: Schedule, image: Tensor, tiles: Tensor, *, parallel: bool
) -> None:
    """Vectors lie along rows of the image; all 16 elements of its tiles are made at once."""
    frame = schedule[image]
    frame.vectorize(frame.op.axis[3])
    if parallel:
        frame.parallel(frame.op.axis[1])
    there = schedule[tiles]
    n, x, y, c, row, column = there.op.axis
    there.reorder(n, c, row, x, y, column)
    there.unroll(x)
    there.unroll(y)
    there.vectorize(column)


def _schedule_products(schedule: Schedule, products: Tensor, registers: Tensor, tile: Tile) -> None:
    """Sum register tiles of `tile.rows` tiles by vectors of output channels."""
    kept = schedule[products]
    n, g, x, y, v, t, lane = kept.op.axis
    v_out, v_in = kept.split(v, factor=tile.vectors)
    t_out, t_in = kept.split(t, factor=tile.rows)
    kept.reorder(n, g, x, y, v_out, t_out, t_in, v_in, lane)
    inner = schedule[registers]
    inner.compute_at(kept, t_out)
    n, g, x, y, v, t, sum_lane = inner.op.axis
    inner.reorder(n, g, x, y, *inner.op.reduce_axis, t, v, sum_lane)
    for stage, rows, vectors, lanes in ((kept, t_in, v_in, lane), (inner, t, v, sum_lane)):
        stage.unroll(rows)
        stage.unroll(vectors)
        stage.vectorize(lanes)
