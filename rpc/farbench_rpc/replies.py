"""Errors as messages and back: what a server raises is raised again at the client."""

from __future__ import annotations

from farbench_rpc.errors import RpcError, Value, VersionMismatch, by_code
from farbench_rpc.limits import INT64_MAX, INT64_MIN
from farbench_rpc.messages import VERSION, ErrorReply

_LONGEST = 8000
_LONGEST_DETAIL = 300
_MOST_DETAILS = 16


def error_reply(error: RpcError) -> ErrorReply:
    """Make the message of an error, whatever it holds: a failure that cannot be told is a hang.

    What is very long is cut, what the wire does not carry becomes text.
    """
    detail = list(error.detail.items())[:_MOST_DETAILS]
    carried = {_text(str(key), 100): _carried(value) for key, value in detail}
    return ErrorReply(error.code, _text(error.message, _LONGEST), carried)


def _text(text: str, longest: int) -> str:
    if len(text) > longest:
        text = text[:longest] + " ..."
    # Lone surrogates stand in names of files that are not UTF-8.
    return text.encode("utf-8", "replace").decode()


def _carried(value: object) -> Value:
    if isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return value
    return _text(str(value), _LONGEST_DETAIL)


def to_error(reply: ErrorReply) -> RpcError:
    """Make the error of a message, of the class of its code."""
    return by_code(reply.code)(reply.message, dict(reply.detail))


def version_mismatch(who: str, theirs: tuple[int, int]) -> VersionMismatch:
    """Make the error that names both versions; `who` is the side that says so."""
    ours_text, theirs_text = (f"{v[0]}.{v[1]}" for v in (VERSION, theirs))
    return VersionMismatch(
        f"{who} speaks version {ours_text}, the other side {theirs_text}; update the older one",
        {"ours": ours_text, "theirs": theirs_text},
    )
