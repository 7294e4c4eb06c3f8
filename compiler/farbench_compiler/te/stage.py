"""A stage: one operation of a schedule, its loops in order, and where they are placed.

attach ::= Root()            in the function's own sequence
         | Inline()          substituted into whoever reads it
         | At(stage, axis)   inside the loop `axis` of `stage`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, ExprLike, IntImm, Scope
from farbench_compiler.ir.stmt import LoopKind
from farbench_compiler.te.axis import IterVar, as_index
from farbench_compiler.te.operation import ComputeOp, Operation, PlaceholderOp
from farbench_compiler.te.relation import Fuse, Relation, Split

if TYPE_CHECKING:
    from farbench_compiler.te.schedule import Schedule
    from farbench_compiler.te.tensorize import TensorIntrin


@dataclass(frozen=True, slots=True)
class Root:
    """Computed as a whole, before whoever reads it."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Computed anew at each read."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class At:
    """Computed inside a loop of another stage, as much as that loop's body reads."""

    stage: Stage
    axis: IterVar

    def __repr__(self) -> str:
        return f"At({self.stage.name}, {self.axis.name})"


Attach = Root | Inline | At


class Stage:
    """The loops of one operation; every primitive changes them in place."""

    def __init__(self, schedule: Schedule, op: Operation, is_output: bool) -> None:
        self.schedule = schedule
        self.origin_op = op
        self.op = op
        self.is_output = is_output
        self.scope: Scope = "global"
        self.relations: list[Relation] = []
        self.leaf_iter_vars: list[IterVar] = [*op.axis, *op.reduce_axis]
        self.kinds: dict[IterVar, LoopKind] = {}
        self.attach: Attach = Root()
        self.tensorized: tuple[IterVar, TensorIntrin] | None = None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.op.name

    def __repr__(self) -> str:
        loops = [f"{self.kinds.get(iv, 'serial')} {iv.name}" for iv in self.leaf_iter_vars]
        return f"Stage({self.name}: {', '.join(loops)}; {self.attach})"

    def split(
        self,
        parent: IterVar,
        factor: ExprLike | None = None,
        nparts: ExprLike | None = None,
    ) -> tuple[IterVar, IterVar]:
        """Split a loop into outer and inner: `factor` steps inside, or `nparts` outside."""
        at = self._leaf("split", parent)
        if (factor is None) == (nparts is None):
            raise self._error("split", parent, "needs factor or nparts, and not both")
        size = as_index(factor if factor is not None else nparts)  # type: ignore[arg-type]
        if isinstance(size, IntImm) and size.value < 1:
            raise self._error("split", parent, f"cannot have {size.value} steps; give at least 1")
        outer = IterVar(f"{parent.name}.outer", kind=parent.kind)
        inner = IterVar(f"{parent.name}.inner", kind=parent.kind)
        by_factor = factor is not None
        self.relations.append(
            Split(parent, outer, inner, size if by_factor else None, None if by_factor else size)
        )
        self.leaf_iter_vars[at : at + 1] = [outer, inner]
        return outer, inner

    def fuse(self, *axes: IterVar) -> IterVar:
        """Make one loop of loops that follow each other, outermost first."""
        if not axes:
            raise ScheduleError(f"fuse: give at least one axis of stage {self.name}")
        fused = axes[0]
        self._leaf("fuse", fused)
        for axis in axes[1:]:
            fused = self._fuse_two(fused, axis)
        return fused

    def _fuse_two(self, outer: IterVar, inner: IterVar) -> IterVar:
        at, then = self._leaf("fuse", outer), self._leaf("fuse", inner)
        if outer.kind != inner.kind:
            raise self._error(
                "fuse", inner, f"and {outer.name} are not both data or both reduce axes"
            )
        if then != at + 1:
            raise self._error(
                "fuse", inner, f"does not follow {outer.name} directly; reorder the loops first"
            )
        fused = IterVar(f"{outer.name}.{inner.name}.fused", kind=outer.kind)
        self.relations.append(Fuse(outer, inner, fused))
        self.leaf_iter_vars[at : at + 2] = [fused]
        return fused

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: ExprLike, y_factor: ExprLike
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops and order them x outer, y outer, x inner, y inner."""
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def reorder(self, *axes: IterVar) -> None:
        """Put loops in the given order, in the places that they hold together."""
        places = [self._leaf("reorder", axis) for axis in axes]
        for i, place in enumerate(places):
            if place in places[:i]:
                raise self._error("reorder", axes[i], "is given twice")
        for place, axis in zip(sorted(places), axes, strict=True):
            self.leaf_iter_vars[place] = axis

    def vectorize(self, axis: IterVar) -> None:
        """Run a loop of constant extent as vector operations."""
        self._mark("vectorize", axis, "vectorized")

    def unroll(self, axis: IterVar) -> None:
        """Write out the steps of a loop of constant extent."""
        self._mark("unroll", axis, "unrolled")

    def parallel(self, axis: IterVar) -> None:
        """Share the steps of a loop among the threads."""
        self._mark("parallel", axis, "parallel")

    def bind(self, axis: IterVar, thread_axis: IterVar) -> None:
        """Refuse: threads of a GPU are nothing that a CPU has; ScheduleError says what to use."""
        self._leaf("bind", axis)
        raise self._error(
            "bind", axis, f"cannot be bound to {thread_axis.name}, which a CPU has not; use "
            "parallel for an outer loop, vectorize for an inner one",
        )  # fmt: skip

    def env_threads(self, threads: Sequence[IterVar]) -> None:
        """Refuse, as `bind` does."""
        names = ", ".join(thread.name for thread in threads)
        raise ScheduleError(
            f"env_threads: stage {self.name} cannot run in threads {names}, which a CPU has not; "
            "use parallel"
        )

    def _mark(self, primitive: str, axis: IterVar, kind: LoopKind) -> None:
        self._leaf(primitive, axis)
        if axis.kind == "reduce" and kind != "unrolled":
            raise self._error(
                primitive, axis, "is a reduce axis, whose steps depend on each other; "
                f"{primitive} a data axis, or reorder so that one is there",
            )  # fmt: skip
        before = self.kinds.get(axis, kind)
        if before != kind:
            raise self._error(primitive, axis, f"is {before} already; split it to have both")
        self.kinds[axis] = kind

    def tensorize(self, axis: IterVar, intrin: TensorIntrin) -> None:
        """Let a declared intrinsic compute what the loop and those inside it do.

        What it demands of them is checked when the schedule is lowered.
        """
        self._leaf("tensorize", axis)
        if not hasattr(intrin, "update"):
            raise self._error("tensorize", axis, "needs an intrinsic of te.decl_tensor_intrin")
        if self.tensorized is not None:
            raise self._error(
                "tensorize", axis, f"comes after {self.tensorized[1].name}; one is all"
            )
        self.tensorized = (axis, intrin)

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute what one step of the loop `scope` of `parent` reads, inside that loop."""
        self._placeable("compute_at")
        if parent is self or parent.schedule is not self.schedule:
            raise ScheduleError(
                f"compute_at: stage {self.name} can be attached to another stage of its schedule "
                f"alone, not to {parent.name}"
            )
        if isinstance(parent.attach, Inline):
            raise ScheduleError(
                f"compute_at: stage {self.name} cannot be attached to axis {scope.name} of stage "
                f"{parent.name}, which is inlined and has no loops"
            )
        parent._leaf("compute_at", scope)
        self.attach = At(parent, scope)

    def compute_inline(self) -> None:
        """Substitute the expression into whoever reads it; the stage has no loops of its own."""
        self._placeable("compute_inline")
        if not self.compute_op("compute_inline").body:
            raise ScheduleError(f"compute_inline: stage {self.name} is extern, no expression")
        if self.op.reduce_axis:
            raise ScheduleError(
                f"compute_inline: stage {self.name} reduces over "
                f"{self.op.reduce_axis[0].name}; use compute_at"
            )
        if self.relations or self.kinds or self.tensorized:
            raise ScheduleError(
                f"compute_inline: stage {self.name} has scheduled loops, which inlining would drop"
            )
        self.attach = Inline()

    def compute_root(self) -> None:
        """Compute the stage as a whole, before whoever reads it (what a new schedule does)."""
        self.attach = Root()

    def set_scope(self, scope: Scope) -> None:
        """Choose the memory of the stage's tensors: `local` (the stack, registers) or `global`."""
        self.compute_op("set_scope")
        if self.is_output or scope not in ("local", "global"):
            raise ScheduleError(
                f"set_scope: stage {self.name} cannot be {scope}; outputs are the caller's, other "
                "stages local or global"
            )
        self.scope = scope

    def _placeable(self, primitive: str) -> None:
        if isinstance(self.op, PlaceholderOp):
            raise ScheduleError(
                f"{primitive}: {self.name} is a placeholder, which is given and not computed"
            )
        if self.is_output:
            raise ScheduleError(
                f"{primitive}: stage {self.name} is an output of the schedule and stays at the root"
            )

    def compute_op(self, primitive: str) -> ComputeOp:
        """Give the operation where it is a computation; ScheduleError names the primitive."""
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(f"{primitive}: {self.name} is not computed, so it has no loops")
        return self.op

    def leaf_index(self, axis: IterVar) -> int | None:
        """Give the place of a loop, None where the axis is none of this stage's loops."""
        return next((i for i, iv in enumerate(self.leaf_iter_vars) if iv is axis), None)

    def _leaf(self, primitive: str, axis: IterVar) -> int:
        self.compute_op(primitive)
        place = self.leaf_index(axis)
        if place is None:
            raise self._error(primitive, axis, self.fate(axis))
        return place

    def roots_of(self, axis: IterVar) -> set[IterVar]:
        """Give the axes of the computation that a loop was made from."""
        found = {axis}
        for relation in reversed(self.relations):
            match relation:
                case Split(parent, outer, inner) if outer in found or inner in found:
                    found = found - {outer, inner} | {parent}
                case Fuse(outer, inner, fused) if fused in found:
                    found = found - {fused} | {outer, inner}
        return found

    @staticmethod
    def reduces(relation: Relation) -> bool:
        """Tell whether a relation is between reduce loops."""
        return (relation.parent if isinstance(relation, Split) else relation.outer).kind == "reduce"

    def fate(self, axis: IterVar) -> str:
        """Say in words why an axis is none of the loops."""
        for relation in self.relations:
            match relation:
                case Split(parent, outer, inner) if parent is axis:
                    return f"was split into {outer.name} and {inner.name}; use those"
                case Fuse(outer, inner, fused) if axis is outer or axis is inner:
                    return f"was fused into {fused.name}; use that"
        loops = ", ".join(iv.name for iv in self.leaf_iter_vars)
        return f"is no loop of this stage; its loops are {loops}"

    def _error(self, primitive: str, axis: IterVar, why: str) -> ScheduleError:
        return ScheduleError(f"{primitive}: axis {axis.name} of stage {self.name} {why}")


def factor_of(relation: Split) -> Expr:
    """Give the factor or the number of parts, whichever was given."""
    size = relation.factor if relation.factor is not None else relation.nparts
    if size is None:
        raise ScheduleError(f"split: axis {relation.parent.name} has neither factor nor nparts")
    return size
