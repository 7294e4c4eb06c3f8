"""Softmax along one axis: the greatest element is taken off first, so that nothing overflows."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler import te
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import IterVar, Tensor
from farbench_compiler.topi.arguments import axis_of, refusal
from farbench_compiler.topi.tag import ELEMWISE


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Give exp(x) / sum(exp(x)) along an axis; halves are computed in float32."""
    on = _Along("nn.softmax", x, axis)
    top = on.greatest()
    power = te.compute(
        x.shape, lambda *i: te.exp(on.wide(i) - top(*on.rest(i))), name="T_softmax_exp",
        tag=ELEMWISE,
    )  # fmt: skip
    total = on.reduce("T_softmax_expsum", lambda i: te.sum(power(*i), axis=on.k))
    return te.compute(
        x.shape,
        lambda *i: (power(*i) / total(*on.rest(i))).astype(x.dtype),
        name="T_softmax_norm",
        tag="softmax_output",
        attrs={"axis": on.axis},
    )


# Every exponential here is a polynomial in vectors, so there is no faster one to choose.
fast_softmax = softmax


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Give x - log(sum(exp(x))) along an axis; halves are computed in float32."""
    on = _Along("nn.log_softmax", x, axis)
    top = on.greatest()
    total = on.reduce(
        "T_softmax_expsum", lambda i: te.sum(te.exp(on.wide(i) - top(*on.rest(i))), axis=on.k)
    )
    return te.compute(
        x.shape,
        lambda *i: (on.wide(i) - top(*on.rest(i)) - te.log(total(*on.rest(i)))).astype(x.dtype),
        name="T_log_softmax",
        tag="log_softmax_output",
        attrs={"axis": on.axis},
    )


class _Along:
    """Reductions of a tensor along one axis."""

    def __init__(self, op: str, x: Tensor, axis: int) -> None:
        if not x.dtype.is_float:
            raise refusal(op, f"{x.name} is {x.dtype}, not a float; cast it first")
        self.x, self.axis = x, axis_of(op, x, axis)
        self.k: IterVar = te.reduce_axis((0, x.shape[self.axis]), name="k")

    def wide(self, at: tuple[Expr, ...]) -> Expr:
        """Read an element in the dtype that is computed in."""
        return self.x(*at).astype(sum_dtype(self.x.dtype))

    def rest(self, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Leave the axis out."""
        return at[: self.axis] + at[self.axis + 1 :]

    def reduce(self, name: str, of: Callable[[tuple[Expr, ...]], Expr]) -> Tensor:
        """Make the stage that reduces `of(place)` along the axis, on an axis `k` of its own."""
        self.k = te.reduce_axis((0, self.x.shape[self.axis]), name="k")
        shape = self.rest(self.x.shape)

        def element(*i: Expr) -> Expr:
            return of((*i[: self.axis], self.k, *i[self.axis :]))

        return te.compute(shape, element, name=name)

    def greatest(self) -> Tensor:
        """Give the greatest element along the axis."""
        return self.reduce("T_softmax_maxelem", lambda i: te.max(self.wide(i), axis=self.k))
