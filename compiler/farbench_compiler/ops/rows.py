"""Operators that work on each row of a matrix alone: reductions in vectors, and the schedule.

A row is reduced to several vectors of partial results, these to one vector, to four numbers, to
one; columns that fill no vectors are reduced one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from farbench_compiler import te
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ops.streaming import read_next_row, write_past_caches
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

Reducer = Callable[..., Expr]
Element = Callable[[Expr, Expr], Expr]
# Partial results under way: enough to hide how long an addition takes.
_VECTORS = 4
_LEAST = 4
_UNROLL = 2


@dataclass
class Rows:
    """The stages of an operator on rows, in the order of their making."""

    rows: int
    columns: int
    dtype: DType
    target: Target
    stages: list[Tensor] = field(default_factory=list)
    partial: list[Tensor] = field(default_factory=list)
    folded: list[Tensor] = field(default_factory=list)

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return lanes_of(self.target, self.dtype)

    def number(self, name: str, value: Callable[[Expr], Expr]) -> Tensor:
        """Add a stage of one number a row."""
        made = te.compute((self.rows,), value, name=name)
        self.stages.append(made)
        return made

    def row(self, name: str, value: Element) -> Tensor:
        """Add a stage of a whole row."""
        made = te.compute((self.rows, self.columns), value, name=name)
        self.stages.append(made)
        return made

    def reduce(self, name: str, reducer: Reducer, join: Callable[..., Expr], of: Element) -> Tensor:
        """Add the stages that reduce `of(row, column)` along the columns."""
        width = self.lanes * _VECTORS
        while width > self.columns:
            width //= 2
        steps, rest = divmod(self.columns, width)
        k = te.reduce_axis((0, steps), name="k")
        part = self._part(
            f"{name}_{width}", width, lambda i, x: reducer(of(i, k * width + x), axis=k)
        )
        while width > 1:
            narrow = self.lanes if width > self.lanes else _LEAST if width > _LEAST else 1
            part = self._folded(name, part, width, narrow, reducer)
            width = narrow
        whole = part
        if not rest:
            return self.number(name, lambda i: whole[i, 0])
        t = te.reduce_axis((0, rest), name="t")
        tail = self.number(
            f"{name}_tail", lambda i: reducer(of(i, self.columns - rest + t), axis=t)
        )
        return self.number(name, lambda i: join(whole[i, 0], tail[i]))

    def _part(self, name: str, width: int, value: Element) -> Tensor:
        made = te.compute((self.rows, width), value, name=name)
        self.stages.append(made)
        self.partial.append(made)
        return made

    def _folded(self, name: str, part: Tensor, width: int, narrow: int, reducer: Reducer) -> Tensor:
        f = te.reduce_axis((0, width // narrow), name="f")
        made = self._part(
            f"{name}_{narrow}", narrow, lambda i, x: reducer(part[i, f * narrow + x], axis=f)
        )
        self.folded.append(made)
        return made

    def schedule(self, a: Tensor, c: Tensor, *, parallel: bool) -> Schedule:
        """Compute every stage once a row of `c`, in vectors; `a` is what the rows are made of."""
        schedule = te.create_schedule(c.op)
        row = c.op.axis[0]
        for stage in self.stages:
            schedule[stage].compute_at(schedule[c], row)
        for part in self.partial:
            (k,), lane = part.op.reduce_axis, part.op.axis[1]
            schedule[part].set_scope("local")
            schedule[part].reorder(k, lane)
            schedule[part].vectorize(lane)
            if any(part is folded for folded in self.folded):
                schedule[part].unroll(k)
        width = max(1, min(self.columns, self.lanes * _UNROLL))
        for stage in (*self.stages, c):
            if len(stage.op.axis) > 1 and not any(stage is part for part in self.partial):
                outer, lane = schedule[stage].split(stage.op.axis[1], factor=width)
                schedule[stage].vectorize(lane)
                if a in stage.op.input_tensors:
                    read_next_row(schedule[stage], a, self.columns, outer, width)
        write_past_caches(schedule[c], self.rows * self.columns * c.dtype.nbytes)
        if parallel:
            schedule[c].parallel(row)
        return schedule
