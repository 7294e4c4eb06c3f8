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
    schedule, c = _multiply(_Product(m, n, k, dot, _tile(target, dot, m, n)), a, b, parallel)
    return schedule, [a, b, c]


def dot_batch_matmul(
    batch: int, m: int, n: int, k: int, left: DType, dot: Dot, target: Target, *,
    transposed: bool = False, parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:  # fmt: skip
    """Multiply each A [batch, m, k] by its B [batch, k, n], or [batch, n, k] where transposed."""
    a = te.placeholder((batch, m, k), left, name="A")
    right = (batch, n, k) if transposed else (batch, k, n)
    b = te.placeholder(right, right_dtype(left), name="B")
    made = _Product(m, n, k, dot, _tile(target, dot, m, n), batch, transposed)
    schedule, c = _multiply(made, a, b, parallel)
    return schedule, [a, b, c]


def dot_dense(
    m: int, n: int, k: int, left: DType, dot: Dot, target: Target, *, parallel: bool = False
) -> tuple[Schedule, list[Tensor]]:
    """Multiply A [m, k] by the rows of B [n, k] into C [m, n]."""
    a = te.placeholder((m, k), left, name="A")
    b = te.placeholder((n, k), right_dtype(left), name="B")
    made = _Product(m, n, k, dot, _tile(target, dot, m, n), transposed=True)
    schedule, c = _multiply(made, a, b, parallel)
    return schedule, [a, b, c]


def _multiply(made: _Product, a: Tensor, b: Tensor, parallel: bool) -> tuple[Schedule, Tensor]:
    rows, padded = made.rows(a), made.padded(b)
    columns = made.columns(b if padded is None else padded)
    product, moved = made.product(rows, columns), made.moved(b)
    lanes = made.dot.lanes

    def element(*at: Expr) -> Expr:
        *batch, i, j = at
        total: Expr = product[(*batch, i, j // lanes, j % lanes)]
        return total if moved is None else total - moved[(*batch, j)]

    c = te.compute((*made.lead, made.m, made.n), element, name="C")
    schedule = te.create_schedule(c.op)
    each = made.schedule_product(schedule, c, product, rows, parallel=parallel)
    made.schedule_columns(schedule, columns, padded, moved, parallel=parallel and not made.lead)
    if made.lead:
        for stage in (columns, padded, moved, *(() if moved is None else moved.op.input_tensors)):
            if stage is not None:
                schedule[stage].compute_at(schedule[c], each)
    return schedule, c


def _tile(target: Target, dot: Dot, m: int, n: int) -> Tile:
    tile = register_tile(target, dot.sums, m, n)
    if tile.lanes == dot.lanes:
        return tile
    # Vectors shorter than the widest: as many registers, so as many of them.
    return Tile(tile.rows, tile.vectors, dot.lanes)


@dataclass(frozen=True)
class _Product:
    """The stages of one product, or of one for each of a `batch`.

    `steps` is the reduction in dot products; transposed, B holds columns side by side.
    """

    m: int
    n: int
    k: int
    dot: Dot
    tile: Tile
    batch: int | None = None
    transposed: bool = False

    @property
    def lead(self) -> tuple[int, ...]:
        """The dimension of the batch, where there is one."""
        return () if self.batch is None else (self.batch,)

    @property
    def steps(self) -> int:
        """Dot products that one sum takes."""
        return -(-self.k // self.dot.width)

    @property
    def wide(self) -> int:
        """Columns, up to whole panels."""
        return -(-self.n // self.tile.columns) * self.tile.columns

    def rows(self, a: Tensor) -> Tensor:
        """Lay A out as panels [m / rows, steps, rows, width], zeros beyond its end."""
        height, width = self.tile.rows, self.dot.width

        def element(*index: Expr) -> Expr:
            *batch, panel, step, row, part = index
            i, at = panel * height + row, step * width + part
            inside = [i < self.m] if self.m % height else []
            inside += [at < self.k] if self.k % width else []
            value = self.dot.taken(a[(*batch, i, at)])
            zero = te.const(0, self.dot.left)
            return te.if_then_else(te.all(*inside), value, zero) if inside else value

        shape = (*self.lead, -(-self.m // height), self.steps, height, width)
        return te.compute(shape, element, "A.panels")

    def padded(self, b: Tensor) -> Tensor | None:
        """Copy B with zeros up to whole dot products and panels, where it is not so already."""
        depth = self.steps * self.dot.width
        if self.transposed or (depth == self.k and self.wide == self.n):
            return None

        def element(*index: Expr) -> Expr:
            *batch, at, j = index
            zero = te.const(0, b.dtype)
            return te.if_then_else(te.all(at < self.k, j < self.n), b[(*batch, at, j)], zero)

        return te.compute((*self.lead, depth, self.wide), element, name="B.padded")

    def columns(self, b: Tensor) -> Tensor:
        """Lay B out as panels [n / columns, steps, columns, width]."""
        across, width = self.tile.columns, self.dot.width

        def element(*index: Expr) -> Expr:
            *batch, panel, step, lane, part = index
            at, j = step * width + part, panel * across + lane
            if not self.transposed:
                value: Expr = b[(*batch, at, j)]
                return value
            inside = te.all(at < self.k, j < self.n)
            return te.if_then_else(inside, b[(*batch, j, at)], te.const(0, b.dtype))

        shape = (*self.lead, self.wide // across, self.steps, across, width)
        return te.compute(shape, element, name="B.panels")

    def product(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Sum up the dot products, in vectors of columns."""
        tile, sums = self.tile, self.dot.sums
        step = te.reduce_axis((0, self.steps), name="step")
        part = te.reduce_axis((0, self.dot.width), name="part")

        def element(*index: Expr) -> Expr:
            *batch, i, v, lane = index
            left: Expr = rows[(*batch, i // tile.rows, step, i % tile.rows, part)]
            column = v % tile.vectors * tile.lanes + lane
            right: Expr = columns[(*batch, v // tile.vectors, step, column, part)]
            return te.sum(left.astype(sums) * right.astype(sums), axis=[step, part])

        shape = (*self.lead, self.m, -(-self.n // tile.lanes), tile.lanes)
        return te.compute(shape, element, name="product")

    def moved(self, b: Tensor) -> Tensor | None:
        """Give what the move of the left operand adds to each column; None without a move."""
        if not self.dot.moved:
            return None
        k = te.reduce_axis((0, self.k), name="k")

        def total(*index: Expr) -> Expr:
            *batch, j = index
            value: Expr = b[(*batch, j, k)] if self.transposed else b[(*batch, k, j)]
            return te.sum(value.astype(self.dot.sums), axis=k)

        sums = te.compute((*self.lead, self.n), total, name="B.sums")
        return te.compute(sums.shape, lambda *at: sums(*at) * self.dot.moved, name="B.moved")

    def schedule_product(
        self, schedule: Schedule, c: Tensor, product: Tensor, rows: Tensor, *, parallel: bool
    ) -> te.IterVar:
        """Place rows and sums in the loops over C: row blocks, column panels, row tiles.

        Gives the outermost loop.
        """
        tile, dot = self.tile, self.dot
        block = max(1, _BLOCK_BYTES // (tile.rows * max(1, self.k) * dot.left.nbytes))
        stage = schedule[c]
        *batch, i, j = stage.op.axis
        i_out, j_out, i_in, j_in = stage.tile(i, j, tile.rows, tile.columns)
        i_block, i_tile = stage.split(i_out, factor=block)
        stage.reorder(*batch, i_block, j_out, i_tile, i_in, j_in)
        outermost = batch[0] if batch else i_block
        stage.unroll(i_in)
        stage.vectorize(j_in)
        inner = schedule[product]
        inner.compute_at(stage, i_tile)
        inner.set_scope("local")
        i, vector, lane = inner.op.axis[-3:]
        step, part = inner.op.reduce_axis
        inner.reorder(step, i, vector, lane, part)
        inner.unroll(i)
        inner.unroll(vector)
        inner.tensorize(lane, dot_intrin(dot))
        schedule[rows].compute_at(stage, i_block)
        schedule[rows].unroll(schedule[rows].op.axis[-2])
        schedule[rows].vectorize(schedule[rows].op.axis[-1])
        if parallel:
            stage.parallel(outermost)
        return outermost

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
        panel, step, lane, part = stage.op.axis[-4:]
        if self.transposed:
            stage.vectorize(part)
        else:
            vector, lane = stage.split(lane, factor=self.tile.lanes)
            stage.reorder(step, panel, vector, lane, part)
            stage.tensorize(lane, interleave_intrin(self.dot.width, self.tile.lanes, columns.dtype))
        if parallel:
            stage.parallel(panel if self.transposed else step)
        if padded is not None:
            schedule[padded].vectorize(schedule[padded].op.axis[-1])
        if moved is not None:
            sums = schedule[moved.op.input_tensors[0]]
            (k,) = sums.op.reduce_axis
            if not self.transposed:
                sums.reorder(k, sums.op.axis[-1])
                sums.vectorize(sums.op.axis[-1])
            schedule[moved].vectorize(schedule[moved].op.axis[-1])
