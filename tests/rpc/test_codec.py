"""Headers: every message round-trips, everything else is a ProtocolError."""

from __future__ import annotations

import tracemalloc
import typing
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_rpc import messages as m
from farbench_rpc.codec import KINDS, Kinds, decode, encode
from farbench_rpc.errors import InvalidArgument, ProtocolError
from farbench_rpc.limits import INT64_MAX, INT64_MIN, MAX_HEADER, MAX_ITEMS
from farbench_rpc.messages import Message

INTS = st.integers(INT64_MIN, INT64_MAX)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FLOATS = st.floats(allow_nan=False)
VALUES = st.one_of(TEXT, INTS, FLOATS, st.booleans())
ALL = list(KINDS.by_class)


def _values(hint: Any) -> st.SearchStrategy[Any]:
    plain: dict[Any, st.SearchStrategy[Any]] = {
        int: INTS,
        float: st.floats(-1e9, 1e9),
        str: TEXT,
        bool: st.booleans(),
    }
    if hint in plain:
        return plain[hint]
    args = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        if args[-1] is Ellipsis:
            return st.lists(_values(args[0]), max_size=3).map(tuple)
        return st.tuples(*[_values(a) for a in args])
    if typing.get_origin(hint) is dict:
        return st.dictionaries(TEXT, _values(args[1]), max_size=3)
    if args:
        return st.one_of([_values(a) for a in args])
    return _message(hint)


def _message(cls: type[Any]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{f.name: _values(hints[f.name]) for f in fields(cls)})


MESSAGES = st.sampled_from(ALL).flatmap(_message)


@given(MESSAGES, INTS)
def test_round_trip(message: Message, request_id: int) -> None:
    if isinstance(message, (m.Hello, m.Welcome)) and message.version[0] != m.VERSION[0]:
        return
    header = encode(message, request_id)
    assert decode(header) == (m.VERSION[1], request_id, message)
    assert decode(memoryview(header)).message == message


@given(st.binary(max_size=200))
def test_random_bytes_are_protocol_errors(frame: bytes) -> None:
    _only_protocol_errors(frame)


@settings(max_examples=400)
@given(MESSAGES, st.data())
def test_mutated_frames_are_messages_or_protocol_errors(message: Message, data: Any) -> None:
    frame = bytearray(encode(message, 3))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(frame)))
        cut = data.draw(st.integers(0, 3))
        frame[at : at + cut] = data.draw(st.binary(max_size=4))
    _only_protocol_errors(bytes(frame))


NESTED = st.recursive(
    st.one_of(st.none(), st.booleans(), INTS, st.floats(), st.binary(max_size=8), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(TEXT, st.binary(max_size=4), INTS), inner, max_size=4),
    ),
)


@given(st.sampled_from([*KINDS.by_kind, b"nonsense"]), NESTED, NESTED)
def test_any_msgpack_is_a_message_or_a_protocol_error(kind: bytes, one: Any, two: Any) -> None:
    names = [f.name for c in ALL if c.KIND.encode() == kind for f in fields(c)]
    for body in (one, {n: two for n in names}, {n: one for n in names[:2]}):
        _only_protocol_errors(msgpack.packb([0, kind.decode(), 1, body], use_bin_type=True))
    _only_protocol_errors(msgpack.packb([one, kind, two, {}]))


def _only_protocol_errors(frame: bytes) -> None:
    refused: ProtocolError | None = None
    try:
        found = decode(frame)
    except ProtocolError as error:
        refused = error
    if refused is not None:
        assert "\n" not in refused.message
        assert len(refused.message) < 400
        return
    again = decode(encode(found.message, found.request_id))
    assert again.request_id == found.request_id


def _array32(count: int) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big")


@pytest.mark.parametrize(
    "frame",
    [
        _array32(4) * (MAX_HEADER // 5),
        _array32(MAX_ITEMS) * (MAX_HEADER // 5),
        b"\xdc\x02\x00" * (MAX_HEADER // 3),
        b"\x91" * MAX_HEADER,
        b"\x81\xa0" * (MAX_HEADER // 2),
        b"\xdc\x01\xff" + (b"\xdc\x00\x7f" + b"\x80" * 127) * 504,
        b"\xdc\x01\xff" + (b"\xdc\x00\x7f" + b"\x90" * 127) * 504,
        b"\xdc\x01\xff" + (b"\xdc\x00\x3f" + b"\x81\xa0\xc0" * 63) * 330,
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x00",
        b"\xd6\xff\x00\x00\x00\x00",
    ],
    ids=lambda frame: f"{frame[:6].hex()}x{len(frame)}",
)
def test_memory_of_bombs_is_bounded(frame: bytes) -> None:
    assert len(frame) <= MAX_HEADER
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(frame)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ([0, "ping", 1], r"not \[minor, kind, request, fields\]"),
        ([0, "ping", 1, []], r"not \[minor, kind, request, fields\]"),
        ([0, "ping", "x", {}], "request id"),
        ([0, "ping", 2**63, {}], "request id"),
        ([-1, "ping", 1, {}], "minor version"),
        (["0", "ping", 1, {}], "minor version"),
        ([7, "ping", 1, {}], f"minor version 7, agreed was {m.VERSION[1]}"),
        ([0, "pong", 1, {}], "unknown kind 'pong'"),
        ([0, "pong\n" * 30, 1, {}], "unknown kind"),
        ([0, "ping", 1, {"x": 1}], "has no field 'x'"),
        ([0, "free", 1, {}], "lacks the field arrays"),
        ([0, "free", 1, {"arrays": [1, "2"]}], r"arrays\[1\]: must be an integer"),
        ([0, "call", 1, {"module": 1, "entry": "e", "args": [True]}], r"args\[0\]"),
    ],
)
def test_says_what_is_wrong(body: Any, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        decode(msgpack.packb(body))


def test_a_bad_message_keeps_its_request_id() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(msgpack.packb([0, "free", 17, {"x": 1}]))
    assert caught.value.detail == {"request": 17}


def test_duplicate_keys_are_refused() -> None:
    twice = b"\x94\x00\xa4free\x01\x82" + 2 * (b"\xa6arrays" + b"\x90")
    with pytest.raises(ProtocolError, match="twice"):
        decode(twice)


def test_a_long_header_is_refused_both_ways() -> None:
    long = m.ErrorReply("infra", "x" * MAX_HEADER)
    with pytest.raises(InvalidArgument, match="limit is 65536"):
        encode(long)
    with pytest.raises(ProtocolError, match="limit is 65536"):
        decode(b"\x90" * (MAX_HEADER + 1))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (m.Fill(1, 2**64), "fill: seed: must be an integer of 64 bits"),
        (m.CallEntry(1, "e", ("x",)), r"call: args\[0\]: must be one of float, int"),  # type: ignore[arg-type]
        (m.Load("\ud800"), "load: "),
        (m.CallEntry(1, "e", (), float("nan")), "timeout_s: must be a finite"),
        (m.Message(), "not a message of the wire"),
    ],
)
def test_refuses_to_write(message: Message, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        encode(message)
    assert decode(encode(m.Ping())).message == m.Ping()


def test_every_message_has_a_kind_of_its_own() -> None:
    assert len(ALL) == len(KINDS.by_kind) > 40
    assert all(cls.KIND for cls in ALL)


def test_another_major_version_is_told_by_its_hello() -> None:
    hello = {"role": "client", "version": [9, 4], "colour": "red"}
    found = decode(msgpack.packb([12, "hello", 0, hello]))
    assert found.message == m.Hello("client", (9, 4))
    found = decode(msgpack.packb([12, "welcome", 0, {"version": [2, 0]}]))
    assert found.message == m.Welcome("", (2, 0))


@dataclass(frozen=True)
class Old(Message):
    KIND: ClassVar[str] = "thing"
    x: int


@dataclass(frozen=True)
class New(Message):
    KIND: ClassVar[str] = "thing"
    x: int
    y: int = field(default=7, metadata={"since": 3})


@dataclass(frozen=True)
class Fresh(Message):
    KIND: ClassVar[str] = "fresh"
    SINCE: ClassVar[int] = 3


def test_skew_of_minor_versions_works_both_ways() -> None:
    old, new = Kinds([Old]), Kinds([New, Fresh])
    assert decode(encode(New(1, 2), 5, 2, new), 2, old) == (2, 5, Old(1))
    assert decode(encode(Old(1), 5, 2, old), 2, new) == (2, 5, New(1, 7))
    with pytest.raises(ProtocolError, match="'y'"):
        decode(encode(New(1, 2), 5, 3, new), 3, old)
    with pytest.raises(InvalidArgument, match="fresh came with 3"):
        encode(Fresh(), 5, 2, new)
    with pytest.raises(ProtocolError, match="unknown kind"):
        decode(msgpack.packb([2, "fresh", 1, {}]), 3, new)
