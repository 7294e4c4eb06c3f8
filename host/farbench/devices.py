"""Where an array lives: the caller's own memory, or the memory of a session's worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farbench.errors import UsageError

if TYPE_CHECKING:
    from farbench.session import Session


@dataclass(frozen=True, eq=False)
class Device:
    """A place for arrays; without a session it is the memory of the caller's process."""

    session: Session | None = None
    kind: str = "cpu"

    @property
    def exist(self) -> bool:
        """Tell whether it can be used: this process always, a device while its session is open."""
        return self.session is None or not self.session.closed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self.session is other.session and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((self.kind, id(self.session)))

    def __repr__(self) -> str:
        return "cpu()" if self.session is None else f"{self.session.name}.cpu()"


_HERE = ("cpu", "llvm", "c")


def device(kind: str, index: int = 0) -> Device:
    """Give a place for arrays by TVM's names: `cpu` or `llvm`; other devices are sessions."""
    if kind.split()[0] not in _HERE if kind.split() else True:
        raise UsageError(f"no device {kind!r} here; {' and '.join(_HERE[:2])} name this machine")
    return cpu(index)


def place(*given: Device | None) -> Device | None:
    """Choose the device among the names that an argument has had (`device`, `ctx`, `dev`)."""
    named = [one for one in given if one is not None]
    if len(named) > 1:
        raise UsageError("give the device once: as device, as ctx or as dev")
    return named[0] if named else None


def cpu(index: int = 0) -> Device:
    """Give the memory of this process; the only index is 0."""
    if index != 0:
        raise UsageError(f"there is no cpu({index}); this machine is cpu(0), others are sessions")
    return Device()
