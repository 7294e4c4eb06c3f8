"""The CPUs and features of an architecture: what implies what, and what a name was meant to be.

LLVM must never see a name that it does not know, since that can end the process. The tables are
made by `make_table.py`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from farbench_compiler.errors import TargetError

ARCHES = ("x86_64", "aarch64", "armv7", "riscv64")
BASELINES = {
    "x86_64": "x86-64",
    "aarch64": "generic",
    "armv7": "generic",
    "riscv64": "generic-rv64",
}


@dataclass(frozen=True)
class Table:
    """One architecture's CPUs and features, by LLVM name, each with what it implies."""

    arch: str
    features: Mapping[str, tuple[str, ...]]
    cpus: Mapping[str, tuple[str, ...]]

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """Give features with all that they imply."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo.extend(self.features[name])
        return frozenset(found)

    @cached_property
    def _dependants(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {name: {name} for name in self.features}
        for name in self.features:
            for implied in self.closure((name,)):
                found[implied].add(name)
        return {name: frozenset(names) for name, names in found.items()}

    def dependants(self, name: str) -> frozenset[str]:
        """Give a feature and all that imply it, which cannot be on without it."""
        return self._dependants[name]

    def check_cpu(self, name: str) -> str:
        """Give back a CPU's name; TargetError with near matches if there is none such."""
        if name not in self.cpus:
            raise TargetError(f"unknown cpu {name!r} for {self.arch}; {near(name, self.cpus)}")
        return name

    def check_feature(self, name: str) -> str:
        """Give back a feature's name; TargetError with near matches if there is none such."""
        if name not in self.features:
            hint = near(name, self.features)
            raise TargetError(f"unknown feature {name!r} for {self.arch}; {hint}")
        return name


def near(name: str, known: Iterable[str], count: int = 4) -> str:
    """Say which known names are like this one, or which there are."""
    plain = {_plain(other): other for other in known}
    hits = difflib.get_close_matches(_plain(name), list(plain), count, 0.6)
    if not hits:
        hits = [key for key in plain if _plain(name) and _plain(name) in key][:count]
    if hits:
        return f"did you mean {', '.join(plain[hit] for hit in hits)}?"
    some = sorted(plain.values())
    shown = ", ".join(some[:12])
    return f"known: {shown}{', ...' if len(some) > 12 else ''}"


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


@lru_cache(maxsize=len(ARCHES))
def table(arch: str) -> Table:
    """Load the table of one of `ARCHES`."""
    path = Path(__file__).with_name("tables") / f"{arch}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    features = {name: tuple(has.split()) for name, has in data["features"].items()}
    cpus = {name: tuple(has.split()) for name, has in data["cpus"].items()}
    return Table(arch, features, cpus)
