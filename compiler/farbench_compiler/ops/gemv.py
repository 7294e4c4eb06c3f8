"""Products with few rows or few columns: the large operand is read once, as it lies in memory.

Packing would cost as much as the product. With few columns the sums run along the rows of the left
operand, a vector of partial sums each, added up at the end; with few rows the output stays in a
near cache while the rows of the right operand pass, several at a time.
"""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_ROWS = 4  # rows of A under way: streams that the prefetchers follow
_SUMS = 16  # vectors of sums: enough to hide the latency of multiply-adds
_STEPS = 8  # rows of B for each pass over the output
_BLOCK_BYTES = 8 * 1024  # a stretch of the output that stays in a first-level cache


def few_columns(
    a: Tensor,
    b: Tensor,
    sizes: tuple[int, int, int],
    dtypes: tuple[DType, DType],
    target: Target,
    *,
    parallel: bool,
) -> tuple[Schedule, Tensor]:
    """Multiply A [m, k] by B [k, n] for a small n; sizes m, n, k; dtypes of sums and result."""
    (m, n, k), (wide, result) = sizes, dtypes
    lanes = lanes_of(target, wide)
    rows = max(1, min(_ROWS, m, _SUMS // n))
    vectors = max(1, min(_SUMS // (rows * n), -(-k // lanes)))
    columns = b if n == 1 else _columns(b, n, k, wide)
    step = te.reduce_axis((0, -(-k // (vectors * lanes))), name="step")

    def term(i: Expr, j: Expr, v: Expr, lane: Expr) -> Expr:
        at = (step * vectors + v) * lanes + lane
        right: Expr = columns[at, 0].astype(wide) if n == 1 else columns[j, at]
        product: Expr = a[i, at].astype(wide) * right
        if k % (vectors * lanes):
            product = te.if_then_else(at < k, product, te.const(0, wide))
        return te.sum(product, axis=step)

    parts = te.compute((m, n, vectors, lanes), term, name="parts")
    v = te.reduce_axis((0, vectors), name="v")
    folded = te.compute(
        (m, n, lanes), lambda i, j, at: te.sum(parts[i, j, v, at], axis=v), name="folded"
    )
    lane = te.reduce_axis((0, lanes), name="lane")
    total = te.compute((m, n), lambda i, j: te.sum(folded[i, j, lane], axis=lane), name="total")
    c = te.compute((m, n), lambda i, j: total[i, j].astype(result), name="C")
    schedule = te.create_schedule(c.op)
    _schedule_columns(schedule, (parts, folded, total, c), rows, lanes, parallel=parallel)
    return schedule, c


def _columns(b: Tensor, n: int, k: int, wide: DType) -> Tensor:
    """Lay B out column by column."""
    return te.compute((n, k), lambda j, at: b[at, j].astype(wide), name="B.columns")


def _schedule_columns(
    schedule: Schedule,
    stages: tuple[Tensor, Tensor, Tensor, Tensor],
    rows: int,
    lanes: int,
    *,
    parallel: bool,
) -> None:
    """Sum some rows at once, then fold vectors and lanes."""
    parts, folded, total, c = (schedule[stage] for stage in stages)
    i_out, i_in = c.split(c.op.axis[0], factor=rows)
    for axis in (i_in, c.op.axis[1]):
        c.unroll(axis)
    for stage in (parts, folded, total):
        stage.compute_at(c, i_out)
        stage.set_scope("local")
    parts.reorder(*parts.op.reduce_axis, *parts.op.axis)
    *outer, lane = parts.op.axis
    for axis in outer:
        parts.unroll(axis)
    folded.reorder(*folded.op.axis[:2], *folded.op.reduce_axis, folded.op.axis[2])
    for axis in (*folded.op.axis[:2], *folded.op.reduce_axis):
        folded.unroll(axis)
    # Lane by lane, all rows abreast: their sums do not wait for each other.
    total.reorder(*total.op.reduce_axis, *total.op.axis)
    for axis in (*total.op.reduce_axis, *total.op.axis):
        total.unroll(axis)
    if lanes > 1:
        parts.vectorize(lane)
        folded.vectorize(folded.op.axis[2])
    if parallel:
        c.parallel(i_out)


def few_rows(
    a: Tensor,
    b: Tensor,
    sizes: tuple[int, int, int],
    dtypes: tuple[DType, DType],
    target: Target,
    *,
    parallel: bool,
) -> tuple[Schedule, Tensor]:
    """Multiply A [m, k] by B [k, n] for a small m; sizes m, n, k; dtypes of sums and result."""
    (m, n, k), (wide, result) = sizes, dtypes
    step = te.reduce_axis((0, k), name="k")

    def element(i: Expr, j: Expr) -> Expr:
        product: Expr = a[i, step].astype(wide) * b[step, j].astype(wide)
        return te.sum(product, axis=step)

    same = wide == result
    total = te.compute((m, n), element, name="C" if same else "total")
    c = total if same else te.compute((m, n), lambda i, j: total[i, j].astype(result), name="C")
    schedule = te.create_schedule(c.op)
    lanes = lanes_of(target, wide)
    stage = schedule[total]
    i, j = stage.op.axis
    block = min(n, _BLOCK_BYTES // wide.nbytes)
    j_out, j_in = stage.split(j, factor=block)
    j_step, j_lane = stage.split(j_in, factor=min(lanes, n))
    k_out, k_in = stage.split(step, factor=min(_STEPS, k))
    stage.reorder(j_out, k_out, i, j_step, k_in, j_lane)
    stage.unroll(k_in)
    if lanes > 1:
        stage.vectorize(j_lane)
    if parallel:
        stage.parallel(j_out)
    if not same and lanes > 1:
        final = schedule[c]
        _, lane = final.split(final.op.axis[1], factor=min(lanes, n))
        final.vectorize(lane)
    return schedule, c
