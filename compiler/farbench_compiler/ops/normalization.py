"""Normalization of rows."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ops.rows import Rows
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


def layer_norm(
    rows: int,
    columns: int,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    epsilon: float = 1e-5,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Give (x - mean) / sqrt(variance + epsilon) * gamma + beta along each row of a matrix.

    Arguments A [rows, columns], gamma and beta [columns], C [rows, columns]; the variance is that
    of the row itself (divided by `columns`). `parallel` shares the rows among the threads.
    """
    wide = sum_dtype(dtypes.dtype(dtype))
    a = te.placeholder((rows, columns), dtype, name="A")
    gamma, beta = (te.placeholder((columns,), dtype, name=name) for name in ("gamma", "beta"))
    on = Rows(rows, columns, wide, Target.parse(target))
    total = on.reduce("total", te.sum, lambda x, y: x + y, lambda i, j: a[i, j].astype(wide))
    mean = on.number("mean", lambda i: total[i] * (1.0 / columns))
    away = on.row("away", lambda i, j: a[i, j].astype(wide) - mean[i])
    squares = on.reduce("squares", te.sum, lambda x, y: x + y, lambda i, j: away[i, j] * away[i, j])
    scale = on.number("scale", lambda i: te.rsqrt(squares[i] * (1.0 / columns) + epsilon))
    c = te.compute(
        (rows, columns),
        lambda i, j: (away[i, j] * scale[i] * gamma[j].astype(wide) + beta[j].astype(wide)).astype(
            dtype
        ),
        name="C",
    )
    return on.schedule(a, c, parallel=parallel), [a, gamma, beta, c]
