"""Targets: from `llvm -mtriple=... -mcpu=...` or a preset's name to everything that is resolved."""

from farbench_compiler.errors import TargetError
from farbench_compiler.target.table import ARCHES
from farbench_compiler.target.target import Target, preset_texts, presets

__all__ = ["ARCHES", "Target", "TargetError", "preset_texts", "presets"]
