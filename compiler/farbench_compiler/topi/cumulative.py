"""Sums and products of all elements up to each, along one axis, by a scan."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, const
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import axis_of
from farbench_compiler.topi.shaping import reshape
from farbench_compiler.topi.tag import INJECTIVE


def cumsum(
    x: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """Add up along an axis (all elements, if None); `exclusive` leaves each itself out."""
    return _cumulate(x, axis, dtype, bool(exclusive), lambda a, b: a + b, 0, "cumsum")


def cumprod(
    x: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """Multiply up along an axis, as `cumsum` adds."""
    return _cumulate(x, axis, dtype, bool(exclusive), lambda a, b: a * b, 1, "cumprod")


def _cumulate(
    x: Tensor, axis: int | None, dtype: str | None, exclusive: bool,
    join: Callable[[Expr, Expr], Expr], neutral: int, name: str,
) -> Tensor:  # fmt: skip
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    along = axis_of(name, x, axis)
    of = str(x.dtype) if dtype is None else dtype
    rest = [d for d in range(x.ndim) if d != along]

    def value(t: Expr, others: tuple[Expr, ...]) -> Expr:
        at = dict(zip(rest, others, strict=True))
        return x(*(t if d == along else at[d] for d in range(x.ndim))).astype(of)

    shape = [x.shape[along], *(x.shape[d] for d in rest)]
    state = te.placeholder(shape, of, name=f"{name}_state")
    start = te.const(neutral, of)
    init = te.compute(
        [const(1), *shape[1:]],
        lambda t, *i: start if exclusive else value(t, i), name=f"{name}_init",
    )  # fmt: skip
    update = te.compute(
        shape,
        lambda t, *i: join(state(t - 1, *i), value(t - 1 if exclusive else t, i)),
        name=f"{name}_update",
    )
    total = te.scan(init, update, state, inputs=[x], name=f"{name}_scan")
    if along == 0:
        return total

    def body(*i: Expr) -> Expr:
        return total(i[along], *(i[d] for d in rest))

    return te.compute(x.shape, body, name=name, tag=INJECTIVE)
