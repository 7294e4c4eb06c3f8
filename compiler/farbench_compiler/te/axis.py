"""Axes: the loop variables of a computation, over its data or over a reduction."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, SupportsIndex

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.dtypes import INT64
from farbench_compiler.ir.expr import Expr, ExprLike, IntImm, Var, as_expr, cast

AxisKind = Literal["data", "reduce", "scan"]


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """The integers begin, ..., begin + extent - 1."""

    begin: Expr
    extent: Expr

    @property
    def min(self) -> Expr:
        """The first of them."""
        return self.begin


@dataclass(frozen=True, slots=True, eq=False)
class IterVar(Var):
    """A loop variable; `dom` is None where a schedule made it, since its extent follows later."""

    dom: Range | None = None
    kind: AxisKind = "data"
    thread_tag: str = ""

    @property
    def var(self) -> Var:
        """The variable that stands for the axis in expressions: the axis itself."""
        return self

    @property
    def domain(self) -> Range:
        """The range of an axis that a computation declared."""
        if self.dom is None:
            raise ScheduleError(f"axis {self.name} was made by a schedule and has no range yet")
        return self.dom

    def __repr__(self) -> str:
        return f"IterVar({self.name}, {self.kind})"


def as_index(value: ExprLike) -> Expr:
    """Turn a value into an index or a size (int64); ScheduleError for a float."""
    x = as_expr(value)
    if x.dtype.is_float:
        raise ScheduleError(f"an index or a size must be an integer, got {x.dtype}; use astype")
    return cast(INT64, x)


def whole_number(value: object) -> int | None:
    """Read an integer of Python's, numpy's or an expression's; None for anything else."""
    if isinstance(value, IntImm):
        return value.value
    try:
        return operator.index(value) if isinstance(value, SupportsIndex) else None
    except TypeError:  # an array of several
        return None


def thread_axis(
    dom: tuple[ExprLike, ExprLike] | Range | ExprLike | str | None = None,
    tag: str = "",
    name: str = "",
) -> IterVar:
    """Name a thread of a GPU, such as `threadIdx.x`; stages refuse it, since a CPU has none."""
    span: Range | None = None
    if isinstance(dom, str):  # te.thread_axis("threadIdx.x")
        tag = dom
    elif isinstance(dom, tuple):
        span = Range(as_index(dom[0]), as_index(dom[1]) - as_index(dom[0]))
    elif dom is not None:
        span = dom if isinstance(dom, Range) else Range(as_index(0), as_index(dom))
    return IterVar(name or tag or "thread", dom=span, thread_tag=tag)


def reduce_axis(dom: tuple[ExprLike, ExprLike] | Range, name: str = "rv") -> IterVar:
    """Make an axis to reduce over, from `dom[0]` up to but not including `dom[1]`."""
    if isinstance(dom, Range):
        return IterVar(name, dom=dom, kind="reduce")
    if not isinstance(dom, (tuple, list)) or len(dom) != 2:
        raise ScheduleError(f"reduce_axis {name}: the domain is {dom!r}; give (begin, end)")
    begin, end = as_index(dom[0]), as_index(dom[1])
    return IterVar(name, dom=Range(begin, end - begin), kind="reduce")
