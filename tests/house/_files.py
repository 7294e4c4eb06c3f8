"""The files of the project, as the house's tests see them."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WINGS = ("compiler", "rpc", "tracker", "device_runtime", "host")
_LEFT_OUT = frozenset({".git", ".venv", ".peers", "build", "dist", "__pycache__"})


@cache
def project_files() -> tuple[Path, ...]:
    """List the project's files relative to ROOT: what git tracks, else what is there."""
    git = shutil.which("git")
    if git is not None and (ROOT / ".git").exists():
        # A file that is new and not ignored counts: it is about to be tracked.
        command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=30, check=False)
        if done.returncode == 0:
            names = done.stdout.decode().split("\0")
            return tuple(sorted(Path(n) for n in names if n and (ROOT / n).is_file()))
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return tuple(sorted(path for path in found if not _LEFT_OUT & set(path.parts)))


def source_files(*suffixes: str) -> list[Path]:
    """List the files of the wings with one of the suffixes, relative to ROOT."""
    return [p for p in project_files() if p.parts[0] in WINGS and p.suffix in suffixes]
