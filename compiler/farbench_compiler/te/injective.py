"""Automatic inlining: stages of which each element comes from few others, by how they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from farbench_compiler.errors import ValueTypeError
from farbench_compiler.ir.expr import Expr
from farbench_compiler.te.attach import Root
from farbench_compiler.te.operation import ComputeOp, Operation
from farbench_compiler.te.tensor import reads

if TYPE_CHECKING:
    from farbench_compiler.te.schedule import Schedule
    from farbench_compiler.te.stage import Stage


def inline_injective(schedule: Schedule) -> None:
    """Inline every stage that computes each element from few others by itself.

    That is every computed stage which is no output, reduces nothing and was not scheduled yet,
    unless one that needs it in memory reads it.
    """
    if not hasattr(schedule, "stages"):
        raise ValueTypeError(f"te.inline_injective: {schedule!r} is no schedule")
    inline_where(schedule, lambda op: True)


def inline_broadcast(schedule: Schedule) -> None:
    """Inline, of those stages, the ones that read at their own indices or at some of them."""
    inline_where(schedule, is_broadcast)


def inline_elementwise(schedule: Schedule) -> None:
    """Inline, of those stages, the ones that read at their own indices alone."""
    inline_where(schedule, is_elementwise)


def is_elementwise(op: ComputeOp) -> bool:
    """Tell whether every read of a computation is at the indices of the element it is for."""
    return _plain(op) and all(_alike(load.indices, op.axis) for load in reads(*op.body))


def is_broadcast(op: ComputeOp) -> bool:
    """Tell whether every read is at some of the element's indices, in their order."""
    return _plain(op) and all(_among(load.indices, op.axis) for load in reads(*op.body))


def _plain(op: ComputeOp) -> bool:
    return bool(op.body) and not op.reduce_axis


def _alike(indices: tuple[Expr, ...], axes: tuple[Expr, ...]) -> bool:
    return len(indices) == len(axes) and _among(indices, axes)


def _among(indices: tuple[Expr, ...], axes: tuple[Expr, ...]) -> bool:
    left = iter(axes)
    return all(any(index is axis for axis in left) for index in indices)


def inline_where(schedule: Schedule, wanted: Callable[[ComputeOp], bool]) -> None:
    """Inline, of those stages, the ones that are wanted."""
    for stage in schedule.stages:
        op = stage.op
        free = isinstance(op, ComputeOp) and _plain(op) and _is_free(schedule, stage)
        if free and isinstance(op, ComputeOp) and wanted(op):
            stage.compute_inline()


def readers_of(schedule: Schedule, op: Operation) -> list[Operation]:
    """List the operations that read what one computes."""
    return [reader.op for tensor in op.outputs for reader in schedule.readers(tensor)]


def _is_free(schedule: Schedule, stage: Stage) -> bool:
    """Tell whether nothing was said of a stage yet, and nobody needs it in memory."""
    readers = readers_of(schedule, stage.op)
    touched = stage.is_scheduled or stage.is_output or not isinstance(stage.attach, Root)
    return not touched and all(isinstance(op, ComputeOp) and op.body for op in readers)
