"""What `tracker.toml` says: where to listen, and the settings. The caller reads the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from farbench_tracker.errors import SettingsError
from farbench_tracker.settings import Settings, settings_from


@dataclass(frozen=True)
class Options:
    """Where to listen (`insecure` allows it beyond loopback), the journal, and the settings.

    `journal` is a path, empty for the user's own state folder, or "none".
    """

    host: str = "127.0.0.1"
    port: int = 9190
    insecure: bool = False
    journal: str = ""
    settings: Settings = field(default_factory=Settings)


def options_from(document: Mapping[str, object]) -> Options:
    """Make options of a parsed `tracker.toml`, whose one table is `[tracker]`.

    Raises:
        SettingsError: a table or a setting is unknown, or a value does not fit.
    """
    others = sorted(document.keys() - {"tracker"})
    if others:
        raise SettingsError(f"unknown table or key {others[0]!r}; settings stand under [tracker]")
    table = document.get("tracker", {})
    if not isinstance(table, Mapping):
        raise SettingsError("'tracker' must be a table: write [tracker]")
    rest = dict(table)
    host = rest.pop("host", Options.host)
    port = rest.pop("port", Options.port)
    insecure = rest.pop("insecure", Options.insecure)
    journal = rest.pop("journal", Options.journal)
    if not isinstance(host, str):
        raise SettingsError(f"host must be text, not {host!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise SettingsError(f"port must be a whole number from 0 to 65535, not {port!r}")
    if not isinstance(insecure, bool):
        raise SettingsError(f"insecure must be true or false, not {insecure!r}")
    if not isinstance(journal, str):
        raise SettingsError(f"journal must be text, a path or none, not {journal!r}")
    return Options(host, port, insecure, journal, settings_from(rest))
