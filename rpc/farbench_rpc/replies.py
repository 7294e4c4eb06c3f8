"""Errors as messages and back: what a server raises is raised again at the client."""

from __future__ import annotations

from farbench_rpc.errors import RpcError, VersionMismatch, by_code
from farbench_rpc.messages import VERSION, ErrorReply

_LONGEST = 8000


def error_reply(error: RpcError) -> ErrorReply:
    """Make the message of an error; a very long text is cut."""
    text = error.message
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + " ..."
    return ErrorReply(error.code, text.encode("utf-8", "replace").decode(), dict(error.detail))


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
