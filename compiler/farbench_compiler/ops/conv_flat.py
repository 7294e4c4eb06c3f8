"""Convolution over images as a matrix product that never builds its columns.

The padded image is laid out flat, one row after the other, split by stride into phases: pixel
(h, w) goes to phase (h % stride, w % stride). In a phase, moving the window by one output pixel is
moving by one element, so the inputs of neighbouring outputs under one weight are neighbours in
memory: a flat output position q reads position q + shift, where the shift depends on the weight
alone. Positions at the end of a row that belong to no output are computed too and left out when
the result is written; flat positions are padded to whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from farbench_compiler import te
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr, ExprLike
from farbench_compiler.ops.tiles import Tile, lanes_of, reaches_far, register_tile
from farbench_compiler.ops.window import Window
from farbench_compiler.target import Target
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


@dataclass(frozen=True)
class Geometry:
    """Sizes of one convolution: `images` of `cin` channels to `cout`, in `groups`."""

    images: int
    cin: int
    cout: int
    groups: int
    tall: Window
    wide: Window

    @property
    def depth(self) -> int:
        """Input channels that one output channel reads."""
        return self.cin // self.groups

    @property
    def row(self) -> int:
        """Elements in one row of a phase."""
        return self.wide.out + self.wide.reach

    @property
    def positions(self) -> int:
        """Flat output positions, from the first output to the last."""
        return (self.tall.out - 1) * self.row + self.wide.out

    def vectors(self, lanes: int) -> int:
        """Vectors of `lanes` that hold all flat output positions."""
        return -(-self.positions // lanes)

    def length(self, lanes: int) -> int:
        """Elements of a phase: whole rows, so many that the last vector's window lies inside."""
        last = self.vectors(lanes) * lanes + self.tall.reach * self.row + self.wide.reach
        return -(-last // self.row) * self.row

    def plain(self, lanes: int) -> bool:
        """Tell whether the image itself is its only phase: nothing to lay out."""
        return self.tall.plain and self.wide.plain and self.positions % lanes == 0

    def tile(self, target: Target, data: Tensor) -> Tile:
        """Choose a register tile whose rows lie in one group."""
        each = self.cout // self.groups
        tile = register_tile(target, sum_dtype(data.dtype), each, self.positions)
        rows = tile.rows
        while self.groups > 1 and each % rows:
            rows -= 1
        return Tile(rows, tile.vectors, tile.lanes)


def flat_conv2d(
    data: Tensor, weight: Tensor, g: Geometry, target: Target, *, parallel: bool
) -> tuple[Schedule, Tensor]:
    """Convolve NCHW data by OIHW weights, each an argument or a constant; gives the output."""
    given = data.dtype
    tile = g.tile(target, data)
    same = sum_dtype(given) == given
    plain = g.plain(tile.lanes) and same
    image = data if plain else _phases(data, g, tile.lanes)
    direct = reaches_far(target) and same
    panels = weight if direct else _panels(weight, g, tile.rows)

    def weight_of(o: Expr, c: ExprLike, kh: ExprLike, kw: ExprLike) -> Expr:
        if direct:
            return _element(weight, o, c, kh, kw)
        return _element(panels, o // tile.rows, c, kh, kw, o % tile.rows)

    flat = _products(image, weight_of, g, tile.lanes, plain=plain)

    def element(n: Expr, c: Expr, h: Expr, w: Expr) -> Expr:
        at = h * g.row + w
        value: Expr = flat[n, c, at // tile.lanes, at % tile.lanes]
        return value.astype(given)

    out = te.compute((g.images, g.cout, g.tall.out, g.wide.out), element, name="out")
    schedule = te.create_schedule(out.op)
    outer = _schedule(schedule, out, flat, g, tile)
    if not direct:
        schedule[panels].compute_at(schedule[out], outer)
        schedule[panels].unroll(schedule[panels].op.axis[4])
    if not plain:
        _schedule_phases(schedule, image, g, vectors=lanes_of(target, given) > 1)
    if parallel:
        schedule[out].parallel(outer)
        if not plain:
            schedule[image].parallel(schedule[image].op.axis[1])
    return schedule, out


def _element(tensor: Tensor, *at: ExprLike) -> Expr:
    value: Expr = tensor[at]
    return value


def _panels(weight: Tensor, g: Geometry, rows: int) -> Tensor:
    """Lay weights out as [channel tile, cin, kernel, kernel, row], zeros beyond the last channel.

    So a step of the sum finds its weights next to each other, at one address.
    """
    wide = sum_dtype(weight.dtype)

    def element(tile: Expr, c: Expr, kh: Expr, kw: Expr, row: Expr) -> Expr:
        o = tile * rows + row
        value: Expr = weight[o, c, kh, kw]
        value = value.astype(wide)
        return (
            value if g.cout % rows == 0 else te.if_then_else(o < g.cout, value, te.const(0, wide))
        )

    shape = (-(-g.cout // rows), g.depth, g.tall.kernel, g.wide.kernel, rows)
    return te.compute(shape, element, name="weight.panels")


def _phases(data: Tensor, g: Geometry, lanes: int) -> Tensor:
    """Lay the padded image out as [images, cin, phase, flat position]."""
    wide = sum_dtype(data.dtype)
    tall, broad = g.tall, g.wide

    def element(n: Expr, c: Expr, phase: Expr, at: Expr) -> Expr:
        h = at // g.row * tall.stride + phase // broad.phases - tall.before
        w = at % g.row * broad.stride + phase % broad.phases - broad.before
        inside = te.all(h >= 0, h < tall.size, w >= 0, w < broad.size)
        return te.if_then_else(inside, data[n, c, h, w].astype(wide), te.const(0, wide))

    shape = (g.images, g.cin, tall.phases * broad.phases, g.length(lanes))
    return te.compute(shape, element, name="image")


def _products(
    image: Tensor, weight_of: Callable[..., Expr], g: Geometry, lanes: int, *, plain: bool
) -> Tensor:
    """Sum weight times image for each flat position: [images, cout, vector, lane]."""
    shape = (g.images, g.cout, g.vectors(lanes), lanes)
    c = te.reduce_axis((0, g.depth), name="c")

    def channel(o: Expr) -> Expr:
        return c if g.groups == 1 else o // (g.cout // g.groups) * g.depth + c

    if plain:

        def pointwise(n: Expr, o: Expr, vector: Expr, lane: Expr) -> Expr:
            at = vector * lanes + lane
            term: Expr = weight_of(o, c, 0, 0) * image[n, channel(o), at // g.row, at % g.row]
            return te.sum(term, axis=c)

        return te.compute(shape, pointwise, name="flat")
    kh = te.reduce_axis((0, g.tall.kernel), name="kh")
    kw = te.reduce_axis((0, g.wide.kernel), name="kw")

    def product(n: Expr, o: Expr, vector: Expr, lane: Expr) -> Expr:
        down, across = kh * g.tall.dilation, kw * g.wide.dilation
        phase = down % g.tall.stride * g.wide.phases + across % g.wide.stride
        shift = down // g.tall.stride * g.row + across // g.wide.stride
        at = vector * lanes + lane + shift
        term: Expr = weight_of(o, c, kh, kw) * image[n, channel(o), phase, at]
        return te.sum(term, axis=[c, kh, kw])

    return te.compute(shape, product, name="flat")


def _schedule(schedule: Schedule, out: Tensor, flat: Tensor, g: Geometry, tile: Tile) -> IterVar:
    """Schedule all but the image; return the loop over channel tiles.

    Flat sums of some channels are computed and copied out while they are in a near cache.
    """
    sums = schedule.cache_write(flat, "local")
    final = schedule[out]
    _, o, h, w = final.op.axis
    o_out, _ = final.split(o, factor=tile.rows)
    final.vectorize(final.fuse(h, w) if g.wide.reach == 0 else w)
    stage = schedule[flat]
    stage.compute_at(final, o_out)
    n, o, vector, lane = stage.op.axis
    tile_out, tile_in = stage.split(vector, factor=tile.vectors)
    stage.reorder(n, tile_out, o, tile_in, lane)
    inner = schedule[sums]
    inner.compute_at(stage, tile_out)
    n, o_in, vector, lane_in = inner.op.axis
    steps = inner.op.reduce_axis
    inner.reorder(*steps, n, o_in, vector, lane_in)
    for axis in (o_in, vector):
        inner.unroll(axis)
    for axis in (o, tile_in):
        stage.unroll(axis)
    if tile.lanes > 1:
        stage.vectorize(lane)
        inner.vectorize(lane_in)
    return o_out


def _schedule_phases(schedule: Schedule, image: Tensor, g: Geometry, *, vectors: bool) -> None:
    stage = schedule[image]
    _, column = stage.split(stage.op.axis[3], factor=g.row)
    if vectors:
        stage.vectorize(column)
