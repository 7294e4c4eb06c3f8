"""Where the stages of a schedule are computed, and the primitives that choose it.

attach ::= Root()            in the function's own sequence, or where the stage's group stands
         | Inline()          substituted into whoever reads it
         | At(stage, axis)   inside the loop `axis` of `stage`
         | InScan(scan)      in the innermost loop over the time of a scan: its updates
         | Beside(scan)      directly before a scan, wherever that stands: its first rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.axis import IterVar

if TYPE_CHECKING:
    from farbench_compiler.te.group import Group
    from farbench_compiler.te.schedule import Schedule
    from farbench_compiler.te.stage import Stage


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InScan:
    """Computed in each step of a scan, one row of it."""

    scan: Stage

    def __repr__(self) -> str:
        return f"InScan({self.scan.name})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beside:
    """Computed where a scan is, before it."""

    scan: Stage

    def __repr__(self) -> str:
        return f"Beside({self.scan.name})"


Attach = Root | Inline | At | InScan | Beside


class Attachable:
    """What can be placed: a stage, or a group of them.

    `home` is where `compute_root` puts it; a root within a group stands where the group does.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.attach: Attach = Root()
        self.home: Attach = self.attach
        self.group: Group | None = None

    @property
    def name(self) -> str:
        """What errors call it."""
        raise NotImplementedError

    def place(self) -> Root | Inline | At:
        """Give where it is computed, groups and scans looked through."""
        of: Attachable = self
        while True:
            match of.attach:
                case Root() if of.group is not None:
                    of = of.group
                case Beside(scan):
                    of = scan
                case InScan(scan):
                    return At(scan, scan.leaf_iter_vars[-1])
                case At(stage, axis):
                    return At(stage, stage.heir(axis))
                case found:
                    return found

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute what one step of the loop `scope` of `parent` reads, inside that loop."""
        self._placeable("compute_at")
        if not isinstance(parent, Attachable):
            raise ScheduleError(
                f"compute_at: {parent!r} is no stage; give s[C] and one of its axes"
            )
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
        parent.check_loop("compute_at", scope)
        self.attach = At(parent, scope)

    def compute_root(self) -> None:
        """Compute it as a whole, before whoever reads it (what a new schedule does)."""
        self.attach = self.home

    def _placeable(self, primitive: str) -> None:
        match self.home:
            case InScan(scan):
                raise ScheduleError(
                    f"{primitive}: stage {self.name} is an update of scan {scan.name} and stays "
                    "in its loop; compute_at what it reads"
                )
            case Beside(scan):
                raise ScheduleError(
                    f"{primitive}: stage {self.name} is the start of scan {scan.name} and stays "
                    "before it; compute_at what it reads"
                )
