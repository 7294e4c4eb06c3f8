"""The common case of reading and writing a dataclass, as straight code made from its fields.

All fields are there and fit: then a message is read or written without a call a field, which on a
path of some tens of microseconds is worth it. Whatever else comes is handed to the complete
function, which finds out what is wrong. The source is made of field names of our own classes only,
as dataclasses itself does; nothing of a peer gets into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from farbench_rpc.limits import INT64_MAX, INT64_MIN

Convert = Callable[[Any, int], Any]
"""(value, minor version) -> converted value."""

_NUMBERS = {
    "int": f"type({{v}}) is int and {INT64_MIN} <= {{v}} <= {INT64_MAX}",
    "float": "type({v}) is float",
    "seconds": "type({v}) is float and isfinite({v})",
    "bool": "type({v}) is bool",
}
_READ = {**_NUMBERS, "str": "type({v}) is bytes"}
_WRITE = {**_NUMBERS, "str": "type({v}) is str"}


@dataclass(frozen=True)
class Part:
    """A field: `kind` is a key of the tables above, or "" for what its own functions convert."""

    name: str
    kind: str
    read: Convert
    write: Convert


def straight_reader(
    cls: type[Any], parts: list[Part], since: int, slow: Convert, refusal: type[Exception]
) -> Convert:
    """Make a reader for raw maps from minor version `since` on; `slow` takes everything else."""
    values = [_READ_VALUE.get(p.kind, "r{i}(v{i}, minor)").format(i=i) for i, p in enumerate(parts)]
    lines = [
        "def read(raw, minor):",
        f"    if type(raw) is dict and len(raw) == {len(parts)} and minor >= {since}:",
        "        try:",
        *[f"            v{i} = raw[{p.name.encode()!r}]" for i, p in enumerate(parts)],
        f"            if {_all_fit(parts, _READ)}:",
        f"                return cls({', '.join(values)})",
        "        except (KeyError, UnicodeDecodeError, refusal):",
        "            return slow(raw, minor)",
        "    return slow(raw, minor)",
    ]
    names = {f"r{i}": p.read for i, p in enumerate(parts)}
    return _made("read", lines, {**names, "cls": cls, "slow": slow, "refusal": refusal})


def straight_writer(
    cls: type[Any], parts: list[Part], since: int, slow: Convert, refusal: type[Exception]
) -> Convert:
    """Make a writer of objects from minor version `since` on; `slow` takes everything else."""
    pairs = [
        f"{p.name!r}: " + (f"v{i}" if p.kind else f"w{i}(v{i}, minor)") for i, p in enumerate(parts)
    ]
    lines = [
        "def write(value, minor):",
        f"    if type(value) is cls and minor >= {since}:",
        *[f"        v{i} = value.{p.name}" for i, p in enumerate(parts)],
        "        try:",
        f"            if {_all_fit(parts, _WRITE)}:",
        f"                return {{{', '.join(pairs)}}}",
        "        except refusal:",
        "            return slow(value, minor)",
        "    return slow(value, minor)",
    ]
    names = {f"w{i}": p.write for i, p in enumerate(parts)}
    return _made("write", lines, {**names, "cls": cls, "slow": slow, "refusal": refusal})


_READ_VALUE = {**dict.fromkeys(_NUMBERS, "v{i}"), "str": "v{i}.decode()"}


def _all_fit(parts: list[Part], table: dict[str, str]) -> str:
    tests = [table[p.kind].format(v=f"v{i}") for i, p in enumerate(parts) if p.kind]
    return " and ".join(tests) or "True"


def _made(name: str, lines: list[str], names: dict[str, Any]) -> Convert:
    scope = {**names, "isfinite": math.isfinite}
    exec("\n".join(lines), scope)
    made: Convert = scope[name]
    return made
