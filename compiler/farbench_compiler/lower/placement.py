"""Where each stage is computed: the loops around it, and that all its readers are inside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.attach import At
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.stage import Stage

Place = tuple[Stage, IterVar]


@dataclass(frozen=True)
class Placement:
    """The stages that keep loops, producers first, and what each loop contains."""

    ops: Mapping[Stage, ComputeOp]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages with loops, producers before readers."""
        return tuple(self.ops)

    def roots(self) -> tuple[Stage, ...]:
        """The stages that stand in the function's own sequence."""
        return tuple(s for s in self.ops if not isinstance(s.place(), At))

    def attached(self, stage: Stage, axis: IterVar) -> tuple[Stage, ...]:
        """The stages that one loop contains, producers first."""
        places = ((s, s.place()) for s in self.ops)
        return tuple(
            s for s, at in places if isinstance(at, At) and at.stage is stage and at.axis is axis
        )

    def readers(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages that read what a stage computes."""
        made = stage.op.outputs
        return tuple(s for s, op in self.ops.items() if any(t in made for t in op.input_tensors))

    def path(self, stage: Stage) -> tuple[Place, ...]:
        """The loops around a stage, outermost first."""
        at = stage.place()
        if not isinstance(at, At):
            return ()
        parent, axis = at.stage, at.axis
        last = parent.leaf_index(axis)
        if last is None:
            raise ScheduleError(
                f"compute_at: stage {stage.name} is attached to axis {axis.name} of stage "
                f"{parent.name}, which {parent.fate(axis)}"
            )
        own = tuple((parent, iv) for iv in parent.leaf_iter_vars[: last + 1])
        return self.path(parent) + own

    def check(self) -> None:
        """Raise ScheduleError where a stage is attached to a loop without all its readers."""
        for stage in self.ops:
            at = stage.place()
            if isinstance(at, At):
                self._check_attached(stage, at)

    def _check_attached(self, stage: Stage, at: At) -> None:
        where = f"axis {at.axis.name} of stage {at.stage.name}"
        if at.stage not in self.ops:
            raise ScheduleError(
                f"compute_at: stage {stage.name} is attached to {where}, which has no loops"
            )
        self._check_cycle(stage)
        self.path(stage)
        if at.stage.kinds.get(at.axis) == "vectorized":
            raise ScheduleError(
                f"compute_at: stage {stage.name} is attached to {where}, which is vectorized; "
                "attach to a loop around it"
            )
        for reader in self.readers(stage):
            if not self._inside(reader, at):
                raise ScheduleError(
                    f"compute_at: stage {stage.name} is attached to {where}, but stage "
                    f"{reader.name} reads it outside; attach further out or use compute_root"
                )

    def _check_cycle(self, stage: Stage) -> None:
        seen, at = [stage], stage.place()
        while isinstance(at, At):
            if at.stage in seen:
                raise ScheduleError(
                    f"compute_at: stages {stage.name} and {at.stage.name} are attached to each "
                    "other; use compute_root for one"
                )
            seen.append(at.stage)
            at = at.stage.place()

    def _inside(self, reader: Stage, at: At) -> bool:
        if reader is at.stage:
            return True
        return any(stage is at.stage and iv is at.axis for stage, iv in self.path(reader))
