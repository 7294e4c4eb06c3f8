"""Errors of the tracker that do not come from the wire."""

from __future__ import annotations

from typing import Final

_SHOWN_CHARS: Final = 120


class TrackerError(Exception):
    """Something that whoever runs or asks the tracker can put right; one line."""


class SettingsError(TrackerError):
    """A setting is unknown or out of range; the message names it."""


class JournalError(TrackerError):
    """The journal cannot be opened, read or written; the message names its file."""


class RequirementError(TrackerError):
    """A requirement cannot be read; `position` counts characters from 1."""

    def __init__(self, what: str, position: int, text: str = "") -> None:
        shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
        where = f"requirement {shown!r}" if text else "the requirement"
        super().__init__(f"{where}, character {position}: {what}")
        self.position = position
