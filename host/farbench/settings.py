"""Settings of the host: flags over environment over config.toml, read once at the door."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farbench.errors import SettingsError
from farbench.extras import load
from farbench_rpc.address import Address, parse_address
from farbench_rpc.limits import MAX_THREADS

TRACKER_PORT = 9190
FILE_NAME = "config.toml"

# Key in the file -> field of Settings and the type it must have there.
_KEYS: dict[str, type] = {"tracker": str, "user": str, "wait_s": float, "session_timeout_s": float}
# Tables of the same file that other programs read: farbench-device has [device].
_OTHERS = frozenset({"device"})
_ENVIRONMENT = {"tracker": "FARBENCH_TRACKER", "user": "FARBENCH_USER"}


@dataclass(frozen=True)
class Settings:
    """What is the same for every command: who asks, which tracker, how long to wait (seconds)."""

    tracker: str = f"127.0.0.1:{TRACKER_PORT}"
    user: str = ""
    wait_s: float = 60.0
    session_timeout_s: float = 600.0

    @property
    def tracker_address(self) -> Address:
        """The tracker's address; SettingsError when it cannot be read."""
        if not self.tracker.strip():
            raise SettingsError("the tracker's address is empty; write HOST:PORT")
        return parse_address(self.tracker, TRACKER_PORT)


def config_path() -> Path:
    """Give the place of config.toml on this system (it need not exist)."""
    folder: str = load("platformdirs").user_config_dir("farbench", appauthor=False)
    return Path(folder) / FILE_NAME


def state_folder() -> Path:
    """Give the folder for what this user's programs must not forget."""
    folder: str = load("platformdirs").user_state_dir("farbench", appauthor=False)
    return Path(folder)


def load_settings(
    path: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read the file (default: `config_path()`), then the environment over it."""
    env = os.environ if environment is None else environment
    found = Settings(user=_login())
    given: dict[str, Any] = _from_file(path if path is not None else config_path())
    given |= {field: env[name] for field, name in _ENVIRONMENT.items() if env.get(name)}
    return replace(found, **given)


def default_threads(environment: Mapping[str, str] | None = None) -> int | None:
    """Read how many threads a pool has where nothing else is said, as TVM reads it; None: no word.

    OMP_NUM_THREADS may be a list, of which the first counts. SettingsError for what is no count.
    """
    env = os.environ if environment is None else environment
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        text = env.get(name, "").partition(",")[0].strip()
        if not text:
            continue
        if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_THREADS:
            raise SettingsError(f"{name} must be a number from 1 to {MAX_THREADS}, not {text!r}")
        return int(text)
    return None


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's uid without a name
        return "unknown"


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; FileNotFoundError, or SettingsError that says what else is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    try:
        import tomllib
    except ModuleNotFoundError:  # before Python 3.11
        tomllib = load("tomli")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = read_toml(path)
    except FileNotFoundError:
        return {}
    return {key: _checked(path, key, value) for key, value in table.items() if key not in _OTHERS}


def _checked(path: Path, key: str, value: object) -> str | float:
    wanted = _KEYS.get(key)
    if wanted is None:
        raise SettingsError(f"{path}: unknown setting {key!r}; known: {', '.join(_KEYS)}")
    if wanted is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if value <= 0:
            raise SettingsError(f"{path}: {key} must be over 0 seconds, not {value}")
        return float(value)
    if wanted is str and isinstance(value, str):
        return value
    raise SettingsError(f"{path}: {key} must be a {wanted.__name__}, not {value!r}")
