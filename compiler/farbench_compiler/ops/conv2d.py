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
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.expr import Expr, ExprLike
from farbench_compiler.ops.tiles import Tile, lanes_of, reaches_far, register_tile, sum_dtype
from farbench_compiler.target import Target
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


@dataclass(frozen=True)
class Geometry:
    """Sizes of one convolution: a batch of `images`, square kernel, equal padding on each side."""

    images: int
    height: int
    width: int
    cin: int
    cout: int
    kernel: int
    stride: int
    padding: int

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        return (self.height + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        return (self.width + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def phases(self) -> int:
        """Phases along one axis that some weight reads."""
        return min(self.kernel, self.stride)

    @property
    def reach(self) -> int:
        """Positions along one axis of a phase that a window reaches beyond its first."""
        return (self.kernel - 1) // self.stride

    @property
    def row(self) -> int:
        """Elements in one row of a phase."""
        return self.out_width + self.reach

    @property
    def positions(self) -> int:
        """Flat output positions, from the first output to the last."""
        return (self.out_height - 1) * self.row + self.out_width

    def vectors(self, lanes: int) -> int:
        """Vectors of `lanes` that hold all flat output positions."""
        return -(-self.positions // lanes)

    def length(self, lanes: int) -> int:
        """Elements of a phase: whole rows, so many that the last vector's window lies inside."""
        last = self.vectors(lanes) * lanes + self.reach * (self.row + 1)
        return -(-last // self.row) * self.row

    def plain(self, lanes: int) -> bool:
        """Tell whether the image itself is its only phase: nothing to lay out."""
        alone = self.kernel == 1 and self.stride == 1 and self.padding == 0
        return alone and self.positions % lanes == 0


def conv2d(
    images: int,
    height: int,
    width: int,
    cin: int,
    cout: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Convolve data [images, cin, height, width] by weight [cout, cin, kernel, kernel].

    Arguments data, weight, out; out has shape [images, cout, out_height, out_width]. Halves are
    summed in float32. `parallel` shares channels among the threads.
    """
    chosen = Target.parse(target)
    given = dtypes.dtype(dtype)
    g = Geometry(images, height, width, cin, cout, kernel, stride, padding)
    tile = register_tile(chosen, sum_dtype(given), cout, g.positions)
    data = te.placeholder((images, cin, height, width), given, name="data")
    weight = te.placeholder((cout, cin, kernel, kernel), given, name="weight")
    plain = g.plain(tile.lanes) and sum_dtype(given) == given
    image = data if plain else _phases(data, g, tile.lanes)
    direct = reaches_far(chosen) and sum_dtype(given) == given
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

    out = te.compute((images, cout, g.out_height, g.out_width), element, name="out")
    schedule = te.create_schedule(out.op)
    outer = _schedule(schedule, out, flat, g, tile)
    if not direct:
        schedule[panels].compute_at(schedule[out], outer)
        schedule[panels].unroll(schedule[panels].op.axis[4])
    if not plain:
        _schedule_phases(schedule, image, g, vectors=lanes_of(chosen, given) > 1)
    if parallel:
        schedule[out].parallel(outer)
        if not plain:
            schedule[image].parallel(schedule[image].op.axis[1])
    return schedule, [data, weight, out]


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

    shape = (-(-g.cout // rows), g.cin, g.kernel, g.kernel, rows)
    return te.compute(shape, element, name="weight.panels")


def _phases(data: Tensor, g: Geometry, lanes: int) -> Tensor:
    """Lay the padded image out as [images, cin, phase, flat position]."""
    wide = sum_dtype(data.dtype)

    def element(n: Expr, c: Expr, phase: Expr, at: Expr) -> Expr:
        h = at // g.row * g.stride + phase // g.phases - g.padding
        w = at % g.row * g.stride + phase % g.phases - g.padding
        inside = te.all(h >= 0, h < g.height, w >= 0, w < g.width)
        return te.if_then_else(inside, data[n, c, h, w].astype(wide), te.const(0, wide))

    shape = (g.images, g.cin, g.phases * g.phases, g.length(lanes))
    return te.compute(shape, element, name="image")


def _products(
    image: Tensor, weight_of: Callable[..., Expr], g: Geometry, lanes: int, *, plain: bool
) -> Tensor:
    """Sum weight times image for each flat position: [images, cout, vector, lane]."""
    shape = (g.images, g.cout, g.vectors(lanes), lanes)
    c = te.reduce_axis((0, g.cin), name="c")
    if plain:

        def pointwise(n: Expr, o: Expr, vector: Expr, lane: Expr) -> Expr:
            at = vector * lanes + lane
            term: Expr = weight_of(o, c, 0, 0) * image[n, c, at // g.row, at % g.row]
            return te.sum(term, axis=c)

        return te.compute(shape, pointwise, name="flat")
    kh = te.reduce_axis((0, g.kernel), name="kh")
    kw = te.reduce_axis((0, g.kernel), name="kw")

    def product(n: Expr, o: Expr, vector: Expr, lane: Expr) -> Expr:
        phase = kh % g.stride * g.phases + kw % g.stride
        at = vector * lanes + lane + kh // g.stride * g.row + kw // g.stride
        term: Expr = weight_of(o, c, kh, kw) * image[n, c, phase, at]
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
    final.vectorize(final.fuse(h, w) if g.reach == 0 else w)
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
