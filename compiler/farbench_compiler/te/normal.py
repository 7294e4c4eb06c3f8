"""Copies of schedules, and their normal form."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from farbench_compiler.te.attach import At, Attach, Attachable, Beside, Inline, InScan, Root
from farbench_compiler.te.group import Group, groups_of

if TYPE_CHECKING:
    from farbench_compiler.te.schedule import Schedule
    from farbench_compiler.te.stage import Stage


def twins(schedule: Schedule) -> dict[Stage, Stage]:
    """Copy each stage of a schedule, with what was said of its loops."""
    made: dict[Stage, Stage] = {}
    for stage in schedule.stages:
        twin = made[stage] = copy.copy(stage)
        for name, value in vars(stage).items():
            if isinstance(value, (list, dict)):
                setattr(twin, name, copy.copy(value))
    return made


def settle(schedule: Schedule, to: dict[Stage, Stage]) -> None:
    """Let what copies refer to be copies too: the schedule, other stages, groups."""
    groups: dict[Group, Group] = {}
    for twin in to.values():
        _settle(twin, schedule, to, groups)


def repair_places(schedule: Schedule) -> None:
    """Attach every stage to a loop that is there.

    One that was attached to a loop which was split or fused since goes into the loop with the same
    body: the inner one of a split, the fused one.
    """
    for stage in schedule.stages:
        for of in (stage, *groups_of(stage)):
            if isinstance(of.attach, At):
                of.attach = At(of.attach.stage, of.attach.stage.heir(of.attach.axis))


def _settle(
    of: Attachable, schedule: Schedule, to: dict[Stage, Stage], groups: dict[Group, Group]
) -> None:
    of.schedule = schedule
    of.attach, of.home = _moved(of.attach, to), _moved(of.home, to)
    if of.group is not None:
        old = of.group
        if old not in groups:
            groups[old] = copy.copy(old)
            _settle(groups[old], schedule, to, groups)
        of.group = groups[old]


def _moved(attach: Attach, to: dict[Stage, Stage]) -> Attach:
    match attach:
        case At(stage, axis):
            return At(to[stage], axis)
        case InScan(scan):
            return InScan(to[scan])
        case Beside(scan):
            return Beside(to[scan])
        case Root() | Inline():
            return attach
