"""The loops of a stage, from the axes of its operation, and the primitives that change them."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import ExprLike, IntImm
from farbench_compiler.ir.stmt import LoopKind
from farbench_compiler.te.axis import IterVar, as_index
from farbench_compiler.te.operation import ComputeOp, Operation
from farbench_compiler.te.pragma import Pragma, pragma_of
from farbench_compiler.te.relation import Fuse, Relation, Singleton, Split
from farbench_compiler.te.tensor import reads


class Loops:
    """Loops in order, outermost first; every primitive changes them in place."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.relations: list[Relation] = []
        self.leaf_iter_vars: list[IterVar] = [*op.axis, *op.ordered_axis]
        self.kinds: dict[IterVar, LoopKind] = {}
        self.pragmas: list[Pragma] = []

    @property
    def is_scheduled(self) -> bool:
        """Whether any of the loops was changed or marked."""
        return bool(self.relations or self.kinds or self.pragmas)

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
        if reads(size):
            raise self._error("split", parent, "cannot have a number of steps that is data")
        outer = IterVar(f"{parent.name}.outer", kind=parent.kind)
        inner = IterVar(f"{parent.name}.inner", kind=parent.kind)
        by_factor = factor is not None
        self.relations.append(
            Split(parent, outer, inner, size if by_factor else None, None if by_factor else size)
        )
        self.leaf_iter_vars[at : at + 1] = [outer, inner]
        return outer, inner

    def fuse(self, *axes: IterVar | Sequence[IterVar]) -> IterVar:
        """Make one loop of loops that follow each other, outermost first.

        Of none it makes a loop of one step around all others, as a tensor without dimensions needs
        it to have a loop at all.
        """
        given: list[IterVar] = [
            iv for a in axes for iv in (a if isinstance(a, (list, tuple)) else (a,))
        ]
        if not given:
            self.compute_op("fuse")
            one = IterVar("singleton")
            self.relations.append(Singleton(one))
            self.leaf_iter_vars.insert(0, one)
            return one
        fused = given[0]
        self._leaf("fuse", fused)
        for axis in given[1:]:
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
            if axes[i].kind == "scan" and place < max(places[:i], default=-1):
                raise self._error(
                    "reorder", axes[i], "is part of a scan's time, which runs in order"
                )
        for place, axis in zip(sorted(places), axes, strict=True):
            self.leaf_iter_vars[place] = axis

    def vectorize(self, axis: IterVar) -> None:
        """Run a loop as vector operations; what is left over of whole vectors runs one by one.

        The steps of a reduce loop are combined in another order then, where the machine has one.
        """
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
            "bind", axis, f"cannot be bound to {_name(thread_axis)}, which a CPU has not; use "
            "parallel for an outer loop, vectorize for an inner one",
        )  # fmt: skip

    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Refuse, as `bind` does."""
        several = threads if isinstance(threads, (list, tuple)) else [threads]
        names = ", ".join(map(_name, several))
        raise ScheduleError(
            f"env_threads: stage {self.op.name} cannot run in threads {names}, which a CPU has "
            "not; use parallel"
        )

    def pragma(self, axis: IterVar, pragma_type: str, pragma_value: object = None) -> None:
        """Wish something of a loop and of what is inside it: `te.pragma.KINDS` lists what."""
        self._leaf("pragma", axis)
        self.pragmas.append(pragma_of(self.op.name, axis, pragma_type, pragma_value))

    def _mark(self, primitive: str, axis: IterVar, kind: LoopKind) -> None:
        self._leaf(primitive, axis)
        free = axis.kind == "data" or kind == "unrolled"
        if not free and (axis.kind, kind) != ("reduce", "vectorized"):
            raise self._error(
                primitive, axis, f"is a {axis.kind} axis, whose steps depend on each other; "
                f"{primitive} a data axis, or reorder so that one is there",
            )  # fmt: skip
        before = self.kinds.get(axis, kind)
        if before != kind:
            raise self._error(primitive, axis, f"is {before} already; split it to have both")
        self.kinds[axis] = kind

    def compute_op(self, primitive: str) -> ComputeOp:
        """Give the operation where it is a computation; ScheduleError names the primitive."""
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(f"{primitive}: {self.op.name} is not computed, so it has no loops")
        return self.op

    def leaf_index(self, axis: IterVar) -> int | None:
        """Give the place of a loop, None where the axis is none of this stage's loops."""
        return next((i for i, iv in enumerate(self.leaf_iter_vars) if iv is axis), None)

    def check_loop(self, primitive: str, axis: IterVar) -> None:
        """Raise ScheduleError where an axis is none of this stage's loops."""
        self._leaf(primitive, axis)

    def _leaf(self, primitive: str, axis: IterVar) -> int:
        self.compute_op(primitive)
        place = self.leaf_index(axis)
        if not isinstance(axis, IterVar):
            names = ", ".join(iv.name for iv in self.leaf_iter_vars)
            raise ScheduleError(
                f"{primitive}: {axis!r} is no axis; those of stage {self.op.name} are {names}"
            )
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
        match relation:
            case Split(parent=axis) | Fuse(outer=axis) | Singleton(axis):
                return axis.kind == "reduce"

    def heir(self, axis: IterVar) -> IterVar:
        """Give the loop whose body is that of an axis: the inner of its split, the fused one."""
        for relation in self.relations:
            match relation:
                case Split(parent, _, inner) if parent is axis:
                    axis = inner
                case Fuse(_, inner, fused) if inner is axis:
                    axis = fused
        return axis

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
        return ScheduleError(f"{primitive}: axis {_name(axis)} of stage {self.op.name} {why}")


def _name(axis: object) -> str:
    return axis.name if isinstance(axis, IterVar) else repr(axis)
