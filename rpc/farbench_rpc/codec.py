"""Messages to header frames and back; nothing but ProtocolError comes out of a bad frame.

A header is msgpack of [minor version, kind, request id, {field: value}], at most 64 KiB.

    header = encode(Ping(), request_id=7)
    minor, request_id, message = decode(header)

Request ids: positive where the side that dialled asks, negative where the side that listens asks,
0 where nobody waits for an answer.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import msgpack

from farbench_rpc import messages
from farbench_rpc.errors import InvalidArgument, ProtocolError
from farbench_rpc.limits import INT64_MAX, INT64_MIN, MAX_HEADER, MAX_ITEMS
from farbench_rpc.messages import VERSION, Message
from farbench_rpc.schema import Codec, Mismatch, compile_class, quoted
from farbench_rpc.transport.base import Buffer


class Decoded(NamedTuple):
    """What a header frame says."""

    minor: int
    request_id: int
    message: Message


class Kinds:
    """The messages a codec knows, compiled once: by kind to read, by class to write."""

    def __init__(self, classes: list[type[Message]]) -> None:
        self.by_kind: dict[bytes, tuple[int, Codec]] = {}
        self.by_class: dict[type[Message], tuple[str, int, Codec]] = {}
        for cls in classes:
            since = int(getattr(cls, "SINCE", 0))
            compiled = compile_class(cls)
            self.by_kind[cls.KIND.encode()] = (since, compiled)
            self.by_class[cls] = (cls.KIND, since, compiled)
        if len(self.by_kind) != len(classes):
            raise TypeError("two messages have one kind")


def _declared() -> list[type[Message]]:
    found = vars(messages).values()
    return [c for c in found if isinstance(c, type) and issubclass(c, Message) and c.KIND]


KINDS = Kinds(_declared())
_local = threading.local()


def encode(
    message: Message, request_id: int = 0, minor: int = VERSION[1], kinds: Kinds = KINDS
) -> bytes:
    """Write a header frame with the fields that `minor` has.

    Raises InvalidArgument that names the field, where a value does not fit its declaration or the
    header would be too large.
    """
    found = kinds.by_class.get(type(message))
    if found is None:
        raise InvalidArgument(f"{type(message).__name__} is not a message of the wire")
    kind, since, codec = found
    if since > minor:
        raise InvalidArgument(f"the peer speaks minor version {minor}, {kind} came with {since}")
    try:
        header = _packer().pack((minor, kind, request_id, codec.write(message, minor)))
    except Mismatch as bad:
        raise InvalidArgument(f"{kind}: {bad}") from None
    except (ValueError, OverflowError) as bad:  # text with lone surrogates
        raise InvalidArgument(f"{kind}: {bad}") from bad
    if len(header) > MAX_HEADER:
        raise InvalidArgument(f"{kind}: {len(header)} bytes of header, the limit is {MAX_HEADER}")
    return header


def decode(frame: Buffer, minor: int = VERSION[1], kinds: Kinds = KINDS) -> Decoded:
    """Read a header frame; `minor` is the highest version the sender may use.

    Raises ProtocolError; where the request id could be read, its detail holds it as `request`.
    """
    used, kind, request_id, fields = _envelope(frame)
    found = kinds.by_kind.get(kind)
    if kind in _HANDSHAKE and _foreign(fields):
        return Decoded(0, request_id, _foreign_handshake(kind, fields, used))
    if used > minor:
        raise _bad(f"header of minor version {used}, agreed was {minor}", request_id)
    if found is None or found[0] > used:
        raise _bad(f"unknown kind {quoted(kind)} in minor version {used}", request_id)
    try:
        return Decoded(used, request_id, found[1].read(fields, used))
    except Mismatch as bad:
        raise _bad(f"{quoted(kind)}: {bad}", request_id) from None


def _packer() -> msgpack.Packer:
    # One a thread: a packer keeps its buffer from call to call and must not be shared.
    try:
        packer: msgpack.Packer = _local.packer
    except AttributeError:
        packer = _local.packer = msgpack.Packer()
    return packer


def _pairs(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ProtocolError("a key stands twice in one map")
    return fields


def _envelope(frame: Buffer) -> tuple[int, bytes, int, dict[bytes, Any]]:
    if len(frame) > MAX_HEADER:
        raise ProtocolError(f"header of {len(frame)} bytes, the limit is {MAX_HEADER}")
    try:
        # raw: text stays bytes until its field is known, so that no key of a stranger is interned
        # (some Pythons never free interned text). Lengths are capped since arrays are made at the
        # length they claim, before their items are seen.
        whole = msgpack.unpackb(
            frame,
            raw=True,
            strict_map_key=True,
            object_pairs_hook=_pairs,
            max_array_len=MAX_ITEMS,
            max_map_len=MAX_ITEMS,
            max_ext_len=0,
        )
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as bad:
        raise ProtocolError(f"header is not msgpack: {type(bad).__name__}") from None
    if type(whole) is not list or len(whole) != 4:
        raise ProtocolError("header is not [minor, kind, request, fields]")
    minor, kind, request_id, fields = whole
    if type(request_id) is not int or not INT64_MIN <= request_id <= INT64_MAX:
        raise ProtocolError("request id is not an integer of 64 bits")
    if type(minor) is not int or not 0 <= minor <= 0xFFFF:
        raise _bad("minor version is not an integer from 0 to 65535", request_id)
    if type(kind) is not bytes or type(fields) is not dict:
        raise _bad("header is not [minor, kind, request, fields]", request_id)
    return minor, kind, request_id, fields


def _bad(text: str, request_id: int) -> ProtocolError:
    return ProtocolError(text, {"request": request_id})


# The handshake of another major version is read as far as it is known, so that both sides can say
# which versions met.
_HANDSHAKE: dict[bytes, type[messages.Hello] | type[messages.Welcome]] = {
    b"hello": messages.Hello,
    b"welcome": messages.Welcome,
}


def _foreign(fields: dict[bytes, Any]) -> bool:
    version = fields.get(b"version")
    if type(version) is not list or len(version) != 2:
        return False
    return all(type(v) is int and 0 <= v <= 0xFFFF for v in version) and version[0] != VERSION[0]


def _foreign_handshake(kind: bytes, fields: dict[bytes, Any], used: int) -> Message:
    role, (major, minor) = fields.get(b"role"), fields[b"version"]
    text = role.decode("utf-8", "replace")[:40] if type(role) is bytes else ""
    return _HANDSHAKE[kind](role=text, version=(major, minor))
