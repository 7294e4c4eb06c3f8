"""Convolution over images as a matrix product that never builds its columns.

The padded image is laid out flat, one row after the other, split by stride into phases: pixel
(h, w) goes to phase (h % stride, w % stride). In a phase, moving the window by one output pixel is
moving by one element, so the inputs of neighbouring outputs under one weight are neighbours in
memory: a flat output position q reads position q + shift, where the shift depends on the weight
alone. Positions at the end of a row that belong to no output are computed too and left out when
the result is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.tiles import Tile, lanes_of, register_tile
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

# Weights of this many bytes stay in a second-level cache while the image passes.
_CACHED_WEIGHTS = 512 * 1024


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

    def rows(self, lanes: int) -> int:
        """Rows of a phase, so many that the last tile of `lanes` reads inside it."""
        last = -(-self.positions // lanes) * lanes + self.reach * (self.row + 1)
        return -(-last // self.row)

    @property
    def plain(self) -> bool:
        """Tell whether the image itself is its only phase: nothing to lay out."""
        return self.kernel == 1 and self.stride == 1 and self.padding == 0


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
) -> tuple[Schedule, list[Tensor]]:
    """Convolve data [images, cin, height, width] by weight [cout, cin, kernel, kernel].

    Arguments data, weight, out; out has shape [images, cout, out_height, out_width].
    """
    chosen = Target.parse(target)
    geometry = Geometry(images, height, width, cin, cout, kernel, stride, padding)
    tile = register_tile(chosen, dtype, cout, geometry.positions)
    data = te.placeholder((images, cin, height, width), dtype, name="data")
    weight = te.placeholder((cout, cin, kernel, kernel), dtype, name="weight")
    image = None if geometry.plain else _phases(data, geometry, tile.lanes)
    flat = _products(data if image is None else image, weight, geometry, plain=geometry.plain)
    row = geometry.row
    out = te.compute(
        (images, cout, geometry.out_height, geometry.out_width),
        lambda n, c, h, w: flat[n, c, h * row + w],
        name="out",
    )
    schedule = te.create_schedule(out.op)
    _schedule(schedule, out, flat, geometry, tile)
    if image is not None:
        _schedule_phases(schedule, image, geometry, lanes_of(chosen, dtype))
    return schedule, [data, weight, out]


def _phases(data: Tensor, g: Geometry, lanes: int) -> Tensor:
    """Lay the padded image out as [images, cin, phase, flat position]."""

    def element(n: Expr, c: Expr, phase: Expr, at: Expr) -> Expr:
        h = at // g.row * g.stride + phase // g.phases - g.padding
        w = at % g.row * g.stride + phase % g.phases - g.padding
        inside = te.all(h >= 0, h < g.height, w >= 0, w < g.width)
        return te.if_then_else(inside, data[n, c, h, w], te.const(0, data.dtype))

    shape = (g.images, g.cin, g.phases * g.phases, g.rows(lanes) * g.row)
    return te.compute(shape, element, name="image")


def _products(image: Tensor, weight: Tensor, g: Geometry, *, plain: bool) -> Tensor:
    """Sum weight times image for each flat position: [images, cout, positions]."""
    c = te.reduce_axis((0, g.cin), name="c")
    if plain:
        return te.compute(
            (g.images, g.cout, g.positions),
            lambda n, o, q: te.sum(weight[o, c, 0, 0] * image[n, c, q // g.row, q % g.row], axis=c),
            name="flat",
        )
    kh = te.reduce_axis((0, g.kernel), name="kh")
    kw = te.reduce_axis((0, g.kernel), name="kw")

    def product(n: Expr, o: Expr, q: Expr) -> Expr:
        phase = kh % g.stride * g.phases + kw % g.stride
        at = q + kh // g.stride * g.row + kw // g.stride
        return te.sum(weight[o, c, kh, kw] * image[n, c, phase, at], axis=[c, kh, kw])

    return te.compute((g.images, g.cout, g.positions), product, name="flat")


def _schedule(schedule: Schedule, out: Tensor, flat: Tensor, g: Geometry, tile: Tile) -> None:
    sums = schedule.cache_write(flat, "local")
    stage = schedule[flat]
    n, o, q = stage.op.axis
    o_out, q_out, o_in, q_in = stage.tile(o, q, tile.rows, tile.lanes)
    if g.cout * g.cin * g.kernel * g.kernel * 4 <= _CACHED_WEIGHTS:
        stage.reorder(n, q_out, o_out, o_in, q_in)
        place = o_out
    else:
        stage.reorder(n, o_out, q_out, o_in, q_in)
        place = q_out
    stage.unroll(o_in)
    stage.vectorize(q_in)
    inner = schedule[sums]
    inner.compute_at(stage, place)
    n, o, q = inner.op.axis
    steps = inner.op.reduce_axis
    inner.reorder(*steps, n, o, q)
    inner.unroll(o)
    inner.vectorize(q)
    for step in steps[1:]:
        inner.unroll(step)
    w = schedule[out].op.axis[3]
    schedule[out].vectorize(w)


def _schedule_phases(schedule: Schedule, image: Tensor, g: Geometry, lanes: int) -> None:
    stage = schedule[image]
    _, column = stage.split(stage.op.axis[3], factor=g.row)
    if lanes > 1:
        stage.vectorize(column)
