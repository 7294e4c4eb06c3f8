"""What requests were told at last, so that a repeat hears the same."""

from __future__ import annotations

from typing import Final

from farbench_rpc.messages import ErrorReply

MAX_KEPT: Final = 20_000


class Answers:
    """Final answers by request, kept for `keep_s` seconds and at most MAX_KEPT of them."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s: Final = keep_s
        self._kept: Final[dict[str, tuple[float, ErrorReply]]] = {}  # oldest first

    def __repr__(self) -> str:
        return f"Answers({len(self._kept)} kept)"

    def keep(self, now: float, request: str, answer: ErrorReply) -> None:
        """Remember the answer to a request."""
        self._kept.pop(request, None)
        self._kept[request] = (now + self._keep_s, answer)
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) <= MAX_KEPT and self._kept[oldest][0] > now:
                break
            del self._kept[oldest]

    def get(self, now: float, request: str) -> ErrorReply | None:
        """Give the answer to a request, if it is remembered."""
        until_s, answer = self._kept.get(request, (now, None))
        return answer if until_s > now else None
