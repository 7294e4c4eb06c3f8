"""Annotations as readers and writers; refusals that name the place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from farbench_rpc.limits import INT64_MAX, INT64_MIN, MAX_ITEMS
from farbench_rpc.schema import Mismatch, compile_annotation, compile_class


@dataclass(frozen=True)
class Inner:
    x: int
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    name: str
    inner: tuple[Inner, ...]
    table: dict[str, int | str]
    pair: tuple[int, float] = (0, 0.0)
    maybe: int | None = None
    later: int = field(default=5, metadata={"since": 2})


@pytest.mark.parametrize(
    ("hint", "python", "wire"),
    [
        (int, 5, 5),
        (int, INT64_MAX, INT64_MAX),
        (int, INT64_MIN, INT64_MIN),
        (float, 1.5, 1.5),
        (float, float("inf"), float("inf")),
        (bool, True, True),
        (str, "ä", "ä".encode()),
        (tuple[int, ...], (1, 2), [1, 2]),
        (tuple[int, str], (1, "a"), [1, b"a"]),
        (tuple[tuple[int, int], ...], ((1, 2),), [[1, 2]]),
        (dict[str, bool], {"a": True}, {b"a": True}),
        (int | float, 1, 1),
        (int | float, 1.0, 1.0),
        (str | int | float | bool | tuple[str, ...], ("a",), [b"a"]),
        (int | None, None, None),
        (Inner, Inner(1, ("a",)), {b"x": 1, b"tags": [b"a"]}),
    ],
)
def test_reads_and_writes(hint: Any, python: Any, wire: Any) -> None:
    codec = compile_annotation(hint)
    assert codec.read(wire, 0) == python
    assert type(codec.read(wire, 0)) is type(python)
    assert codec.read(_packed(codec.write(python, 0)), 0) == python


@pytest.mark.parametrize(
    ("hint", "wire"),
    [
        (int, True),
        (int, 1.0),
        (int, 2**63),
        (int, b"1"),
        (int, None),
        (float, True),
        (float, b"1"),
        (bool, 1),
        (str, "not raw"),
        (str, b"\xff"),
        (str, 1),
        (tuple[int, ...], (1,)),
        (tuple[int, ...], [1, b"2"]),
        (tuple[int, str], [1]),
        (tuple[int, str], [1, b"a", 2]),
        (dict[str, int], [[b"a", 1]]),
        (dict[str, int], {1: 1}),
        (dict[str, int], {b"\xff": 1}),
        (dict[str, int], {b"a": b"b"}),
        (int | float, b"a"),
        (int | float, True),
        (Inner, [1]),
        (Inner, {b"x": 1, b"y": 2}),
        (Inner, {b"tags": []}),
        (Inner, {1: 2}),
    ],
)
def test_refuses_on_reading(hint: Any, wire: Any) -> None:
    with pytest.raises(Mismatch):
        compile_annotation(hint).read(wire, 0)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, True),
        (int, 1.5),
        (int, 2**63),
        (int, "1"),
        (float, True),
        (float, "1"),
        (bool, 1),
        (str, b"a"),
        (tuple[int, ...], "12"),
        (tuple[int, ...], tuple(range(MAX_ITEMS + 1))),
        (tuple[int, int], (1,)),
        (dict[str, int], {1: 1}),
        (dict[str, int], {str(i): i for i in range(MAX_ITEMS + 1)}),
        (int | float, "a"),
        (Inner, None),
        (Inner, Outer("", (), {})),
    ],
)
def test_refuses_on_writing(hint: Any, value: Any) -> None:
    with pytest.raises(Mismatch):
        compile_annotation(hint).write(value, 0)


def test_names_the_place() -> None:
    codec = compile_class(Outer)
    wire = {b"name": b"n", b"inner": [{b"x": 1}, {b"x": b"no"}], b"table": {}}
    with pytest.raises(Mismatch, match=r"^inner\[1\]\.x: must be an integer"):
        codec.read(wire, 0)
    with pytest.raises(Mismatch, match=r"^table\['a'\]: must be one of int, str, got list"):
        codec.read({b"name": b"n", b"inner": [], b"table": {b"a": []}}, 0)
    with pytest.raises(Mismatch, match=r"^inner\[0\]\.tags\[1\]: must be text"):
        codec.write(Outer("n", (Inner(1, ("a", 3)),), {}), 0)  # type: ignore[arg-type]
    with pytest.raises(Mismatch, match="^lacks the field name"):
        codec.read({b"inner": [], b"table": {}}, 0)


def test_later_fields_follow_the_minor_version() -> None:
    codec = compile_class(Outer)
    value = Outer("n", (), {}, later=9)
    assert "later" not in codec.write(value, 1)
    assert codec.write(value, 2)["later"] == 9
    wire = {b"name": b"n", b"inner": [], b"table": {}, b"later": 9}
    assert codec.read(wire, 2) == value
    with pytest.raises(Mismatch, match="has no field 'later' in minor version 1"):
        codec.read(wire, 1)
    del wire[b"later"]
    assert codec.read(wire, 2).later == 5


def test_a_later_field_needs_a_default() -> None:
    @dataclass
    class Bad:
        later: int = field(metadata={"since": 1})

    with pytest.raises(TypeError, match="needs a default"):
        compile_class(_resolved(Bad))


@pytest.mark.parametrize("hint", [bytes, list[int], set[int], dict[int, int], int | bool | object])
def test_refuses_what_the_wire_does_not_carry(hint: Any) -> None:
    with pytest.raises(TypeError):
        compile_annotation(hint)


def test_refuses_unions_that_look_alike() -> None:
    with pytest.raises(TypeError, match="two members"):
        compile_annotation(tuple[int, ...] | tuple[str, ...])


def test_seconds_are_finite() -> None:
    @dataclass
    class Wait:
        limit_s: float
        other: float = 0.0

    codec = compile_class(_resolved(Wait))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(Mismatch, match="limit_s: must be a finite number of seconds"):
            codec.read({b"limit_s": bad}, 0)
        with pytest.raises(Mismatch):
            codec.write(Wait(bad), 0)
        assert codec.read({b"limit_s": 1, b"other": bad}, 0).limit_s == 1.0


def _packed(value: Any) -> Any:
    """Give a written value as msgpack would bring it."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [_packed(v) for v in value]
    if isinstance(value, dict):
        return {_packed(k): _packed(v) for k, v in value.items()}
    return value


def _resolved(cls: type[Any]) -> type[Any]:
    cls.__annotations__ = {
        k: {"int": int, "float": float}[v] for k, v in cls.__annotations__.items()
    }
    return cls
