"""Alignment of strides: how far apart the rows of a tensor lie, whatever its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.axis import IterVar


@dataclass(frozen=True, slots=True)
class Alignment:
    """From one index of an axis to the next it is k * factor + offset elements, for some k."""

    factor: int
    offset: int


def alignment_of(
    stage: str, axes: Sequence[IterVar], axis: IterVar, factor: int, offset: int
) -> Alignment:
    """Make an alignment; ScheduleError where the axis has no stride that could be chosen."""
    what = f"storage_align: axis {axis.name} of stage {stage}"
    if not any(axis is iv for iv in axes):
        names = ", ".join(iv.name for iv in axes)
        raise ScheduleError(f"{what} is no dimension of its tensor; those are {names or 'none'}")
    if axis is axes[-1]:
        raise ScheduleError(
            f"{what} is the innermost dimension, whose elements lie side by side; align the one "
            "around it"
        )
    if factor < 1 or offset < 0:
        raise ScheduleError(
            f"{what} cannot have factor {factor} and offset {offset}; give a factor of at least 1 "
            "and an offset of at least 0"
        )
    return Alignment(factor, offset % factor)
