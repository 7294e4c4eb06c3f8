"""Typed reading of plain data: each reader takes a value, checks it, and gives the typed one.

Readers are composed like the types they read. `At` says where in the data a value stands, for the
error, and whether unknown fields are passed over (data of a newer minor version) or refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from farbench_rpc.manifest.errors import ManifestError

T = TypeVar("T")


@dataclass(frozen=True)
class At:
    """A place in the data."""

    path: str
    lenient: bool = False

    def __truediv__(self, step: str | int) -> At:
        """Give the place of a field or an item within this one."""
        return At(f"{self.path}.{step}", self.lenient)

    def fail(self, expected: str, got: object) -> ManifestError:
        """Make the error of this place."""
        shown = repr(got)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return ManifestError(f"{self.path}: expected {expected}, got {shown}")


Reader = Callable[[object, At], T]


def text(limit: int, pattern: str = "", what: str = "") -> Reader[str]:
    """Read a str of at most `limit` characters, all of it matching `pattern` if given."""
    compiled = re.compile(pattern) if pattern else None

    def read(value: object, at: At) -> str:
        if not isinstance(value, str) or len(value) > limit:
            raise at.fail(f"a text of at most {limit} characters", value)
        if compiled is not None and compiled.fullmatch(value) is None:
            raise at.fail(what or f"a text like {pattern}", value)
        return value

    return read


def integer(low: int, high: int) -> Reader[int]:
    """Read an int of [low, high]."""

    def read(value: object, at: At) -> int:
        if type(value) is not int or not low <= value <= high:
            raise at.fail(f"an integer from {low} to {high}", value)
        return value

    return read


def boolean(value: object, at: At) -> bool:
    """Read a bool."""
    if not isinstance(value, bool):
        raise at.fail("true or false", value)
    return value


def choice(*allowed: str) -> Reader[str]:
    """Read one of some words."""

    def read(value: object, at: At) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise at.fail(f"one of {', '.join(allowed)}", value)
        return value

    return read


def sequence(item: Reader[T], limit: int) -> Reader[tuple[T, ...]]:
    """Read a list of at most `limit` items."""

    def read(value: object, at: At) -> tuple[T, ...]:
        if not isinstance(value, (list, tuple)) or len(value) > limit:
            raise at.fail(f"a list of at most {limit} items", value)
        return tuple(item(element, at / index) for index, element in enumerate(value))

    return read


def either(first: Reader[Any], second: Reader[Any]) -> Reader[Any]:
    """Read an int by the first reader, anything else by the second."""

    def read(value: object, at: At) -> Any:
        return first(value, at) if type(value) is int else second(value, at)

    return read


def record(cls: type[T], readers: Mapping[str, Reader[Any]]) -> Reader[T]:
    """Read a map into a dataclass; fields with a default may be absent."""
    required = {f.name for f in fields(cls) if f.default is MISSING}  # type: ignore[arg-type]

    def read(value: object, at: At) -> T:
        if not isinstance(value, dict):
            raise at.fail("a map", value)
        unknown = [name for name in value if name not in readers]
        if unknown and not at.lenient:
            raise at.fail(f"only the fields {', '.join(readers)}", unknown[0])
        for name in required:
            if name not in value:
                raise ManifestError(f"{at.path}: the field {name!r} is missing")
        return cls(**{n: read(value[n], at / n) for n, read in readers.items() if n in value})

    return read


def tagged(tag: str, variants: Mapping[str, Reader[Any]]) -> Reader[Any]:
    """Read a map whose field `tag` says which of the variants it is."""

    def read(value: object, at: At) -> Any:
        if not isinstance(value, dict):
            raise at.fail("a map", value)
        kind = choice(*variants)(value.get(tag), at / tag)
        return variants[kind]({k: v for k, v in value.items() if k != tag}, at)

    return read
