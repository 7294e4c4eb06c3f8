"""Matrix product of narrow numbers by dot products: int8 into int32, bfloat16 into float32.

Both operands are packed as for any product, but with as many steps of the reduction side by side
as a dot product takes in: a vector of the right one's panels holds them for all its columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler import te
from farbench_compiler.ir.dtypes import DType, dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.dots import Dot, dot_intrin, interleave_intrin
from farbench_compiler.ops.tiles import Tile, register_tile
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_BLOCK_BYTES = 256 * 1024


def right_dtype(left: DType) -> DType:
    """Give the dtype of the right operand: bytes are multiplied by signed ones."""
    return dtype("int8") if left == dtype("uint8") else left


def dot_matmul(
    m: int, n: int, k: int, left: DType, dot: Dot, target: Target, *, parallel: bool
) -> tuple[Schedule, list[Tensor]]:
    """Multiply A [m, k] by B [k, n] into C [m, n] of the dot product's sums."""
    a = te.placeholder((m, k), left, name="A")
    b = te.placeholder((k, n), right_dtype(left), name="B")
    made = _Product(m, n, k, dot, _tile(target, dot, m, n))
    rows, padded = made.rows(a), made.padded(b)
    columns = made.columns(b if padded is None else padded)
    product, moved = made.product(rows, columns), made.moved(b)
    lanes = dot.lanes

    def element(i: Expr, j: Expr) -> Expr:
        total: Expr = product[i, j // lanes, j % lanes]
        return total if moved is None else total - moved[j]

    c = te.compute((m, n), element, name="C")
    schedule = te.create_schedule(c.op)
    made.schedule_product(schedule, c, product, rows, parallel=parallel)
    made.schedule_columns(schedule, columns, padded, moved, parallel=parallel)
    return schedule, [a, b, c]


def _tile(target: Target, dot: Dot, m: int, n: int) -> Tile:
    tile = register_tile(target, dot.sums, m, n)
    if tile.lanes == dot.lanes:
        return tile
    # Vectors shorter than the widest: as many registers, so as many of them.
    return Tile(tile.rows, tile.vectors, dot.lanes)


@dataclass(frozen=True)
class _Product:
    """The stages of one product; `steps` is the reduction in dot products."""

    m: int
    n: int
    k: int
    dot: Dot
    tile: Tile

    @property
    def steps(self) -> int:
        return -(-self.k // self.dot.width)

    @property
    def wide(self) -> int:
        """Columns, up to whole panels."""
        return -(-self.n // self.tile.columns) * self.tile.columns

    def rows(self, a: Tensor) -> Tensor:
        """Lay A out as panels [m / rows, steps, rows, width], zeros beyond its end."""
        height, width = self.tile.rows, self.dot.width

        def element(panel: Expr, step: Expr, row: Expr, part: Expr) -> Expr:
            i, at = panel * height + row, step * width + part
            inside = [i < self.m] if self.m % height else []
            inside += [at < self.k] if self.k % width else []
            value = self.dot.taken(a[i, at])
            zero = te.const(0, self.dot.left)
            return te.if_then_else(te.all(*inside), value, zero) if inside else value

        return te.compute((-(-self.m // height), self.steps, height, width), element, "A.panels")

    def padded(self, b: Tensor) -> Tensor | None:
        """Copy B with zeros up to whole dot products and panels, where it is not so already."""
        depth = self.steps * self.dot.width
        if depth == self.k and self.wide == self.n:
            return None

        def element(at: Expr, j: Expr) -> Expr:
            zero = te.const(0, b.dtype)
            return te.if_then_else(te.all(at < self.k, j < self.n), b[at, j], zero)

        return te.compute((depth, self.wide), element, name="B.padded")

    def columns(self, b: Tensor) -> Tensor:
        """Lay B out as panels [n / columns, steps, columns, width]."""
        across, width = self.tile.columns, self.dot.width
        return te.compute(
            (self.wide // across, self.steps, across, width),
            lambda panel, step, lane, part: b[step * width + part, panel * across + lane],
            name="B.panels",
        )

    def product(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Sum up the dot products, in vectors of columns."""
        tile, sums = self.tile, self.dot.sums
        step = te.reduce_axis((0, self.steps), name="step")
        part = te.reduce_axis((0, self.dot.width), name="part")
        return te.compute(
            (self.m, -(-self.n // tile.lanes), tile.lanes),
            lambda i, v, lane: te.sum(
                rows[i // tile.rows, step, i % tile.rows, part].astype(sums)
                * columns[
                    v // tile.vectors, step, v % tile.vectors * tile.lanes + lane, part
                ].astype(sums),
                axis=[step, part],
            ),
            name="product",
        )

    def moved(self, b: Tensor) -> Tensor | None:
        """Give what the move of the left operand adds to each column; None without a move."""
        if not self.dot.moved:
            return None
        k = te.reduce_axis((0, self.k), name="k")
        sums = te.compute(
            (self.n,), lambda j: te.sum(b[k, j].astype(self.dot.sums), axis=k), name="B.sums"
        )
        return te.compute((self.n,), lambda j: sums[j] * self.dot.moved, name="B.moved")

    def schedule_product(
        self, schedule: Schedule, c: Tensor, product: Tensor, rows: Tensor, *, parallel: bool
    ) -> None:
        """Place rows and sums in the loops over C: row blocks, column panels, row tiles."""
        tile, dot = self.tile, self.dot
        block = max(1, _BLOCK_BYTES // (tile.rows * max(1, self.k) * dot.left.nbytes))
        stage = schedule[c]
        i, j = stage.op.axis
        i_out, j_out, i_in, j_in = stage.tile(i, j, tile.rows, tile.columns)
        i_block, i_tile = stage.split(i_out, factor=block)
        stage.reorder(i_block, j_out, i_tile, i_in, j_in)
        stage.unroll(i_in)
        stage.vectorize(j_in)
        inner = schedule[product]
        inner.compute_at(stage, i_tile)
        inner.set_scope("local")
        i, vector, lane = inner.op.axis
        step, part = inner.op.reduce_axis
        inner.reorder(step, i, vector, lane, part)
        inner.unroll(i)
        inner.unroll(vector)
        inner.tensorize(lane, dot_intrin(dot))
        schedule[rows].compute_at(stage, i_block)
        schedule[rows].unroll(schedule[rows].op.axis[2])
        schedule[rows].vectorize(schedule[rows].op.axis[3])
        if parallel:
            stage.parallel(i_block)

    def schedule_columns(
        self,
        schedule: Schedule,
        columns: Tensor,
        padded: Tensor | None,
        moved: Tensor | None,
        *,
        parallel: bool,
    ) -> None:
        """Interleave whole vectors of rows; sum columns up a vector at a time."""
        stage = schedule[columns]
        panel, step, lane, part = stage.op.axis
        vector, lane = stage.split(lane, factor=self.tile.lanes)
        stage.reorder(step, panel, vector, lane, part)
        stage.tensorize(lane, interleave_intrin(self.dot.width, self.tile.lanes, columns.dtype))
        if parallel:
            stage.parallel(step)
        if padded is not None:
            schedule[padded].vectorize(schedule[padded].op.axis[1])
        if moved is not None:
            sums = schedule[moved.op.input_tensors[0]]
            (k,) = sums.op.reduce_axis
            sums.reorder(k, sums.op.axis[0])
            sums.vectorize(sums.op.axis[0])
            schedule[moved].vectorize(schedule[moved].op.axis[0])
