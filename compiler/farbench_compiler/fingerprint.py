"""Fingerprints: one text that two programs share only where they are built from equal parts.

Everything that a schedule holds goes in, field by field: expressions, axes, relations, marks of
stages. What is added to any of these classes later is in it too, without being named here. Unique
numbers (`uid`) are left out; objects count by the order in which they are met, so that the same
program written down again has the same fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache

from farbench_compiler.ir.dtypes import DType

_PLAIN = frozenset((bool, int, float, str, bytes, complex, type(None)))
_LONG = 64  # bytes: from here on their hash stands for them
_OWN = "farbench_compiler"
_ALL = ("*",)  # of a class that declares no fields: whatever an object has


class NoFingerprintError(Exception):
    """A part of a program is known by its identity alone, so that no two builds can share it."""


def fingerprint(*parts: object) -> str:
    """Give the fingerprint of some parts; NoFingerprintError names the class that has none."""
    reader = _Reader()
    reader.take(parts)
    return hashlib.sha256("\x1f".join(reader.words).encode("utf-8", "surrogatepass")).hexdigest()


class _Reader:
    """Writes down what it is given; an object that was met before is its number."""

    def __init__(self) -> None:
        self.words: list[str] = []
        # Kept alive, so that no other object can have the same id meanwhile.
        self._met: dict[int, tuple[int, object]] = {}

    def take(self, value: object) -> None:
        """Write a value down."""
        kind = value.__class__
        if kind is bytes and len(value) > _LONG:  # type: ignore[arg-type]
            self.words.append(hashlib.sha256(value).hexdigest())  # type: ignore[arg-type]
        elif kind in _PLAIN:
            self.words.append(f"{kind.__name__}{value!r}")
        elif kind is tuple or kind is list:
            assert isinstance(value, (tuple, list))
            self.words.append(f"{kind.__name__}{len(value)}")
            for item in value:
                self.take(item)
        elif kind is DType:
            self.words.append(str(value))
        else:
            self._object(value, kind)

    def _object(self, value: object, kind: type) -> None:
        met = self._met.get(id(value))
        if met is not None:
            self.words.append(f"#{met[0]}")
            return
        self._met[id(value)] = (len(self._met), value)
        if isinstance(value, Mapping):
            self.words.append(f"{kind.__name__}{len(value)}")
            for key, item in value.items():
                self.take(key)
                self.take(item)
            return
        self.words.append(kind.__qualname__)
        names = _names(kind)
        if names is None:
            self._foreign(value, kind)
            return
        if names is _ALL and not hasattr(value, "__dict__"):
            raise NoFingerprintError(f"a {kind.__qualname__} has no fingerprint")
        for name in sorted(vars(value)) if names is _ALL else names:
            self.take(getattr(value, name))

    def _foreign(self, value: object, kind: type) -> None:
        """Write down an array; other objects from elsewhere say nothing about themselves."""
        if kind.__module__.partition(".")[0] == "numpy":
            raw: Callable[[], bytes] | None = getattr(value, "tobytes", None)
            if raw is not None:
                self.take((str(getattr(value, "dtype", "")), getattr(value, "shape", ())))
                self.take(hashlib.sha256(raw()).digest())
                return
        raise NoFingerprintError(f"a {kind.__qualname__} has no fingerprint")


@lru_cache(maxsize=512)
def _names(kind: type) -> tuple[str, ...] | None:
    """List the attributes of a class that count; None for a class from elsewhere."""
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind) if f.name != "uid")
    return _ALL if kind.__module__.partition(".")[0] == _OWN else None
