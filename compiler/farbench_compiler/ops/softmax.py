"""Softmax over the last dimension of a matrix, a row at a time in the first cache."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.rows import Rows
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor


def _larger(x: Expr, y: Expr) -> Expr:
    return te.select(x > y, x, y)


# Cheaper than te.max, which keeps NaN: here NaN comes back through the sum.
_LARGER = te.comm_reducer(_larger, te.min_value, name="larger")


def softmax(
    rows: int,
    columns: int,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Give exp(x) / sum(exp(x)) along each row; arguments A and C, both [rows, columns].

    The largest number of a row is taken off first, so that nothing overflows; `parallel` shares
    the rows among the threads.
    """
    return _softmax(rows, columns, dtype, target, parallel, logarithm=False)


def log_softmax(
    rows: int,
    columns: int,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Give x - log(sum(exp(x))) along each row; arguments A and C, both [rows, columns]."""
    return _softmax(rows, columns, dtype, target, parallel, logarithm=True)


def _softmax(
    rows: int, columns: int, dtype: str, target: str | Target, parallel: bool, *, logarithm: bool
) -> tuple[Schedule, list[Tensor]]:
    wide = sum_dtype(dtypes.dtype(dtype))
    a = te.placeholder((rows, columns), dtype, name="A")
    on = Rows(rows, columns, wide, Target.parse(target))
    top = on.reduce("top", _LARGER, _larger, lambda i, j: a[i, j].astype(wide))
    power = on.row("power", lambda i, j: te.exp(a[i, j].astype(wide) - top[i]))
    total = on.reduce("total", te.sum, lambda x, y: x + y, lambda i, j: power[i, j])
    if logarithm:
        shift = on.number("shift", lambda i: top[i] + te.log(total[i]))
        c = te.compute(
            (rows, columns), lambda i, j: (a[i, j].astype(wide) - shift[i]).astype(dtype), name="C"
        )
    else:
        scale = on.number("scale", lambda i: 1.0 / total[i])
        c = te.compute(
            (rows, columns), lambda i, j: (power[i, j] * scale[i]).astype(dtype), name="C"
        )
    return on.schedule(a, c, parallel=parallel), [a, c]
