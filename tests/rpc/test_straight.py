"""The straight path says and makes what the complete one does, for every message."""

from __future__ import annotations

from typing import Any

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_rpc.codec import KINDS, encode
from farbench_rpc.messages import Arm, CallEntry, DeviceInfo, DevicePage, Measure, Message, StopRule
from farbench_rpc.schema import Mismatch, _class_reader, _class_writer, _fields

SAMPLES: list[Message] = [
    CallEntry(1, "f", (1, 2.5), 3.0),
    Measure((Arm(1, "f", (1,)),), StopRule()),
    DevicePage((DeviceInfo("i", "n", "free", {"a": "b"}, {"c": ("d",), "e": 1}, ("x",), 3),)),
]
WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.binary(max_size=3),
    st.just([]),
    st.just({}),
    st.just([[]]),
)


def outcome(convert: Any, value: Any) -> str:
    """Give what a function made, or what it said."""
    try:
        return repr(convert(value, 0))
    except Mismatch as bad:
        return f"Mismatch: {bad}"


@settings(max_examples=300)
@given(st.sampled_from(SAMPLES), st.data())
def test_reading(message: Message, data: st.DataObject) -> None:
    raw = msgpack.unpackb(encode(message), raw=True)[3]
    for _ in range(data.draw(st.integers(0, 2))):
        key = data.draw(st.one_of(st.sampled_from(list(raw)), st.binary(max_size=3)))
        if data.draw(st.booleans()):
            raw.pop(key, None)
        else:
            raw[key] = data.draw(WRONG)
        if not raw:
            break
    cls = type(message)
    complete = _class_reader(cls, _fields(cls))
    assert outcome(KINDS.by_class[cls][2].read, raw) == outcome(complete, raw)


@settings(max_examples=300)
@given(st.sampled_from(SAMPLES), st.data())
def test_writing(message: Message, data: st.DataObject) -> None:
    cls = type(message)
    fields = _fields(cls)
    changed = dict(vars(message))
    changed[data.draw(st.sampled_from(fields)).name] = data.draw(WRONG)
    for value in (cls(**changed), message, None, StopRule()):
        straight = KINDS.by_class[cls][2].write
        assert outcome(straight, value) == outcome(_class_writer(cls, fields), value)
