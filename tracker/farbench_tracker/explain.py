"""Why no device fits a requirement: how far each term carries, and what comes nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from farbench_tracker.quantity import parse_quantity
from farbench_tracker.requirement import (
    Described,
    FactValue,
    Requirement,
    Term,
    number_of,
    quote,
    value_of,
)

SHOWN_VALUES: Final = 3
# Near words are sought among this many; beyond, the search would cost more than it tells.
_COMPARED: Final = 500
_ORDERED: Final = frozenset((">=", "<=", ">", "<"))


@dataclass(frozen=True)
class TermReport:
    """How many devices satisfy a term; `hint` says what comes nearest where none does."""

    term: Term
    fitting: int
    hint: str = ""


@dataclass(frozen=True)
class Explanation:
    """Why nothing matches, for one line of text; `nearest` is the device that lacks least."""

    requirement: Requirement
    devices: int
    terms: tuple[TermReport, ...]
    nearest: str = ""

    @property
    def text(self) -> str:
        """Say it in one line."""
        if self.devices == 0:
            return "no device is registered; start one with `farbench device --tracker HOST:PORT`"
        lines = [
            f"{report.term} fits {report.fitting}" + (f" ({report.hint})" if report.hint else "")
            for report in self.terms
            if report.fitting < self.devices
        ]
        known = "1 device" if self.devices == 1 else f"{self.devices} devices"
        tail = f"; nearest: {self.nearest}" if self.nearest else ""
        return f"nothing matches {self.requirement} among {known}: {'; '.join(lines)}{tail}"


def explain(requirement: Requirement, devices: Iterable[Described]) -> Explanation:
    """Say why none of `devices` matches; the answer does not depend on their order."""
    known = sorted(devices, key=lambda device: device.id)
    missing = {
        device.id: [term for term in requirement.terms if not term.holds(device)]
        for device in known
    }
    reports = tuple(_report(term, known, missing) for term in requirement.terms)
    if not known:
        return Explanation(requirement, 0, reports)
    best = min(known, key=lambda device: (len(missing[device.id]), device.id))
    lacking = missing[best.id]
    nearest = ""
    if len(lacking) < len(requirement.terms):
        nearest = f"{quote(best.name)} but for " + ", ".join(str(term) for term in lacking)
    return Explanation(requirement, len(known), reports, nearest)


def _report(term: Term, known: list[Described], missing: dict[str, list[Term]]) -> TermReport:
    fitting = sum(1 for device in known if term not in missing[device.id])
    hint = "" if fitting or not known else _hint(term, known)
    return TermReport(term, fitting, hint)


def _hint(term: Term, known: list[Described]) -> str:
    """Say what devices have instead of what a term wants that fits none."""
    seen = [value for device in known if (value := value_of(device, term.key)) is not None]
    if not seen:
        return _unknown_key(term.key, known)
    if term.op in _ORDERED:
        return _nearest_number(term, seen)
    if term.op == "flag":
        texts = sorted({_show(value) for value in seen})
        return f"{quote(term.key)} is {_some(texts)}"
    if term.op in ("!=", "!flag"):
        return "it is so on every device"
    return _nearest_words(term, seen)


def _unknown_key(key: str, known: list[Described]) -> str:
    keys = {"id", "name"}.union(*(device.labels.keys() | device.facts.keys() for device in known))
    near = difflib.get_close_matches(key, sorted(keys)[:_COMPARED], SHOWN_VALUES)
    said = f"no device says anything of {quote(key)}"
    return f"{said}, did you mean {_some(near)}?" if near else said


def _nearest_number(term: Term, seen: list[FactValue]) -> str:
    bound = parse_quantity(term.values[0]) or 0
    numbers = [(abs(n - bound), n) for value in seen if (n := number_of(value)) is not None]
    if not numbers:
        return f"{quote(term.key)} is not a number but {_some(sorted({_show(v) for v in seen}))}"
    return f"nearest is {min(numbers)[1]}"


def _nearest_words(term: Term, seen: list[FactValue]) -> str:
    texts: set[str] = set()
    for value in seen:
        texts.update(value if isinstance(value, tuple) else (_show(value),))
    ordered = sorted(texts)
    near: list[str] = []
    for wanted in term.values:
        near += difflib.get_close_matches(wanted, ordered[:_COMPARED], SHOWN_VALUES)
    rest = [text for text in ordered if text not in near]
    return f"there is {_some(list(dict.fromkeys(near)) + rest)}"


def _show(value: FactValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "|".join(value) if isinstance(value, tuple) else str(value)


def _some(texts: list[str]) -> str:
    shown = ", ".join(quote(text) for text in texts[:SHOWN_VALUES])
    return f"{shown}, ..." if len(texts) > SHOWN_VALUES else shown
