"""From a dataclass's annotations to functions that check and convert its values.

What msgpack unpacked (`raw=True`: strings are bytes, arrays lists, maps dicts of bytes keys) goes
through a reader; what is to be packed goes through a writer. Both are compiled once a class. A
field that came with a later minor version says so: `field(default=0, metadata={"since": 2})`; it
must have a default, is left out for an older peer and refused from one.

Allowed annotations: str, int (64 bits), float, bool, tuple[X, ...], tuple[X, Y], dict[str, X],
dataclasses of such fields, Optional, and unions whose members differ on the wire.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from farbench_rpc.limits import INT64_MAX, INT64_MIN, MAX_DEPTH, MAX_ITEMS
from farbench_rpc.straight import Convert, Part, straight_reader, straight_writer


class Mismatch(Exception):
    """A value that does not fit its annotation; `path` leads to it from the outermost field."""

    def __init__(self, wanted: str, got: object = None, *, path: str = "") -> None:
        shown = "" if got is None else f", got {type(got).__name__}"
        super().__init__(f"{wanted}{shown}")
        self.path = path

    def inside(self, step: str) -> Mismatch:
        """Put the name of the place around the path, and give itself to be raised again."""
        self.path = step + ("." if self.path and not self.path.startswith("[") else "") + self.path
        return self

    def __str__(self) -> str:
        """Say where and what, in one line."""
        return f"{self.path}: {self.args[0]}" if self.path else str(self.args[0])


@dataclass(frozen=True)
class Codec:
    """How one annotation is read and written, and which msgpack types it may arrive as."""

    read: Convert
    write: Convert
    wire: tuple[type, ...]
    python: tuple[type, ...]
    depth: int = 0


def _read_int(value: Any, minor: int) -> int:
    if type(value) is int and INT64_MIN <= value <= INT64_MAX:
        return value
    raise Mismatch("must be an integer of 64 bits", value)


def _write_int(value: Any, minor: int) -> int:
    if isinstance(value, int) and type(value) is not bool and INT64_MIN <= value <= INT64_MAX:
        return value
    raise Mismatch("must be an integer of 64 bits", value)


def _read_float(value: Any, minor: int) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise Mismatch("must be a number", value)


def _write_float(value: Any, minor: int) -> float:
    if isinstance(value, (float, int)) and type(value) is not bool:
        return float(value)
    raise Mismatch("must be a number", value)


def _read_bool(value: Any, minor: int) -> bool:
    if type(value) is bool:
        return value
    raise Mismatch("must be true or false", value)


def _read_str(value: Any, minor: int) -> str:
    if type(value) is not bytes:
        raise Mismatch("must be text", value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Mismatch("must be UTF-8 text") from None


def _write_str(value: Any, minor: int) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch("must be text", value)


def _none(value: Any, minor: int) -> None:
    if value is not None:
        raise Mismatch("must be nothing", value)


_SCALARS: dict[Any, Codec] = {
    int: Codec(_read_int, _write_int, (int,), (int,)),
    float: Codec(_read_float, _write_float, (float,), (float,)),
    bool: Codec(_read_bool, _read_bool, (bool,), (bool,)),
    str: Codec(_read_str, _write_str, (bytes,), (str,)),
    NoneType: Codec(_none, _none, (NoneType,), (NoneType,)),
}


def compile_annotation(hint: Any) -> Codec:
    """Compile one annotation; TypeError for what the wire does not carry."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union([compile_annotation(a) for a in args])
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _sequence(compile_annotation(args[0]))
    if origin is tuple:
        return _fixed([compile_annotation(a) for a in args])
    if origin is dict and args[0] is str:
        return _mapping(compile_annotation(args[1]))
    if dataclasses.is_dataclass(hint):
        return compile_class(hint)  # type: ignore[arg-type]
    raise TypeError(f"the wire does not carry {hint!r}")


def _sequence(item: Codec) -> Codec:
    takes_ints = int in item.wire

    def each(values: Any, minor: int, convert: Convert) -> list[Any]:
        if len(values) > MAX_ITEMS:
            raise Mismatch(f"has {len(values)} items, the limit is {MAX_ITEMS}")
        # Arguments of a call are mostly whole numbers, which are checked all at once.
        whole = takes_ints and set(map(type, values)) == {int}
        if whole and min(values) >= INT64_MIN and max(values) <= INT64_MAX:
            return list(values)
        out: list[Any] = []
        try:
            for value in values:
                out.append(convert(value, minor))  # noqa: PERF401 - the index of a failure
        except Mismatch as bad:
            raise bad.inside(f"[{len(out)}]") from None
        return out

    def read(value: Any, minor: int) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Mismatch("must be a list", value)
        return tuple(each(value, minor, item.read))

    def write(value: Any, minor: int) -> list[Any]:
        if not isinstance(value, (tuple, list)):
            raise Mismatch("must be a tuple", value)
        return each(value, minor, item.write)

    return Codec(read, write, (list,), (tuple, list), item.depth + 1)


def _fixed(items: list[Codec]) -> Codec:
    def each(values: Any, minor: int, converts: list[Convert]) -> list[Any]:
        if len(values) != len(converts):
            raise Mismatch(f"must have {len(converts)} items, has {len(values)}")
        out: list[Any] = []
        try:
            for value, convert in zip(values, converts, strict=True):
                out.append(convert(value, minor))  # noqa: PERF401 - the index of a failure
        except Mismatch as bad:
            raise bad.inside(f"[{len(out)}]") from None
        return out

    reads, writes = [i.read for i in items], [i.write for i in items]

    def read(value: Any, minor: int) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Mismatch("must be a list", value)
        return tuple(each(value, minor, reads))

    def write(value: Any, minor: int) -> list[Any]:
        if not isinstance(value, (tuple, list)):
            raise Mismatch("must be a tuple", value)
        return each(value, minor, writes)

    return Codec(read, write, (list,), (tuple, list), 1 + max((i.depth for i in items), default=0))


def _mapping(item: Codec) -> Codec:
    def read(value: Any, minor: int) -> dict[str, Any]:
        if type(value) is not dict:
            raise Mismatch("must be a map", value)
        out: dict[str, Any] = {}
        for key, inner in value.items():
            name = _read_str(key, minor)
            try:
                out[name] = item.read(inner, minor)
            except Mismatch as bad:
                raise bad.inside(f"[{name!r}]") from None
        return out

    def write(value: Any, minor: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Mismatch("must be a dict", value)
        if len(value) > MAX_ITEMS:
            raise Mismatch(f"has {len(value)} items, the limit is {MAX_ITEMS}")
        out: dict[str, Any] = {}
        for key, inner in value.items():
            try:
                out[_write_str(key, minor)] = item.write(inner, minor)
            except Mismatch as bad:
                raise bad.inside(f"[{key!r}]") from None
        return out

    return Codec(read, write, (dict,), (dict,), item.depth + 1)


def _union(members: list[Codec]) -> Codec:
    reads: dict[type, Convert] = {}
    writes: dict[type, Convert] = {}
    for member in members:
        for kind in member.wire:
            if kind in reads:
                raise TypeError(f"two members of a union travel as {kind.__name__}")
            reads[kind] = member.read
        for kind in member.python:
            writes[kind] = member.write
    wanted = "must be one of " + ", ".join(sorted(k.__name__ for k in writes))

    def read(value: Any, minor: int) -> Any:
        found = reads.get(type(value))
        if found is None:
            raise Mismatch(wanted, value)
        return found(value, minor)

    def write(value: Any, minor: int) -> Any:
        found = writes.get(type(value))
        if found is None:
            raise Mismatch(wanted, value)
        return found(value, minor)

    return Codec(read, write, tuple(reads), tuple(writes), max(m.depth for m in members))


@dataclass(frozen=True)
class _Field:
    name: str
    codec: Codec
    since: int
    required: bool
    kind: str  # a kind of `straight.Part`


def _fields(cls: type[Any]) -> list[_Field]:
    hints = get_type_hints(cls)
    found = []
    for f in dataclasses.fields(cls):
        codec = compile_annotation(hints[f.name])
        kind = hints[f.name].__name__ if hints[f.name] in (int, float, bool, str) else ""
        if kind == "float" and f.name.endswith("_s"):
            codec = dataclasses.replace(codec, read=_seconds, write=_seconds)
            kind = "seconds"
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        since = int(f.metadata.get("since", 0))
        if since and required:
            raise TypeError(f"{cls.__name__}.{f.name} came later and needs a default")
        found.append(_Field(f.name, codec, since, required, kind))
    return found


def _seconds(value: Any, minor: int) -> float:
    # A deadline of NaN never passes and one of infinity never comes; no wait may be endless.
    if isinstance(value, (float, int)) and type(value) is not bool and math.isfinite(value):
        return float(value)
    raise Mismatch("must be a finite number of seconds", value)


def compile_class(cls: type[Any]) -> Codec:
    """Compile a dataclass; TypeError for fields that the wire does not carry."""
    fields = _fields(cls)
    depth = 1 + max((f.codec.depth for f in fields), default=0)
    if depth > MAX_DEPTH:
        raise TypeError(f"{cls.__name__} nests {depth} deep, the limit is {MAX_DEPTH}")
    parts = [Part(f.name, f.kind, f.codec.read, f.codec.write) for f in fields]
    newest = max((f.since for f in fields), default=0)
    read = straight_reader(cls, parts, newest, _class_reader(cls, fields), Mismatch)
    write = straight_writer(cls, parts, newest, _class_writer(cls, fields), Mismatch)
    return Codec(read, write, (dict,), (cls,), depth)


def _class_reader(cls: type[Any], fields: list[_Field]) -> Convert:
    table = {f.name.encode(): (f.name, f.codec.read, f.since) for f in fields}
    required = [f.name for f in fields if f.required]
    total = len(fields)

    def read(value: Any, minor: int) -> Any:
        if type(value) is not dict:
            raise Mismatch("must be a map", value)
        kwargs: dict[str, Any] = {}
        for key, inner in value.items():
            found = table.get(key)
            if found is None or found[2] > minor:
                raise Mismatch(f"has no field {quoted(key)} in minor version {minor}")
            try:
                kwargs[found[0]] = found[1](inner, minor)
            except Mismatch as bad:
                raise bad.inside(found[0]) from None
        if len(kwargs) < total:
            for name in required:
                if name not in kwargs:
                    raise Mismatch(f"lacks the field {name}")
        return cls(**kwargs)

    return read


def _class_writer(cls: type[Any], fields: list[_Field]) -> Convert:
    table = [(f.name, f.codec.write, f.since) for f in fields]

    def write(value: Any, minor: int) -> dict[str, Any]:
        if type(value) is not cls:
            raise Mismatch(f"must be a {cls.__name__}", value)
        out: dict[str, Any] = {}
        for name, convert, since in table:
            if since <= minor:
                try:
                    out[name] = convert(getattr(value, name), minor)
                except Mismatch as bad:
                    raise bad.inside(name) from None
        return out

    return write


def quoted(raw: object) -> str:
    """Show foreign bytes in an error: at most 40 characters, nothing unprintable."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return ascii(text[:40])
