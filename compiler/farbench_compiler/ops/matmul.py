"""Matrix product: both operands packed into panels, the output in register tiles.

Panels make every load of the inner loop the next one in memory, whatever the row lengths (rows of
4 KiB would fall into the same few sets of the cache).
"""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.tiles import register_tile
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


def matmul(
    m: int, n: int, k: int, dtype: str = "float32", target: str | Target = "native"
) -> tuple[Schedule, list[Tensor]]:
    """Multiply A [m, k] by B [k, n] into C [m, n]; arguments A, B, C, row-major."""
    tile = register_tile(Target.parse(target), dtype, m, n)
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B")
    rows = _panels(a, m, k, tile.rows, "A.panels", transposed=True)
    columns = _panels(b, n, k, tile.lanes, "B.panels", transposed=False)
    depth = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            rows[i // tile.rows, depth, i % tile.rows]
            * columns[j // tile.lanes, depth, j % tile.lanes],
            axis=depth,
        ),
        name="C",
    )
    schedule = te.create_schedule(c.op)
    sums = schedule.cache_write(c, "local")
    stage = schedule[c]
    i_out, j_out, i_in, j_in = stage.tile(*stage.op.axis, tile.rows, tile.lanes)
    stage.unroll(i_in)
    stage.vectorize(j_in)
    inner = schedule[sums]
    inner.compute_at(stage, j_out)
    i, j = inner.op.axis
    (step,) = inner.op.reduce_axis
    inner.reorder(step, i, j)
    inner.unroll(i)
    inner.vectorize(j)
    schedule[rows].compute_at(stage, i_out)
    schedule[rows].unroll(schedule[rows].op.axis[2])
    schedule[columns].vectorize(schedule[columns].op.axis[2])
    return schedule, [a, b, c]


def _panels(
    matrix: Tensor, length: int, depth: int, width: int, name: str, *, transposed: bool
) -> Tensor:
    """Lay a matrix out as panels [length / width, depth, width], zeros beyond its end."""

    def element(panel: Expr, step: Expr, lane: Expr) -> Expr:
        at = panel * width + lane
        value = matrix[at, step] if transposed else matrix[step, at]
        if length % width == 0:
            return value
        return te.if_then_else(at < length, value, te.const(0, matrix.dtype))

    return te.compute((-(-length // width), depth, width), element, name=name)
