"""Reductions: a combiner of two values, its neutral element, and the axes it runs over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import expr as ir
from farbench_compiler.ir.dtypes import BOOL, INT32, DType, dtype, int_range
from farbench_compiler.ir.expr import Expr, ExprLike, Var, as_expr
from farbench_compiler.ir.visit import Extension
from farbench_compiler.te.axis import IterVar

Axes = IterVar | Sequence[IterVar]
Values = ExprLike | Sequence[ExprLike]
Combine = Callable[..., Values]


@dataclass(frozen=True, slots=True, eq=False)
class Combiner:
    """Combine values `lhs` so far with one more, `rhs`, into `result`; start from `identity`."""

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Extension):
    """Value `index` of `sources` combined over `axis` where `condition`, beginning with `init`."""

    combiner: Combiner
    sources: tuple[Expr, ...]
    axis: tuple[IterVar, ...]
    condition: Expr
    init: tuple[Expr, ...]
    index: int
    dtype: DType

    def children(self) -> tuple[Expr, ...]:
        """Give the sources, the condition and the initial values."""
        return (*self.sources, self.condition, *self.init)

    def rebuild(self, children: tuple[Expr, ...]) -> Reduce:
        """Make the same reduction over other children."""
        n = len(self.sources)
        return Reduce(
            self.combiner,
            children[:n],
            self.axis,
            children[n],
            children[n + 1 :],
            self.index,
            self.dtype,
        )

    def __repr__(self) -> str:
        # Whoever compares trees tells reductions apart by this text.
        axes = " ".join(f"{iv.name}#{iv.uid}" for iv in self.axis)
        return f"Reduce({self.combiner.name}, {axes}, {self.index})"


@dataclass(frozen=True)
class Reducer:
    """A commutative reduction to call: `r(value, axis=k)`, or `r(a, b, ...)` on plain values."""

    name: str
    combine: Combine
    identity: Callable[..., Values]
    widen_bool: bool = False

    @overload
    def __call__(
        self,
        value: ExprLike,
        *more: Axes | ExprLike,
        axis: Axes | None = None,
        where: ExprLike | None = None,
        init: ExprLike | None = None,
    ) -> Expr: ...
    @overload
    def __call__(
        self,
        value: Sequence[ExprLike],
        *more: Axes,
        axis: Axes | None = None,
        where: ExprLike | None = None,
        init: Sequence[ExprLike] | None = None,
    ) -> tuple[Expr, ...]: ...

    def __call__(
        self,
        value: Values,
        *more: Axes | ExprLike,
        axis: Axes | None = None,
        where: ExprLike | None = None,
        init: Values | None = None,
    ) -> Expr | tuple[Expr, ...]:
        """Reduce over axes, where a condition holds; given further values, combine those."""
        if axis is None and not more:
            raise ScheduleError(f"{self.name}: give axis=, a te.reduce_axis or several")
        axes = _as_axes(axis if axis is not None else more[0])
        if axes is None and axis is None and not isinstance(more[0], (tuple, list)):
            if where is not None or init is not None:
                raise ScheduleError(f"{self.name}: axis must be a te.reduce_axis or several")
            return self._fold((*_tuple(value), *more))
        if axes is None:
            raise ScheduleError(
                f"{self.name}: axis is {axis if axis is not None else more[0]!r}; give a "
                f"te.reduce_axis or several, or topi.{self.name} for the axes of a whole tensor"
            )
        if len(more) > (axis is None):
            raise ScheduleError(f"{self.name}: give several axes as a list, where and init by name")
        made = self._reduce(_tuple(value), axes, where, () if init is None else _tuple(init))
        return made if isinstance(value, (tuple, list)) else made[0]

    def _fold(self, values: Sequence[object]) -> Expr:
        so_far = as_expr(values[0])  # type: ignore[arg-type]
        for value in values[1:]:
            so_far = as_expr(self.combine(so_far, value))  # type: ignore[arg-type]
        return so_far

    def _reduce(
        self,
        values: tuple[ExprLike, ...],
        axes: tuple[IterVar, ...],
        where: ExprLike | None,
        starts: tuple[ExprLike, ...],
    ) -> tuple[Expr, ...]:
        sources = tuple(self._source(v) for v in values)
        combiner = self._combiner(tuple(s.dtype for s in sources))
        init = combiner.identity
        if starts:
            if len(starts) != len(sources):
                raise ScheduleError(f"{self.name}: give one init for each of the values")
            pairs = zip(sources, starts, strict=True)
            init = tuple(ir.cast(s.dtype, as_expr(x, s.dtype)) for s, x in pairs)
        condition = ir.const(True, BOOL) if where is None else ir.as_truth(where)
        return tuple(
            Reduce(combiner, sources, axes, condition, init, i, s.dtype)
            for i, s in enumerate(sources)
        )

    def _source(self, value: ExprLike) -> Expr:
        x = as_expr(value)
        return ir.cast(INT32, x) if self.widen_bool and x.dtype.is_bool else x

    def _combiner(self, types: tuple[DType, ...]) -> Combiner:
        lhs = tuple(Var(f"lhs{i}", t) for i, t in enumerate(types))
        rhs = tuple(Var(f"rhs{i}", t) for i, t in enumerate(types))
        names = tuple(str(t) for t in types)
        if len(types) == 1:
            result, identity = self.combine(lhs[0], rhs[0]), self.identity(names[0])
        else:
            result, identity = self.combine(lhs, rhs), self.identity(*names)
        return Combiner(
            self.name, lhs, rhs, self._typed(result, types), self._typed(identity, types)
        )

    def _typed(self, values: Values, types: tuple[DType, ...]) -> tuple[Expr, ...]:
        given = _tuple(values)
        if len(given) != len(types):
            raise ScheduleError(
                f"{self.name}: the combiner gives {len(given)} values for {len(types)}"
            )
        return tuple(
            ir.cast(t, as_expr(v, None if isinstance(v, float) else t))
            for v, t in zip(given, types, strict=True)
        )


def _tuple(values: Values) -> tuple[ExprLike, ...]:
    return (values,) if isinstance(values, (Expr, int, float)) else tuple(values)


def _as_axes(axis: object) -> tuple[IterVar, ...] | None:
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    found = tuple(iv for iv in axes if isinstance(iv, IterVar) and iv.kind == "reduce")
    return found if found and len(found) == len(axes) else None


def comm_reducer(
    fcombine: Combine,
    fidentity: Callable[..., Values],
    name: str = "reduce",
) -> Reducer:
    """Make a reduction from a commutative combiner and its neutral element for given dtypes."""
    return Reducer(name, fcombine, fidentity)


def min_value(of: str | DType) -> Expr:
    """Give the least value of a dtype (minus infinity for floats)."""
    t = dtype(of)
    return ir.const(-math.inf if t.is_float else int_range(t)[0], t)


def max_value(of: str | DType) -> Expr:
    """Give the greatest value of a dtype (infinity for floats)."""
    t = dtype(of)
    return ir.const(math.inf if t.is_float else int_range(t)[1], t)


sum = Reducer("sum", lambda a, b: a + b, lambda t: ir.const(0, t), widen_bool=True)
prod = Reducer("prod", lambda a, b: a * b, lambda t: ir.const(1, t), widen_bool=True)
max = Reducer("max", lambda a, b: ir.binary("max", a, b), min_value)
min = Reducer("min", lambda a, b: ir.binary("min", a, b), max_value)
_all = Reducer("all", lambda a, b: ir.logic("and", a, b), lambda _: ir.const(True, BOOL))
_any = Reducer("any", lambda a, b: ir.logic("or", a, b), lambda _: ir.const(False, BOOL))


def all(*conditions: ExprLike, axis: Axes | None = None) -> Expr:
    """Give whether all conditions hold; with `axis`, whether the one holds everywhere on it."""
    return _truth(_all, conditions, axis)


def any(*conditions: ExprLike, axis: Axes | None = None) -> Expr:
    """Give whether one of the conditions holds; with `axis`, whether it holds anywhere on it."""
    return _truth(_any, conditions, axis)


def _truth(reducer: Reducer, conditions: tuple[ExprLike, ...], axis: Axes | None) -> Expr:
    if not conditions:
        raise ScheduleError(f"{reducer.name}: give at least one condition")
    values = [ir.as_truth(c) for c in conditions]
    if axis is not None:
        return reducer(values[0], axis=axis)
    folded = values[0]
    for value in values[1:]:
        folded = ir.as_truth(reducer.combine(folded, value))  # type: ignore[arg-type]
    return folded
