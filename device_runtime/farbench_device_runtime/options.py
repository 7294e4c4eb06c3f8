"""The command line of `farbench-device`, with what environment and file add to it."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farbench_device_runtime import __version__, facts
from farbench_device_runtime.settings import (
    Settings,
    default_state,
    parse_cores,
    parse_size,
)
from farbench_rpc.address import Address, parse_address
from farbench_rpc.errors import AddressError

TRACKER_PORT = 9190
# What requirements take from the device itself, whatever a label says.
_OWN_WORDS = frozenset(("id", "name", "arch"))
_SIZES = ("memory_limit", "upload_limit", "store_limit", "free_floor", "file_limit")
_TIMES = ("load_timeout_s", "term_grace_s", "lock_wait_s")


class UsageError(ValueError):
    """A flag, a variable or a line of the file cannot be used; the message names it."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    tracker: Address
    listen: Address
    name: str
    labels: dict[str, str]
    settings: Settings
    insecure: bool
    json: bool
    until_eof: bool = False


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; every flag has the name of its line in device.toml."""
    parser = argparse.ArgumentParser(
        prog="farbench-device",
        description="Offer this machine to a farbench tracker: run and time what it is sent.",
    )
    add = parser.add_argument
    add("--tracker", metavar="HOST:PORT", help="the tracker (else FARBENCH_TRACKER)")
    add("--name", help="how people call this device (default: the host's name)")
    add("--label", action="append", metavar="KEY=VALUE", help="a label; may be repeated")
    add("--cores", metavar="LIST", help="the cores that run and time code, such as 0,2-3")
    add("--emulated", action="store_true", default=None, help="timings here mean nothing")
    add("--state", metavar="DIR", help="where id and uploads are kept")
    add("--listen", metavar="HOST:PORT", help="where clients connect (default: a free port)")
    add("--insecure", action="store_true", default=None, help="listen beyond loopback, no keys")
    add("--memory-limit", metavar="SIZE", help="memory of a worker (default: half of the free)")
    add("--config", metavar="FILE", help="settings in TOML, table [device]")
    add("--json", action="store_true", help="say what happens as a line of JSON each")
    add("--until-eof", action="store_true", help="end when standard input reaches its end")
    add("--version", action="version", version=f"farbench-device {__version__}")
    return parser


def read_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Read flags, which win over the environment, which wins over the file; UsageError."""
    flags = build_parser().parse_args(arguments)
    given = _file(flags.config, environment)
    if environment.get("FARBENCH_TRACKER"):
        given["tracker"] = environment["FARBENCH_TRACKER"]
    given.update({key: value for key, value in vars(flags).items() if value is not None})
    if not given.get("tracker"):
        raise UsageError("--tracker HOST:PORT is missing (or set FARBENCH_TRACKER)")
    tracker = _address("--tracker", str(given["tracker"]), TRACKER_PORT)
    insecure = bool(given.get("insecure"))
    listen = _listen(given.get("listen"), tracker, insecure)
    name = str(given.get("name") or socket.gethostname() or "device")
    if len(name) > 120 or not name.isprintable():
        raise UsageError("--name has 1 to 120 printable characters")
    return Options(
        tracker,
        listen,
        name,
        _labels(given.get("label") or (), given.get("labels") or {}),
        _settings(given, environment),
        insecure,
        bool(flags.json),
        bool(flags.until_eof),
    )


def _settings(given: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    chosen: dict[str, Any] = {}
    for key in _SIZES:
        if given.get(key) is not None:
            chosen[key] = _checked(key, parse_size, str(given[key]))
    for key in _TIMES:
        if given.get(key) is not None:
            chosen[key] = _checked(key, _seconds, given[key])
    if given.get("cores"):
        chosen["cores"] = _checked("cores", parse_cores, str(given["cores"]))
    state = Path(str(given["state"])) if given.get("state") else default_state(environment)
    emulated = bool(given.get("emulated")) or facts.looks_emulated()
    return Settings(state.expanduser().absolute(), emulated=emulated, **chosen)


def _checked(key: str, read: Any, value: Any) -> Any:
    try:
        return read(value)
    except ValueError as cause:
        raise UsageError(f"--{key.replace('_', '-')}: {cause}") from cause


def _seconds(value: Any) -> float:
    try:
        seconds = float(value)
    except TypeError:
        raise ValueError(f"{value!r} is not a number of seconds") from None
    if not 0 <= seconds < 1e9:
        raise ValueError(f"{value!r} is out of range for seconds")
    return seconds


def _address(flag: str, text: str, port: int) -> Address:
    try:
        return parse_address(text, port)
    except AddressError as cause:
        raise UsageError(f"{flag}: {cause.message}") from cause


def _listen(text: Any, tracker: Address, insecure: bool) -> Address:
    if text:
        return _address("--listen", str(text), 0)
    # Of the family that the tracker is spoken to in, since that is the address it hands out.
    six = ":" in tracker.host
    if insecure:
        return Address("::" if six else "0.0.0.0", 0)  # noqa: S104 - asked for by --insecure
    return Address("::1" if six else "127.0.0.1", 0)


def _labels(flags: Sequence[str], table: Mapping[str, Any]) -> dict[str, str]:
    labels = {str(key): str(value) for key, value in table.items()}
    for text in flags:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--label {text!r}: write it as KEY=VALUE")
        labels[key] = value
    for key, value in labels.items():
        if not key or not key.isprintable() or not value.isprintable():
            raise UsageError(f"--label {key!r}: keys and values are printable, keys not empty")
        if key in _OWN_WORDS:
            raise UsageError(f"--label {key!r}: the device says that itself; choose another key")
    return labels


def _file(path: str | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Read the [device] table of the file named, or of config.toml where there is one."""
    where = Path(path) if path else _default_file(environment)
    if path is None and not where.is_file():
        return {}
    try:
        import tomllib
    except ImportError:
        if path is None:
            return {}
        raise UsageError(f"--config {path} needs Python 3.11; use flags instead") from None
    try:
        table = tomllib.loads(where.read_text(encoding="utf-8")).get("device", {})
    except OSError as cause:
        raise UsageError(f"cannot read {where}: {cause.strerror}") from cause
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise UsageError(f"cannot read {where}: {cause}") from cause
    known = {"tracker", "name", "labels", "cores", "emulated", "state", "listen", "insecure"}
    unknown = sorted(set(table) - known - set(_SIZES) - set(_TIMES))
    if unknown:
        raise UsageError(f"{where}: there is no setting {unknown[0]!r} in [device]")
    return dict(table)


def _default_file(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CONFIG_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".config"
    return root / "farbench" / "config.toml"
