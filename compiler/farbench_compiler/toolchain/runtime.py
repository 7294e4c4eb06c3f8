"""The C runtime of a target as objects: compiled the first time, then taken from the cache."""

from __future__ import annotations

from pathlib import Path

from farbench_compiler.target import Target
from farbench_compiler.toolchain.zig import Progress, compile_c

FOLDER = Path(__file__).resolve().parent.parent / "runtime_c"
SOURCES = ("context.c", "pool.c", "workspace.c", "timing.c", "fill.c", "builtins.c")


def runtime_objects(target: Target, progress: Progress | None = None) -> tuple[Path, ...]:
    """Give the objects of the runtime, which every library of the target carries."""
    sources = [FOLDER / name for name in SOURCES]
    return compile_c("runtime", sources, target, progress=progress)
