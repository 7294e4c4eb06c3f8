"""Functions that move elements: the dtype is that of `x`, the elements stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.tag import INJECTIVE


def transpose(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the dimensions: dimension d of the output is `axes[d]` of `x`; None reverses them."""
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple(axes)
    # Negative axes count from the last one; others are left for the comparison to refuse.
    found = tuple(a + x.ndim if a < 0 else a for a in order)
    if sorted(found) != list(range(x.ndim)):
        raise ScheduleError(
            f"transpose: axes {order} do not name each of the {x.ndim} dimensions of {x.name} once"
        )

    def body(*i: Expr) -> Expr:
        return x(*(i[found.index(d)] for d in range(x.ndim)))

    return te.compute([x.shape[d] for d in found], body, name="transpose", tag=INJECTIVE)


def expand_dims(x: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """Insert `num_newaxis` dimensions of size 1 before dimension `axis` of `x`."""
    if not -x.ndim - 1 <= axis <= x.ndim or num_newaxis < 0:
        raise ScheduleError(
            f"expand_dims: cannot insert {num_newaxis} dimensions at axis {axis} of the"
            f" {x.ndim} dimensions of {x.name}"
        )
    at = axis if axis >= 0 else axis + x.ndim + 1
    ones = [te.const(1, "int64")] * num_newaxis
    shape = [*x.shape[:at], *ones, *x.shape[at:]]

    def body(*i: Expr) -> Expr:
        return x(*i[:at], *i[at + num_newaxis :])

    return te.compute(shape, body, name="expand_dims", tag=INJECTIVE)
