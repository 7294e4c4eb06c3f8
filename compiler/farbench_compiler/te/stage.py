"""A stage: one operation of a schedule, its loops, where it is placed and in which memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, ExprLike, Scope, as_expr
from farbench_compiler.te import layout
from farbench_compiler.te.alignment import Alignment, alignment_of
from farbench_compiler.te.attach import Attachable, Inline, Root
from farbench_compiler.te.axis import IterVar, whole_number
from farbench_compiler.te.lookahead import Lookahead
from farbench_compiler.te.loops import Loops
from farbench_compiler.te.names import unknown
from farbench_compiler.te.operation import Operation, PlaceholderOp
from farbench_compiler.te.scan import ScanOp
from farbench_compiler.te.scope import scope_of
from farbench_compiler.te.tensor import Tensor

if TYPE_CHECKING:
    from farbench_compiler.te.schedule import Schedule
    from farbench_compiler.te.tensorize import TensorIntrin


# What a stage's memory in a loop holds: each step anew, two steps' in turn, or a ring of rows.
Buffering = Literal["each step", "halves", "ring"]


class Stage(Loops, Attachable):
    """The loops of one operation; every primitive changes them in place."""

    def __init__(self, schedule: Schedule, op: Operation, is_output: bool) -> None:
        Loops.__init__(self, op)
        Attachable.__init__(self, schedule)
        self.origin_op = op
        self.is_output = is_output
        self.scope: Scope = "global"
        self.tensorized: tuple[IterVar, TensorIntrin] | None = None
        self.alignments: dict[IterVar, Alignment] = {}
        self.lookaheads: list[Lookahead] = []
        self.buffering: Buffering = "each step"
        self.store_predicate: Expr | None = None

    if not TYPE_CHECKING:  # it would hide misspelt names from the types

        def __getattr__(self, name: str) -> None:
            op = self.__dict__.get("op")
            raise unknown(f"stage {op.name}" if op is not None else "a stage", Stage, name)

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.op.name

    def __repr__(self) -> str:
        loops = [f"{self.kinds.get(iv, 'serial')} {iv.name}" for iv in self.leaf_iter_vars]
        return f"Stage({self.name}: {', '.join(loops)}; {self.attach})"

    @property
    def is_scheduled(self) -> bool:
        """Whether any of the loops was changed or marked, or is to do something of its own."""
        own = self.tensorized or self.lookaheads or self.store_predicate is not None
        return super().is_scheduled or bool(own)

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

    def compute_inline(self) -> None:
        """Substitute the expression into whoever reads it; the stage has no loops of its own."""
        self._placeable("compute_inline")
        op = self.compute_op("compute_inline")
        if not op.body:
            what = "a scan" if isinstance(op, ScanOp) else "extern"
            raise ScheduleError(f"compute_inline: stage {self.name} is {what}, no expression")
        if op.reduce_axis:
            raise ScheduleError(
                f"compute_inline: stage {self.name} reduces over "
                f"{op.reduce_axis[0].name}; use compute_at"
            )
        if self.is_scheduled:
            raise ScheduleError(
                f"compute_inline: stage {self.name} has scheduled loops, which inlining would drop"
            )
        self.attach = Inline()

    def set_scope(self, scope: str) -> None:
        """Choose the memory of the stage's tensors: `local` (the stack, registers) or `global`."""
        self.compute_op("set_scope")
        chosen = scope_of("set_scope", self.name, scope)
        if self.is_output:
            raise ScheduleError(
                f"set_scope: stage {self.name} cannot be {scope}; outputs are the caller's, other "
                "stages local or global"
            )
        self.scope = chosen

    def storage_align(self, axis: IterVar, factor: int, offset: int = 0) -> None:
        """Pad the memory of the stage so that the stride of `axis` is k * factor + offset elements.

        `axis` is one of the operation's own, not of a split; the tensor is the stage's own.
        """
        op = self.compute_op("storage_align")
        if self.is_output or not isinstance(self.home, Root):
            whose = "the caller's" if self.is_output else "that of a scan"
            raise self._error(
                "storage_align", axis, f"is of memory that is {whose}; align a stage of its own, "
                "as cache_read and cache_write make them",
            )  # fmt: skip
        self.alignments[axis] = alignment_of(self.name, op.axis, axis, factor, offset)

    def transform_layout(self, index_map: layout.Map) -> list[IterVar] | None:
        """Let the stage's tensor lie as `index_map` says, an argument too, padded to whole tiles.

        The stage then runs over the new layout; gives its axes, nothing for a placeholder.
        """
        if not callable(index_map):
            raise ScheduleError(
                f"transform_layout: stage {self.name} needs a function, as lambda i, j: [j, i]"
            )
        return self.schedule.transform_layout(self, index_map)

    def double_buffer(self) -> None:
        """Fill the stage's memory for the next step of its loop before this step reads its own.

        The stage is attached to a loop whose steps follow each other (`compute_at`).
        """
        self._lasting("double_buffer", "halves")

    def rolling_buffer(self) -> None:
        """Keep what the next step of the stage's loop needs again, and compute only what is new.

        The stage is attached to a loop (`compute_at`) whose steps read overlapping parts of it.
        """
        self._lasting("rolling_buffer", "ring")

    def _lasting(self, primitive: str, kind: Buffering) -> None:
        self.compute_op(primitive)
        if self.is_output or not isinstance(self.home, Root):
            raise ScheduleError(
                f"{primitive}: stage {self.name} has no memory of its own; take a stage between "
                "others, as cache_read and cache_write make them"
            )
        if self.buffering not in ("each step", kind):
            other = "double_buffer" if kind == "ring" else "rolling_buffer"
            raise ScheduleError(f"{primitive}: stage {self.name} has {other} already; one is all")
        self.buffering = kind

    def set_store_predicate(self, predicate: ExprLike) -> None:
        """Store only the elements for which a condition on the stage's axes and loops holds.

        The others keep what the memory held before.
        """
        self.compute_op("set_store_predicate")
        cond = as_expr(predicate)
        if not cond.dtype.is_bool:
            raise ScheduleError(
                f"set_store_predicate: stage {self.name} needs a condition, got a value of "
                f"{cond.dtype}"
            )
        self.store_predicate = cond

    def prefetch(self, tensor: Tensor, axis: IterVar, offset: int = 1) -> None:
        """Bring nearer, in each step of a loop, what the one `offset` later reads of a tensor.

        The reads count that are in the loop, those of stages attached there too.
        """
        self._leaf("prefetch", axis)
        if not isinstance(tensor, Tensor):
            raise self._error("prefetch", axis, f"cannot look for {tensor!r}, which is no tensor")
        step = whole_number(offset)
        if step is None or step < 1:
            raise self._error("prefetch", axis, f"cannot look {offset} steps ahead; give 1 or more")
        self.lookaheads.append(Lookahead(tensor, axis, step))

    def _placeable(self, primitive: str) -> None:
        if isinstance(self.op, PlaceholderOp):
            raise ScheduleError(
                f"{primitive}: {self.name} is a placeholder, which is given and not computed"
            )
        if self.is_output:
            raise ScheduleError(
                f"{primitive}: stage {self.name} is an output of the schedule and stays at the root"
            )
        super()._placeable(primitive)
