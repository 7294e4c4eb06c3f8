"""Convolution of narrow numbers by dot products: bytes into int32, bfloat16 into float32.

As many input channels as a dot product takes in lie side by side in the image; vectors run over
output channels, as in the convolution by channels. Where the instruction wants the image moved,
the padding is moved as well, so that each output is wrong by one number for its channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farbench_compiler import te
from farbench_compiler.ir.bfloat import to_bfloat16
from farbench_compiler.ir.dtypes import INT32, DType
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.conv_channels import Numpy, PositionTile, sum_in_registers
from farbench_compiler.ops.dots import Dot, dot_for, dot_intrin, interleave_intrin, plain_dot
from farbench_compiler.ops.matmul_dots import right_dtype
from farbench_compiler.ops.window import Window
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_SPARE = 5  # registers beside sums: the weights of a step, an input element, a product


def dot_conv2d(
    data: Tensor,
    weight: Tensor | npt.ArrayLike,
    tall: Window,
    wide: Window,
    target: Target,
    *,
    parallel: bool,
) -> tuple[Schedule, list[Tensor]]:
    """Convolve NCHW data by OIHW weights; arguments data, weight unless that is an array, out."""
    dot = dot_for(target, data.dtype) or plain_dot(target, data.dtype)
    made = _Convolution(data, tall, wide, dot)
    padded = made.padded()
    image = made.image(padded)
    if isinstance(weight, Tensor):
        packed, moved = made.packed(weight), made.moved(weight)
    else:
        packed, moved = made.held(np.asarray(weight), data.dtype)
    sums = made.sums(image, packed)
    lanes = dot.lanes

    def element(n: Expr, o: Expr, h: Expr, w: Expr) -> Expr:
        total: Expr = sums[n, o // lanes, h, w, o % lanes]
        return total if moved is None else total - moved[o]

    cout = weight.shape[0] if isinstance(weight, Tensor) else np.shape(weight)[0]
    out = te.compute((data.shape[0], cout, tall.out, wide.out), element, name="out")
    schedule = te.create_schedule(out.op)
    made.schedule(schedule, out, sums, _tile(target, dot, packed, tall, wide), parallel=parallel)
    made.schedule_image(schedule, padded, image, parallel=parallel)
    return schedule, [data, weight, out] if isinstance(weight, Tensor) else [data, out]


def _tile(target: Target, dot: Dot, packed: Tensor, tall: Window, wide: Window) -> PositionTile:
    """Choose a tile whose sums stay in registers and that divides the positions well."""
    free = max(4, target.vector_registers - _SPARE)
    vectors = 2 if free >= 16 and _size(packed.shape[0]) > 1 else 1
    most = max(1, free // vectors)
    across = -(-wide.out // -(-wide.out // most))
    return PositionTile(max(1, min(tall.out, most // across)), across, vectors, dot.lanes)


def _size(extent: Expr) -> int:
    return extent.value if isinstance(extent, te.IntImm) else 0


@dataclass(frozen=True)
class _Convolution:
    """The stages of one convolution."""

    data: Tensor
    tall: Window
    wide: Window
    dot: Dot

    @property
    def channels(self) -> int:
        """Input channels."""
        return _size(self.data.shape[1])

    @property
    def steps(self) -> int:
        """Dot products that the channels of one tap take."""
        return -(-self.channels // self.dot.width)

    @property
    def strip(self) -> int:
        """Columns of the image that are interleaved at once."""
        return min(16, max(1, self.dot.lanes))

    def padded(self) -> Tensor:
        """Move the data, with its padding, up to whole dot products and strips.

        Rows of all channels lie together: [images, height, channels, width].
        """
        tall, wide, dot, data = self.tall, self.wide, self.dot, self.data
        nothing = te.const(dot.moved, dot.left)
        whole = wide.size + wide.before + wide.after

        def element(n: Expr, h: Expr, c: Expr, w: Expr) -> Expr:
            row, column = h - tall.before, w - wide.before
            inside = [row >= 0, row < tall.size, column >= 0, column < wide.size]
            if self.channels % dot.width:
                inside.append(c < self.channels)
            return te.if_then_else(te.all(*inside), dot.taken(data[n, c, row, column]), nothing)

        shape = (
            data.shape[0],
            tall.size + tall.before + tall.after,
            self.steps * dot.width,
            -(-whole // self.strip) * self.strip,
        )
        return te.compute(shape, element, name="padded")

    def image(self, padded: Tensor) -> Tensor:
        """Lay the data out as [images, steps, height, width, part]."""
        images, height, _, width = padded.shape
        return te.compute(
            (images, self.steps, height, width, self.dot.width),
            lambda n, c, h, w, part: padded[n, h, c * self.dot.width + part, w],
            name="image",
        )

    def packed(self, weight: Tensor) -> Tensor:
        """Lay weights out as [channel vector, step, row, column, lane, part], zeros beyond."""
        dot, cout = self.dot, _size(weight.shape[0])

        def element(v: Expr, c: Expr, kh: Expr, kw: Expr, lane: Expr, part: Expr) -> Expr:
            o, channel = v * dot.lanes + lane, c * dot.width + part
            inside = te.all(o < cout, channel < self.channels)
            return te.if_then_else(inside, weight[o, channel, kh, kw], te.const(0, dot.right))

        taps = (self.tall.kernel, self.wide.kernel)
        shape = (-(-cout // dot.lanes), self.steps, *taps, dot.lanes, dot.width)
        return te.compute(shape, element, name="weight.panels")

    def moved(self, weight: Tensor) -> Tensor | None:
        """Give what the move of the image adds to each output channel; None without a move."""
        if not self.dot.moved:
            return None
        cout, cin, high, broad = weight.shape
        axes = [te.reduce_axis((0, extent), name="r") for extent in (cin, high, broad)]
        total = te.compute(
            (cout,),
            lambda o: te.sum(weight[(o, *axes)].astype(INT32), axis=axes),
            name="weight.sums",
        )
        return te.compute((cout,), lambda o: total[o] * self.dot.moved, name="weight.moved")

    def held(self, weight: Numpy, given: DType) -> tuple[Tensor, Tensor | None]:
        """Do the same to weights that the library holds."""
        dot, (cout, cin, high, broad) = self.dot, weight.shape
        of = right_dtype(given)
        exact = to_bfloat16(weight) if of.is_bfloat else weight.astype(str(of))
        vectors = -(-cout // dot.lanes)
        whole = np.zeros((vectors * dot.lanes, self.steps * dot.width, high, broad), exact.dtype)
        whole[:cout, :cin] = exact
        parts = whole.reshape(vectors, dot.lanes, self.steps, dot.width, high, broad)
        panels = np.ascontiguousarray(parts.transpose(0, 2, 4, 5, 1, 3))
        packed = te.constant(panels, name="weight.panels")
        if not dot.moved:
            return packed, None
        moved = exact.astype(np.int64).sum(axis=(1, 2, 3)) * dot.moved
        return packed, te.constant(moved.astype(np.int32), name="weight.moved")

    def sums(self, image: Tensor, packed: Tensor) -> Tensor:
        """Sum for each output: [images, channel vector, row, column, lane]."""
        vectors, steps, high, broad, lanes, width = packed.shape
        tall, wide, of = self.tall, self.wide, self.dot.sums
        axes = [
            te.reduce_axis((0, extent), name=name)
            for extent, name in ((steps, "c"), (high, "kh"), (broad, "kw"), (width, "part"))
        ]
        c, kh, kw, part = axes

        def element(n: Expr, v: Expr, h: Expr, w: Expr, lane: Expr) -> Expr:
            row = h * tall.stride + kh * tall.dilation
            column = w * wide.stride + kw * wide.dilation
            left: Expr = image[n, c, row, column, part].astype(of)
            right: Expr = packed[v, c, kh, kw, lane, part].astype(of)
            return te.sum(left * right, axis=axes)

        shape = (image.shape[0], vectors, tall.out, wide.out, lanes)
        return te.compute(shape, element, name="sums")

    def schedule(
        self, schedule: Schedule, out: Tensor, sums: Tensor, tile: PositionTile, *, parallel: bool
    ) -> None:
        """Write a tile's positions and vectors out, and sum its lanes by dot products."""
        kept, inner = sum_in_registers(schedule, out, sums, tile, parallel=parallel)
        n_in, v, h, w, lane = inner.op.axis
        *taps, part = inner.op.reduce_axis
        inner.reorder(*taps, n_in, h, w, v, lane, part)
        inner.tensorize(lane, dot_intrin(self.dot))
        if tile.lanes > 1:
            kept.vectorize(kept.op.axis[4])
        for stage in (kept, inner):
            for axis in stage.op.axis[1:4]:
                stage.unroll(axis)

    def schedule_image(
        self, schedule: Schedule, padded: Tensor, image: Tensor, *, parallel: bool
    ) -> None:
        """Interleave channels a strip at a time, each row while it is in the cache."""
        stage, rows = schedule[image], schedule[padded]
        n, c, h, w, part = stage.op.axis
        outer, inner = stage.split(w, factor=self.strip)
        stage.reorder(n, h, c, outer, inner, part)
        stage.tensorize(inner, interleave_intrin(self.dot.width, self.strip, image.dtype))
        rows.compute_at(stage, h)
        if self.dot.lanes > 1:
            rows.vectorize(rows.op.axis[3])
        if parallel:
            stage.parallel(h)
