"""What whoever runs the tracker may set; read once, handed down as one value."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from farbench_tracker.errors import SettingsError


@dataclass(frozen=True)
class Settings:
    """Times in seconds; the defaults suit a fleet on one network. See configs/tracker.toml."""

    ttl_s: float = 3.0  # a lease that neither end renews for so long is over
    renew_s: float = 1.0  # client and leased device renew this often
    kill_s: float = 1.0  # what a device may need to end a session
    beat_s: float = 5.0  # an idle device gives a sign of life this often
    lost_beats: int = 3  # a device that misses so many is lost
    confirm_s: float = 2.0  # a device that does not confirm a grant in this time is passed over
    forget_s: float = 86_400.0  # a lost device leaves the list after this time
    max_session_s: float = 86_400.0  # the longest session_timeout that may be asked for
    max_wait_s: float = 86_400.0  # the longest wait that may be asked for
    tell_s: float = 1.0  # waiting clients hear of a changed place at most this often
    answer_s: float = 60.0  # how long a repeated request gets the answer of the first
    max_devices: int = 20_000
    max_waiting: int = 10_000

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise SettingsError(f"{name} must be over 0 and finite, not {getattr(self, name)}")
        if self.ttl_s < 2 * self.renew_s:
            raise SettingsError(
                f"ttl_s ({self.ttl_s:g}) must be twice renew_s ({self.renew_s:g}) or more, "
                "so that one late renewal does not end a lease"
            )

    @property
    def lost_s(self) -> float:
        """Silence after which an idle device is lost."""
        return self.beat_s * self.lost_beats

    @property
    def hold_s(self) -> float:
        """Silence after which a device has ended its session by its own clock."""
        return self.ttl_s + self.kill_s


def settings_from(table: Mapping[str, object]) -> Settings:
    """Make settings of a table, such as the `[tracker]` of a TOML file.

    Raises:
        SettingsError: a name is unknown (near ones are named), or a value does not fit.
    """
    known = {field.name: field.type for field in fields(Settings)}
    given: dict[str, float] = {}
    for name, value in table.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known)}"
            raise SettingsError(f"unknown setting {name!r}; {hint}")
        whole = known[name] == "int"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            kind = "a whole number" if whole else "a number"
            raise SettingsError(f"{name} must be {kind}, not {value!r}")
        given[name] = value if whole else float(value)
    return Settings(**given)  # type: ignore[arg-type]  # the loop above checked each
