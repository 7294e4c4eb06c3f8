"""The caches that farbench keeps on the host: where, how large, and how they are emptied."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cache:
    """One folder that can be made again at any time."""

    name: str
    holds: str
    path: Path

    def nbytes(self) -> int:
        """Bytes of all its files as they lie on disk; links are not followed."""
        total = 0
        for folder, _, files in os.walk(self.path):
            for file in files:
                try:
                    total += os.lstat(os.path.join(folder, file)).st_size
                except FileNotFoundError:  # it was removed while this looked
                    continue
        return total

    def clear(self) -> None:
        """Remove it; one that is not there is empty already."""
        if self.path.is_symlink():
            self.path.unlink()
        elif self.path.exists():
            shutil.rmtree(self.path)


def caches() -> tuple[Cache, ...]:
    """List the caches of this user, whether they exist or not."""
    from farbench.boards.tree import cache_folder
    from farbench_compiler.toolchain import cache_dir

    return (
        Cache("toolchain", "C runtime and support libraries by target", cache_dir()),
        Cache("boards", "user lands of emulated boards", cache_folder()),
    )


def size(nbytes: int) -> str:
    """Write a number of bytes with the unit that suits it."""
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
