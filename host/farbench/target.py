"""Targets under the names that TVM's users know: `fb.target.create`, `fb.target.Target`."""

from __future__ import annotations

from farbench_compiler.target import Target, presets


def create(text: str) -> Target:
    """Read a target string or the name of a preset; TargetError lists near matches."""
    return Target.parse(text)


__all__ = ["Target", "create", "presets"]
