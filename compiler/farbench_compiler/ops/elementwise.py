"""Elementwise operators."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir import dtypes
from farbench_compiler.ops.streaming import write_past_caches
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_UNROLL = 4


def schedule_row(c: Tensor, n: int, width: int, *, parallel: bool) -> Schedule:
    """Compute n elements of one dimension in stretches of `width`, vectorised."""
    schedule = te.create_schedule(c.op)
    outer, inner = schedule[c].split(c.op.axis[0], factor=max(1, min(n, width)))
    schedule[c].vectorize(inner)
    write_past_caches(schedule[c], n * c.dtype.nbytes)
    if parallel:
        schedule[c].parallel(outer)
    return schedule


def vector_add(
    n: int, dtype: str = "float32", target: str | Target = "native", *, parallel: bool = False
) -> tuple[Schedule, list[Tensor]]:
    """Add two vectors of n elements; arguments A, B, C, each of shape [n].

    `parallel` shares the elements among the threads.
    """
    lanes = lanes_of(Target.parse(target), dtypes.dtype(dtype))
    a = te.placeholder((n,), dtype, name="A")
    b = te.placeholder((n,), dtype, name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    return schedule_row(c, n, lanes * _UNROLL, parallel=parallel), [a, b, c]
