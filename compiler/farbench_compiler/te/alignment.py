"""Alignment of strides: how far apart the rows of a tensor lie, whatever its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.axis import IterVar, whole_number


@dataclass(frozen=True, slots=True)
class Alignment:
    """From one index of an axis to the next it is k * factor + offset elements, for some k."""

    factor: int
    offset: int


def alignment_of(
    stage: str, axes: Sequence[IterVar], axis: IterVar, factor: int, offset: int
) -> Alignment:
    """Make an alignment; ScheduleError where the axis has no stride that could be chosen."""
    given = axis.name if isinstance(axis, IterVar) else repr(axis)
    what = f"storage_align: axis {given} of stage {stage}"
    if not any(axis is iv for iv in axes):
        names = ", ".join(iv.name for iv in axes)
        raise ScheduleError(f"{what} is no dimension of its tensor; those are {names or 'none'}")
    if axis is axes[-1]:
        raise ScheduleError(
            f"{what} is the innermost dimension, whose elements lie side by side; align the one "
            "around it"
        )
    step, start = whole_number(factor), whole_number(offset)
    if step is None or start is None or step < 1 or start < 0:
        raise ScheduleError(
            f"{what} cannot have factor {factor!r} and offset {offset!r}; give whole numbers, the "
            "factor at least 1 and the offset at least 0"
        )
    return Alignment(step, start % step)
