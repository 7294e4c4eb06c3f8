"""Groups: stages of a schedule that are placed together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.attach import Attachable
from farbench_compiler.te.operation import Operation
from farbench_compiler.te.tensor import Tensor

if TYPE_CHECKING:
    from farbench_compiler.te.schedule import Schedule
    from farbench_compiler.te.stage import Stage


class Group(Attachable):
    """Stages, and groups of them, whose root is where the group is placed.

    A stage of the group that is attached to a loop of its own stays there.
    """

    def __init__(self, schedule: Schedule, members: Sequence[Attachable]) -> None:
        super().__init__(schedule)
        self.group = members[0].group
        for member in members:
            member.group = self

    @property
    def name(self) -> str:
        """The names of all stages within."""
        return f"group({', '.join(stage.name for stage in self.stages)})"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages within, those of groups in it too, in the order of the schedule."""
        return tuple(s for s in self.schedule.stages if self in groups_of(s))

    def __repr__(self) -> str:
        return f"Group({', '.join(stage.name for stage in self.stages)}; {self.attach})"

    def _placeable(self, primitive: str) -> None:
        super()._placeable(primitive)
        for stage in self.stages:
            if stage.is_output:
                raise ScheduleError(
                    f"{primitive}: {self.name} holds stage {stage.name}, an output of the "
                    "schedule, which stays at the root"
                )


def groups_of(member: Attachable) -> tuple[Group, ...]:
    """List the groups that something is in, the innermost first."""
    found: list[Group] = []
    while member.group is not None:
        member = member.group
        found.append(member)
    return tuple(found)


def group_of(schedule: Schedule, ops: Iterable[Operation]) -> Group:
    """Put the stages of some operations into a group.

    A group of which all stages are among them goes into the new one as a whole; ScheduleError
    where only a part of it is.
    """
    stages = [schedule[op] for op in ops]
    if not stages:
        raise ScheduleError(
            "create_group: nothing lies between the inputs and the outputs; give the tensors that "
            "the group reads as inputs"
        )
    held = set(stages)
    units = dict.fromkeys(_unit(stage, held) for stage in stages)
    parents = {unit.group for unit in units}
    if len(parents) > 1:
        cut = next(group for group in parents if group is not None)
        raise ScheduleError(
            f"create_group: {cut.name} is partly inside and partly outside of the group; take all "
            "of its stages or none"
        )
    return Group(schedule, tuple(units))


def _unit(stage: Stage, held: set[Stage]) -> Attachable:
    """Give the largest group around a stage that lies within `held` as a whole, or the stage."""
    unit: Attachable = stage
    while unit.group is not None and held.issuperset(unit.group.stages):
        unit = unit.group
    return unit


def between(
    schedule: Schedule, outputs: Sequence[Tensor], inputs: Sequence[Tensor], include_inputs: bool
) -> tuple[Operation, ...]:
    """List a schedule's operations on paths from the inputs to the outputs, producers first."""
    boundary = {id(schedule[t].op) for t in inputs}
    reaching: dict[int, bool] = {}
    order: list[Operation] = []
    stack = [(schedule[t].op, False) for t in reversed(outputs)]
    while stack:
        op, done = stack.pop()
        if done:
            reaching[id(op)] = any(reaching[id(schedule[t].op)] for t in op.input_tensors)
            if reaching[id(op)]:
                order.append(op)
        elif id(op) in boundary and id(op) not in reaching:
            reaching[id(op)] = True
            if include_inputs:
                order.append(op)
        elif id(op) not in reaching:
            reaching[id(op)] = False
            stack.append((op, True))
            stack += [(schedule[t].op, False) for t in reversed(op.input_tensors)]
    return tuple(order)
