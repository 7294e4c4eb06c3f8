"""What can go wrong between asking for an emulated board and having a device on it."""

from __future__ import annotations


class BoardUnavailable(RuntimeError):
    """This machine cannot have the board; the text says why and what to install."""


class DeviceStartError(RuntimeError):
    """A device server did not come up; the text holds its own last words."""
