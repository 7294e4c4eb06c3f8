"""What a user asks of a device, as text: parsed, written back, and matched.

    requirement = [ term { "," term } ]                 all terms must hold; empty fits every device
    term        = word                                  a flag that is true
                | "!" word                              a flag that is false or absent
                | word ( "=" | "!=" ) word
                | word ( ">=" | "<=" | ">" | "<" ) quantity       a number with an optional unit
                | word "in" "(" word { "|" word } ")"
    word        = plain characters | '"' any characters, `\\"` and `\\\\` escaped '"'

Words name the device's `id`, its `name`, a label of its owner, or a fact that it found (in this
order), so that a label overrides a fact. What is absent equals nothing: `board!=pi4` fits a device
without a board.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from farbench_tracker.errors import RequirementError
from farbench_tracker.quantity import parse_quantity, unit_names

Op = Literal["flag", "!flag", "=", "!=", ">=", "<=", ">", "<", "in"]
FactValue = str | int | float | bool | tuple[str, ...]

MAX_CHARS: Final = 4096
MAX_TERMS: Final = 64

_SPECIAL: Final = frozenset(',=!<>()|"\\')
_OPS: Final[tuple[Op, ...]] = (">=", "<=", "!=", "=", ">", "<")
_ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TRUE: Final = frozenset(("true", "yes", "on", "1", ""))  # a label without a value is a flag
_FALSE: Final = frozenset(("false", "no", "off", "0"))


class Described(Protocol):
    """Whatever a requirement can be held against."""

    @property
    def id(self) -> str:
        """Give the stable id."""

    @property
    def name(self) -> str:
        """Give the name that its owner chose."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Give what its owner says of it."""

    @property
    def facts(self) -> Mapping[str, FactValue]:
        """Give what it found out about itself."""


@dataclass(frozen=True)
class Term:
    """One condition: `values` holds one word, several for `in`, none for a flag."""

    key: str
    op: Op
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        key = quote(self.key)
        match self.op:
            case "flag":
                return key
            case "!flag":
                return f"!{key}"
            case "in":
                return f"{key} in ({'|'.join(quote(v) for v in self.values)})"
            case _:
                return f"{key}{self.op}{quote(self.values[0])}"

    def holds(self, device: Described) -> bool:
        """Tell whether `device` satisfies this term."""
        value = value_of(device, self.key)
        match self.op:
            case "flag":
                return is_set(value)
            case "!flag":
                return not is_set(value)
            case "=" | "in":
                return any(equals(value, wanted) for wanted in self.values)
            case "!=":
                return not equals(value, self.values[0])
            case _:
                number, bound = number_of(value), parse_quantity(self.values[0])
                return number is not None and bound is not None and _ORDER[self.op](number, bound)


@dataclass(frozen=True)
class Requirement:
    """Terms that must all hold; its text reads back to an equal requirement."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return ",".join(str(term) for term in self.terms)

    def matches(self, device: Described) -> bool:
        """Tell whether `device` satisfies every term."""
        return all(term.holds(device) for term in self.terms)

    def pinned(self, key: str) -> str | None:
        """Give the value that a term `key=value` demands, None if there is none."""
        for term in self.terms:
            if term.key == key and term.op == "=":
                return term.values[0]
        return None


def parse(text: str) -> Requirement:
    """Read a requirement.

    Raises:
        RequirementError: one line with the position (from 1) and what to try.
    """
    if len(text) > MAX_CHARS:
        raise RequirementError(f"has {len(text)} characters, {MAX_CHARS} are allowed", MAX_CHARS)
    return Requirement(tuple(_Reader(text).terms()))


def quote(word: str) -> str:
    """Write `word` so that it reads back: as it is where that is possible, else in quotes."""
    if word and not any(_ends_word(char) for char in word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def value_of(device: Described, key: str) -> FactValue | None:
    """Give what `key` means for `device`; None if it says nothing of it."""
    if key == "id":
        return device.id
    if key == "name":
        return device.name
    label = device.labels.get(key)
    return device.facts.get(key) if label is None else label


def is_set(value: FactValue | None) -> bool:
    """Tell whether a value is a flag that is true."""
    if isinstance(value, str):
        return value.lower() in _TRUE
    return bool(value)


def equals(value: FactValue | None, wanted: str) -> bool:
    """Compare a value with a word: as text, number, truth, or member of a list."""
    match value:
        case None:
            return False
        case bool():
            return wanted.lower() in (_TRUE if value else _FALSE)
        case int() | float():
            return parse_quantity(wanted) == value
        case str():
            return value == wanted
        case _:
            return wanted in value


def number_of(value: FactValue | None) -> int | float | None:
    """Read a value as a number (a label may carry a unit); None if it is not one."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return value
    return parse_quantity(value) if isinstance(value, str) else None


def _ends_word(char: str) -> bool:
    return char in _SPECIAL or char.isspace() or not char.isprintable()


class _Reader:
    """A cursor over the text of one requirement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def terms(self) -> list[Term]:
        """Read all terms to the end of the text."""
        found: list[Term] = []
        self._space()
        if self._ended():
            return found
        while True:
            found.append(self._term())
            if len(found) > MAX_TERMS:
                raise self._error(f"more than {MAX_TERMS} terms", "ask for less")
            self._space()
            if self._ended():
                return found
            if not self._take(","):
                raise self._error(f"unexpected {self._here()}", "put a comma between terms")

    def _term(self) -> Term:
        self._space()
        if self._take("!"):
            key = self._word("a flag after '!'")
            self._space()
            if not self._ended() and self.text[self.at] != ",":
                raise self._error(
                    f"unexpected {self._here()} after !{quote(key)}", "write KEY!=VALUE"
                )
            return Term(key, "!flag")
        key = self._word("a key")
        self._space()
        for op in _OPS:
            if self._take(op):
                return self._comparison(key, op)
        if self._take_in():
            return Term(key, "in", self._choices())
        return Term(key, "flag")

    def _comparison(self, key: str, op: Op) -> Term:
        if op == "=":
            self._take("=")  # `==` is what programmers type
        self._space()
        start = self.at
        value = self._word(f"a value after {op}")
        if op in _ORDER:
            value += self._unit(value)
            if parse_quantity(value) is None:
                self.at = start
                raise self._error(
                    f"{value!r} is not a number", f"write a number and a unit of {unit_names()}"
                )
        return Term(key, op, (value,))

    def _unit(self, number: str) -> str:
        """Read a unit that a space parts from its number."""
        before = self.at
        self._space()
        if self._ended() or _ends_word(self.text[self.at]):
            self.at = before
            return ""
        unit = self._word("a unit")
        if parse_quantity(number + unit) is None:
            self.at = before
            return ""
        return unit

    def _choices(self) -> tuple[str, ...]:
        values = [self._spaced("a value")]
        while self._take("|"):
            values.append(self._spaced("a value after '|'"))
        if not self._take(")"):
            raise self._error(f"unexpected {self._here()}", "write KEY in (A|B)")
        return tuple(values)

    def _spaced(self, what: str) -> str:
        self._space()
        word = self._word(what)
        self._space()
        return word

    def _word(self, what: str) -> str:
        if self._take('"'):
            return self._quoted()
        start = self.at
        while not self._ended() and not _ends_word(self.text[self.at]):
            self.at += 1
        if start == self.at:
            raise self._error(f"expected {what}, found {self._here()}", self._advice())
        return self.text[start : self.at]

    def _advice(self) -> str:
        """Say what to try where a word is missing."""
        if not self._ended() and self.text[self.at] != ",":
            return "quote it"
        before = self.text[: self.at].rstrip()
        missing = bool(before) and not before.endswith(",")
        return "write it, or drop the term" if missing else "drop the comma"

    def _quoted(self) -> str:
        start = self.at
        out: list[str] = []
        while not self._ended():
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                return "".join(out)
            if char == "\\":
                if self._ended():
                    break
                char = self.text[self.at]
                self.at += 1
            out.append(char)
        self.at = start - 1
        raise self._error("the quote is never closed", 'end it with " (a quote inside is \\")')

    def _take_in(self) -> bool:
        """Take `in (`; a key named `in` is left alone."""
        rest = self.text[self.at :]
        opened = rest[2:].lstrip()
        if not rest.startswith("in") or not opened.startswith("("):
            return False
        self.at = len(self.text) - len(opened) + 1
        return True

    def _take(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def _space(self) -> None:
        while not self._ended() and self.text[self.at].isspace():
            self.at += 1

    def _ended(self) -> bool:
        return self.at >= len(self.text)

    def _here(self) -> str:
        return "the end" if self._ended() else repr(self.text[self.at])

    def _error(self, what: str, advice: str) -> RequirementError:
        return RequirementError(f"{what}; {advice}", self.at + 1, self.text)
