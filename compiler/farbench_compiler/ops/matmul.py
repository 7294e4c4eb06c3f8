"""Matrix product: both operands packed into panels, the output in register tiles.

Panels make every load of the inner loop the next one in memory, whatever the row lengths (rows of
4 KiB would fall into the same few sets of the cache), and are padded to whole vectors. A block of
the left operand's panels stays in a second-level cache while the right one's pass.
"""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import DType, sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.dots import dot_for
from farbench_compiler.ops.gemv import few_columns, few_rows
from farbench_compiler.ops.matmul_dots import dot_matmul, right_dtype
from farbench_compiler.ops.tiles import Tile, reaches_far, register_tile, result_dtype
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_BLOCK_BYTES = 256 * 1024
_FEW = 8  # rows or columns that are not worth any packing
_NARROW = 160  # columns that are not worth packing the rows
# Rows this far apart fall into the same few sets of a first-level cache of so many ways.
_SAME_SETS, _WAYS = 1024, 8


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Multiply A [m, k] by B [k, n] into C [m, n]; arguments A, B, C, row-major.

    Halves are summed in float32; bfloat16 also gives float32. int8 gives int32, and uint8 as well,
    whose B is int8. `parallel` shares blocks of rows among the threads.
    """
    chosen = Target.parse(target)
    given, result = dtypes.dtype(dtype), result_dtype(dtypes.dtype(dtype))
    dot = dot_for(chosen, given)
    if dot is not None:
        return dot_matmul(m, n, k, given, dot, chosen, parallel=parallel)
    sums = sum_dtype(result)
    tile = register_tile(chosen, sums, m, n)
    a = te.placeholder((m, k), given, name="A")
    b = te.placeholder((k, n), right_dtype(given), name="B")
    if k > 1 and 0 < min(m, n) <= _FEW:
        few = few_columns if n <= _FEW else few_rows
        schedule, c = few(a, b, (m, n, k), (sums, result), chosen, parallel=parallel)
        return schedule, [a, b, c]
    # Rows are packed one element at a time, which only a wide product makes up for.
    direct = n <= _NARROW and reaches_far(chosen) and sums == given
    if direct and k * given.nbytes % _SAME_SETS == 0:
        tile = Tile(min(tile.rows, _WAYS - 2), tile.vectors, tile.lanes)
    rows = None if direct else _panels(a, m, k, tile.rows, "A.panels", sums, transposed=True)
    columns = _panels(b, n, k, tile.columns, "B.panels", sums, transposed=False)
    product = _product(a, rows, columns, n, tile)
    c = te.compute(
        (m, n),
        lambda i, j: product[i, j // tile.lanes, j % tile.lanes].astype(result),
        name="C",
    )
    schedule = te.create_schedule(c.op)
    block = max(1, _BLOCK_BYTES // (tile.rows * max(1, k) * sums.nbytes))
    _schedule(schedule, (rows, columns, product, c), tile, block, parallel=parallel)
    return schedule, [a, b, c]


def _panels(
    matrix: Tensor,
    length: int,
    depth: int,
    width: int,
    name: str,
    sums: DType,
    *,
    transposed: bool,
) -> Tensor:
    """Lay a matrix out as panels [length / width, depth, width], zeros beyond its end."""

    def element(panel: Expr, step: Expr, lane: Expr) -> Expr:
        at = panel * width + lane
        value: Expr = matrix[at, step] if transposed else matrix[step, at]
        value = value.astype(sums)
        if length % width == 0:
            return value
        return te.if_then_else(at < length, value, te.const(0, value.dtype))

    return te.compute((-(-length // width), depth, width), element, name=name)


def _product(a: Tensor, rows: Tensor | None, columns: Tensor, n: int, tile: Tile) -> Tensor:
    """Multiply A, or the panels of its rows, by panels of columns: [row, vector, lane]."""
    m, k = a.shape
    depth = te.reduce_axis((0, k), name="k")

    def element(i: Expr, v: Expr, lane: Expr) -> Expr:
        left = a[i, depth] if rows is None else rows[i // tile.rows, depth, i % tile.rows]
        right = columns[v // tile.vectors, depth, v % tile.vectors * tile.lanes + lane]
        term: Expr = left * right
        return te.sum(term, axis=depth)

    return te.compute((m, -(-n // tile.lanes), tile.lanes), element, name="product")


def _schedule(
    schedule: Schedule,
    stages: tuple[Tensor | None, Tensor, Tensor, Tensor],
    tile: Tile,
    block: int,
    *,
    parallel: bool,
) -> None:
    """Place panels and sums in the loops over C: row blocks, column panels, row tiles."""
    rows, columns, product, c = stages
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
    (step,) = inner.op.reduce_axis
    inner.reorder(step, i, vector, lane)
    inner.unroll(i)
    inner.unroll(vector)
    inner.vectorize(lane)
    if rows is not None:
        schedule[rows].compute_at(stage, i_block)
        schedule[rows].unroll(schedule[rows].op.axis[2])
    panel, depth, lane = schedule[columns].op.axis
    schedule[columns].reorder(depth, panel, lane)
    schedule[columns].vectorize(lane)
    if parallel:
        stage.parallel(i_block)
        schedule[columns].parallel(depth)
