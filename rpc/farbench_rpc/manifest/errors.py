"""Errors of manifests and of what does not fit them; each message is one line."""

from __future__ import annotations


class ManifestError(ValueError):
    """A library or its self-description is wrong, damaged, or does not fit the machine."""


class ArgumentError(ManifestError):
    """An argument does not fit its entry: the message names it, what is expected and what came."""
