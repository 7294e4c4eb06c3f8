"""What operators are given: ranks, sizes that must agree, numbers for each axis."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, ExprLike, IntImm
from farbench_compiler.te import Tensor

Numbers = int | Sequence[int]


def refusal(op: str, why: str) -> ScheduleError:
    """Make the error that names an operator, such as `nn.conv2d`, and what is wrong."""
    return ScheduleError(f"topi.{op}: {why}")


def check_rank(op: str, x: Tensor, ndim: int) -> None:
    """Refuse a tensor that has not `ndim` dimensions."""
    if x.ndim != ndim:
        raise refusal(op, f"{x.name} has {x.ndim} dimensions, expected {ndim}")


def check_same(op: str, what: str, a: ExprLike, b: ExprLike) -> None:
    """Refuse two sizes that are known and differ; symbolic ones are taken to be equal."""
    x, y = known(a), known(b)
    if x is not None and y is not None and x != y:
        raise refusal(op, f"{what} must agree, got {x} and {y}")


def check_divides(op: str, what: str, size: Expr, by: int) -> None:
    """Refuse a known size that `by` does not divide."""
    if by < 1 or (known(size) or 0) % by:
        raise refusal(op, f"{by} does not divide the {known(size)} {what}")


def axis_of(op: str, x: Tensor, axis: int) -> int:
    """Count an axis from the front; refuse one that `x` has not."""
    if not -x.ndim <= axis < x.ndim:
        raise refusal(op, f"axis {axis} is outside of the {x.ndim} dimensions of {x.name}")
    return axis % x.ndim


def known(size: ExprLike) -> int | None:
    """Give the value of a size that is constant."""
    if isinstance(size, IntImm):
        return size.value
    return size if isinstance(size, int) else None


def per_axis(op: str, what: str, given: Numbers, count: int, least: int = 1) -> tuple[int, ...]:
    """Give one number for each of `count` axes: one counts for all; refuse any below `least`."""
    if isinstance(given, (int, IntImm)):
        given = [given] * count
    numbers = [known(n) for n in given]
    found = tuple(n for n in numbers if n is not None and n >= least)
    if len(numbers) != count or len(found) != count:
        raise refusal(op, f"{what} is {numbers}; give one integer from {least} on, or {count}")
    return found
