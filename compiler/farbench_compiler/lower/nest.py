"""The loops of one stage: their extents from the region to compute, and the axes' values.

Extents follow the schedule's relations down from the axes; values follow them back up. A split
that may overshoot, and a region that may reach beyond the tensor, leave guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import poly
from farbench_compiler.ir.expr import Binary, Compare, Expr, IntImm, Var, binary, compare, const
from farbench_compiler.ir.stmt import LoopKind
from farbench_compiler.ir.visit import walk
from farbench_compiler.lower.region import Part, constant
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.attach import Beside
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.relation import Fuse, Singleton, Split
from farbench_compiler.te.stage import Stage


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop, from 0; `var` is None where it has one step and needs no loop."""

    axis: IterVar
    var: Var | None
    extent: Expr
    kind: LoopKind


@dataclass(frozen=True, slots=True)
class Binding:
    """A value that is computed once inside the loop at `level`."""

    var: Var
    value: Expr
    level: int


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on the loops up to `level` (-1: on none) under which the body runs."""

    cond: Expr
    level: int


@dataclass(frozen=True)
class Nest:
    """The loops of a stage over one region, outermost first."""

    stage: Stage
    op: ComputeOp
    region: tuple[Part, ...]
    loops: tuple[Loop, ...]
    bindings: tuple[Binding, ...]
    values: dict[Var, Expr]
    guards: tuple[Guard, ...]

    @property
    def first_reduce(self) -> int:
        """The place of the outermost reduce loop; the number of loops where there is none."""
        places = (i for i, loop in enumerate(self.loops) if loop.axis.kind == "reduce")
        return next(places, len(self.loops))

    def variables(self, last: int) -> tuple[Var, ...]:
        """The variables that are fixed inside the loop at `last`."""
        own = tuple(loop.var for loop in self.loops[: last + 1] if loop.var is not None)
        return own + tuple(b.var for b in self.bindings if b.level <= last)

    def vectorized_axis(self) -> int | None:
        """The dimension of the tensor that a vectorised loop runs along, the innermost if many."""
        for loop in reversed(self.loops):
            if loop.kind == "vectorized":
                roots = self.stage.roots_of(loop.axis)
                dims = [d for d, axis in enumerate(self.op.axis) if axis in roots]
                return max(dims, default=None)
        return None


def build_nest(stage: Stage, op: ComputeOp, region: Sequence[Part], variables: Variables) -> Nest:
    """Make the loops that compute a region of a stage's tensors."""
    builder = _Builder(stage, op, tuple(region), variables)
    nest = builder.build(bind=False)
    if any(_divides(guard.cond) for guard in nest.guards):
        # With the parts of a fused loop in variables of their own, guards on them are linear.
        nest = builder.build(bind=True)
    return nest


def _divides(cond: Expr) -> bool:
    return any(isinstance(n, Binary) and n.op in ("floordiv", "floormod") for n in walk(cond))


class _Builder:
    def __init__(
        self, stage: Stage, op: ComputeOp, region: tuple[Part, ...], variables: Variables
    ) -> None:
        self.stage, self.op, self.region, self.variables = stage, op, region, variables
        self.extents = self._extents()
        self.loops = self._loops()
        self.bindings: list[Binding] = []
        self.levels: dict[Var, int] = {
            loop.var: i for i, loop in enumerate(self.loops) if loop.var is not None
        }

    def _extents(self) -> dict[IterVar, Expr]:
        """Follow the relations down from the axes."""
        extents: dict[IterVar, Expr] = {}
        for axis, part in zip(self.op.axis, self.region, strict=True):
            extents[axis] = part.extent
        for axis in self.op.ordered_axis:
            extents[axis] = self.variables.simplify(axis.domain.extent)
        for relation in self.stage.relations:
            match relation:
                case Split(parent, outer, inner):
                    size = self._at_most(relation.size, extents[parent])
                    other = self._ceildiv(extents[parent], size)
                    by_factor = relation.factor is not None
                    extents[outer] = other if by_factor else size
                    extents[inner] = size if by_factor else other
                case Fuse(outer, inner, fused):
                    extents[fused] = self.variables.simplify(extents[outer] * extents[inner])
                case Singleton(one):
                    extents[one] = const(1)
        return extents

    @staticmethod
    def _at_most(size: Expr, whole: Expr) -> Expr:
        """Give the size of a part, no greater than the whole where both are constant."""
        x, y = constant(size), constant(whole)
        return size if x is None or y is None else const(max(1, min(x, y)))

    def _ceildiv(self, whole: Expr, size: Expr) -> Expr:
        return self.variables.simplify(binary("floordiv", whole + size - 1, size))

    def _loops(self) -> tuple[Loop, ...]:
        made = []
        for axis in self.stage.leaf_iter_vars:
            extent = self.extents[axis]
            var = None if constant(extent) == 1 else self.variables.add_loop(axis.name, extent)
            kind = self.stage.kinds.get(axis, "serial")
            if kind == "unrolled" and constant(extent) is None:
                raise ScheduleError(
                    f"unroll: axis {axis.name} of stage {self.stage.name} has no constant extent; "
                    "split it by a constant factor and take the inner axis"
                )
            made.append(Loop(axis, var, extent, kind))
        return tuple(made)

    def build(self, bind: bool) -> Nest:
        """Follow the relations up to the axes, with or without variables for divided parts."""
        self.bindings = []
        values: dict[IterVar, Expr] = {
            loop.axis: const(0) if loop.var is None else loop.var for loop in self.loops
        }
        for relation in reversed(self.stage.relations):
            match relation:
                case Split(parent, outer, inner):
                    value = values[outer] * self.extents[inner] + values[inner]
                    values[parent] = self.variables.simplify(value)
                case Fuse(outer, inner, fused):
                    # Loops of no step run nothing, so that any quotient will do but none by 0.
                    width = const(1) if constant(self.extents[inner]) == 0 else self.extents[inner]
                    first = binary("floordiv", values[fused], width)
                    second = binary("floormod", values[fused], width)
                    values[outer] = self._bound(outer, first, bind)
                    values[inner] = self._bound(inner, second, bind)
        guards = self._split_guards(values) + self._shape_guards(values)
        return Nest(
            self.stage, self.op, self.region, self.loops, tuple(self.bindings),
            self._absolute(values), tuple(guards),
        )  # fmt: skip

    def _bound(self, axis: IterVar, value: Expr, bind: bool) -> Expr:
        value = self.variables.simplify(value)
        if not bind or not _divides(value):
            return value
        level = self._level(value)
        var = self.variables.add_loop(axis.name, self.extents[axis])
        self.levels[var] = level
        self.bindings.append(Binding(var, value, level))
        return var

    def _level(self, e: Expr) -> int:
        return max((self.levels.get(n, -1) for n in walk(e) if isinstance(n, Var)), default=-1)

    def _absolute(self, values: dict[IterVar, Expr]) -> dict[Var, Expr]:
        """Give the axes' values in the tensors' own coordinates."""
        begins = [part.begin for part in self.region]
        begins += [axis.domain.begin for axis in self.op.ordered_axis]
        axes = (*self.op.axis, *self.op.ordered_axis)
        return {
            axis: self.variables.simplify(begin + values[axis])
            for axis, begin in zip(axes, begins, strict=True)
        }

    def _split_guards(self, values: dict[IterVar, Expr]) -> list[Guard]:
        guards = []
        for relation in self.stage.relations:
            if isinstance(relation, Split):
                parent = relation.parent
                guards += self._below(values[parent], self.extents[parent])
        return guards

    def _shape_guards(self, values: dict[IterVar, Expr]) -> list[Guard]:
        guards: list[Guard] = []
        for axis, part in zip(self.op.axis, self.region, strict=True):
            size = axis.domain.extent
            if constant(part.begin) == 0 and constant(size - part.extent) == 0:
                continue
            at = self.variables.simplify(part.begin + values[axis])
            if not self.variables.proves(at):
                guards.append(self._guard(compare("ge", at, const(0))))
            guards += self._below(at, size)
        if isinstance(self.stage.home, Beside):  # the scan may have fewer rows than its start
            row = self.region[0].begin + values[self.op.axis[0]]
            guards += self._below(row, self.stage.home.scan.op.output(0).shape[0])
        return guards

    def _below(self, value: Expr, limit: Expr) -> list[Guard]:
        if self.variables.proves(limit - 1 - value):
            return []
        return [self._guard(compare("lt", value, limit))]

    def _guard(self, cond: Expr) -> Guard:
        if isinstance(cond, Compare):
            # Constants on one side: what partitioning and readers expect.
            p = poly.of(cond.a)
            cond = compare(
                cond.op,
                poly.to_expr(poly.Poly(p.terms, 0, p.pure), cond.a.dtype),
                self.variables.simplify(cond.b - IntImm(p.constant)),
            )
        return Guard(cond, self._level(cond))
