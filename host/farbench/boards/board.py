"""An emulated board: how a Python module of ours is run in its user land."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farbench.boards.emulator import find_emulator
from farbench.boards.errors import BoardUnavailable
from farbench.boards.tree import Progress, ensure_tree, read_facts

BOARD_PACKAGES = ("farbench_rpc", "farbench_device_runtime")
_TRIAL_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Board:
    """A user land of another architecture under qemu-user; its timings mean nothing."""

    arch: str
    root: Path
    python: str
    emulator: str
    packages: Path

    def command(self, module: str, *args: str) -> tuple[list[str], dict[str, str]]:
        """Return (argv, environment) that run `python -m module args` on the board."""
        return self.python_command("-m", module, *args)

    def python_command(self, *args: str) -> tuple[list[str], dict[str, str]]:
        """Return (argv, environment) that run the board's Python with `args`."""
        argv = [self.emulator, str(self.root / "usr/bin" / self.python), *args]
        return argv, self.environment()

    def environment(self) -> dict[str, str]:
        """Return the whole environment of a process on the board; nothing is inherited."""
        usr = self.root / "usr"
        path = [str(self.packages), str(usr / "lib/python3/dist-packages")]
        return {
            "QEMU_LD_PREFIX": str(self.root),
            "PYTHONHOME": str(usr),
            "PYTHONPATH": os.pathsep.join(path),
            # An unpacked tree has no compiled modules: kept beside it, they halve the start.
            "PYTHONPYCACHEPREFIX": str(self.root.with_name(self.root.name + ".pycache")),
            "PYTHONUNBUFFERED": "1",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin:/bin",
            "HOME": os.environ.get("HOME", "/"),
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        }


def ensure_board(arch: str, progress: Progress = print, folder: Path | None = None) -> Board:
    """Return the emulated board of `arch` (aarch64 or armv7), building its tree the first time.

    `progress` gets one line for each step that takes long; `folder` replaces the cache folder.
    Raises BoardUnavailable: one line that says why, and what to install.
    """
    emulator = find_emulator(arch)
    root = ensure_tree(arch, progress, folder)
    facts = read_facts(root)
    board = Board(arch, root, facts.python, emulator, _board_packages(root.parent))
    tried = root.with_name(root.name + ".tried")
    if not tried.exists():
        progress(f"starting the emulated {arch} board for the first time")
        _try(board)
        tried.touch()
    return board


def _board_packages(folder: Path) -> Path:
    """Return a folder with links to the packages that boards run, and to nothing else.

    Their own parent may be a site-packages full of modules built for this machine.
    """
    origins = {name: _package_folder(name) for name in BOARD_PACKAGES}
    key = hashlib.sha256("\0".join(map(str, origins.values())).encode()).hexdigest()[:12]
    links = folder / f"packages-{key}"
    links.mkdir(parents=True, exist_ok=True)
    for name, origin in origins.items():
        try:
            (links / name).symlink_to(origin, target_is_directory=True)
        except FileExistsError:
            continue  # another start made the same link
    return links


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise BoardUnavailable(f"the package {name} is not installed: pip install 'farbench[host]'")
    return Path(spec.origin).resolve().parent


def _try(board: Board) -> None:
    """Prove that the board's Python starts and has what a device server imports."""
    imports: Sequence[str] = ("argparse", "ctypes", "json", "msgpack", "selectors", "socket", "zmq")
    argv, environment = board.python_command("-c", f"import {', '.join(imports)}")
    try:
        done = subprocess.run(
            argv, env=environment, capture_output=True, timeout=_TRIAL_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BoardUnavailable(
            f"the {board.arch} board's Python did not start within {_TRIAL_LIMIT_S:.0f} s"
        ) from error
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"]
        raise BoardUnavailable(f"the {board.arch} board's Python does not run: {words[-1]}")
