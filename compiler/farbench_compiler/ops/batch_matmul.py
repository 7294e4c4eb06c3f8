"""Products of batches of matrices, and of a matrix by rows of weights (dense).

As in `matmul`, both operands are packed into panels and the output is computed in register tiles;
panels of the right operand belong to one product of the batch, or are packed when the library is
built where it holds the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import DType, sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.dots import dot_for
from farbench_compiler.ops.matmul_dots import dot_batch_matmul, dot_dense, right_dtype
from farbench_compiler.ops.tiles import Tile, register_tile, result_dtype
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


@dataclass(frozen=True)
class _Product:
    """Sizes of a batch of products, the dtypes of sums and result, and the register tile."""

    batch: int
    m: int
    n: int
    k: int
    sums: DType
    result: DType
    tile: Tile


def batch_matmul(
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    transposed: bool = False,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Multiply each A [batch, m, k] by its B [batch, k, n] into C [batch, m, n].

    Where `transposed`, B is [batch, n, k]. Dtypes are those of `matmul`; `parallel` shares the
    products among the threads.
    """
    chosen, given = Target.parse(target), dtypes.dtype(dtype)
    dot = dot_for(chosen, given)
    if dot is not None:
        return dot_batch_matmul(
            batch, m, n, k, given, dot, chosen, transposed=transposed, parallel=parallel
        )
    made = _product(batch, m, n, k, given, chosen)
    a = te.placeholder((batch, m, k), given, name="A")
    b = te.placeholder((batch, n, k) if transposed else (batch, k, n), right_dtype(given), name="B")
    columns = _panels(b, n, k, made.tile.columns, "B.panels", made.sums, rows=transposed)
    schedule, c = _multiply(made, a, columns, parallel=parallel)
    return schedule, [a, b, c]


def dense(
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    weight: npt.ArrayLike | None = None,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Multiply A [m, k] by the rows of weight [n, k] into C [m, n]; arguments A, weight, C.

    An array given for `weight` is held by the library, packed, and is no argument.
    """
    chosen, given = Target.parse(target), dtypes.dtype(dtype)
    dot = dot_for(chosen, given)
    if dot is not None and weight is None:
        return dot_dense(m, n, k, given, dot, chosen, parallel=parallel)
    made = _product(1, m, n, k, given, chosen)
    a = te.placeholder((m, k), given, name="A")
    left = te.compute((1, m, k), lambda b, i, step: a[i, step], name="A.batch")
    if weight is not None:
        columns = _held(np.asarray(weight), made, right_dtype(given))
        w = None
    else:
        w = te.placeholder((n, k), right_dtype(given), name="weight")
        rows = te.compute((1, n, k), lambda b, j, step: w[j, step], name="weight.batch")
        columns = _panels(rows, n, k, made.tile.columns, "B.panels", made.sums, rows=True)
    schedule, product = _multiply(made, left, columns, parallel=parallel, flat=True)
    schedule[left].compute_inline()
    if w is not None:
        schedule[rows].compute_inline()
    return schedule, [a, product] if w is None else [a, w, product]


def _product(batch: int, m: int, n: int, k: int, given: DType, target: Target) -> _Product:
    result = result_dtype(given)
    sums = sum_dtype(result)
    return _Product(batch, m, n, k, sums, result, register_tile(target, sums, m, n))


def _held(weight: npt.NDArray[np.generic], made: _Product, given: DType) -> Tensor:
    """Pack rows of weights into panels [1, panel, k, column] that the library holds."""
    if weight.shape != (made.n, made.k) or str(weight.dtype) != str(given):
        raise ScheduleError(
            f"dense: weight is {weight.dtype}{list(weight.shape)}, expected "
            f"{given}[{made.n}, {made.k}]"
        )
    width = made.tile.columns
    panels = -(-made.n // width)
    wide = np.zeros((panels * width, made.k), str(made.sums))
    wide[: made.n] = weight
    packed = wide.reshape(panels, width, made.k).transpose(0, 2, 1)
    return te.constant(packed[np.newaxis], name="weight")


def _panels(
    matrix: Tensor, length: int, depth: int, width: int, name: str, sums: DType, *, rows: bool
) -> Tensor:
    """Lay matrices out as [batch, panel, step, lane], zeros beyond their end; `rows` to lanes."""

    def element(b: Expr, panel: Expr, step: Expr, lane: Expr) -> Expr:
        at = panel * width + lane
        value: Expr = (matrix[b, at, step] if rows else matrix[b, step, at]).astype(sums)
        if length % width == 0:
            return value
        return te.if_then_else(at < length, value, te.const(0, sums))

    return te.compute((matrix.shape[0], -(-length // width), depth, width), element, name=name)


def _multiply(
    made: _Product, a: Tensor, columns: Tensor, *, parallel: bool, flat: bool = False
) -> tuple[Schedule, Tensor]:
    """Multiply batches by panels; the output has no batch where it is `flat`."""
    tile = made.tile
    rows = _panels(a, made.m, made.k, tile.rows, "A.panels", made.sums, rows=True)
    depth = te.reduce_axis((0, made.k), name="k")
    product = te.compute(
        (made.batch, made.m, -(-made.n // tile.lanes), tile.lanes),
        lambda b, i, v, lane: te.sum(
            rows[b, i // tile.rows, depth, i % tile.rows]
            * columns[b, v // tile.vectors, depth, v % tile.vectors * tile.lanes + lane],
            axis=depth,
        ),
        name="product",
    )

    def element(b: Expr, i: Expr, j: Expr) -> Expr:
        value: Expr = product[b, i, j // tile.lanes, j % tile.lanes]
        return value.astype(made.result)

    if flat:
        c = te.compute((made.m, made.n), lambda i, j: element(te.const(0, "int64"), i, j), name="C")
    else:
        c = te.compute((made.batch, made.m, made.n), element, name="C")
    schedule = te.create_schedule(c.op)
    _schedule(schedule, (rows, columns, product, c), tile, parallel=parallel)
    return schedule, c


def _schedule(
    schedule: Schedule,
    stages: tuple[Tensor, Tensor, Tensor, Tensor],
    tile: Tile,
    *,
    parallel: bool,
) -> None:
    """Sum register tiles; panels of the left operand are packed beside their row of tiles."""
    rows, columns, product, c = stages
    stage = schedule[c]
    *batch, i, j = stage.op.axis
    i_out, j_out, i_in, j_in = stage.tile(i, j, tile.rows, tile.columns)
    stage.unroll(i_in)
    stage.vectorize(j_in)
    inner = schedule[product]
    inner.compute_at(stage, j_out)
    inner.set_scope("local")
    around, i, vector, lane = inner.op.axis
    (step,) = inner.op.reduce_axis
    inner.reorder(around, step, i, vector, lane)
    inner.unroll(i)
    inner.unroll(vector)
    inner.vectorize(lane)
    schedule[rows].compute_at(stage, i_out)
    schedule[rows].unroll(schedule[rows].op.axis[3])
    packs = isinstance(columns.op, te.ComputeOp)
    if packs:
        _, panel, depth, lane = schedule[columns].op.axis
        schedule[columns].reorder(depth, panel, lane)
        schedule[columns].vectorize(lane)
        if batch:
            schedule[columns].compute_at(stage, batch[0])
    if parallel:
        stage.parallel(batch[0] if batch else i_out)
