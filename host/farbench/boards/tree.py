"""Build a board's root file system once, from the archive that this machine installs from.

The tree holds the distribution's own Python, pyzmq and msgpack, unpacked and never configured:
nothing of it runs while it is built. Trees are kept in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from farbench.boards.errors import BoardUnavailable
from farbench.boards.sources import Archive, choose_archive, read_os_release, read_sources

Progress = Callable[[str], None]

# Raised whenever what a tree holds changes, so that old caches are left alone and unused.
TREE_VERSION = 1
PACKAGES = ("python3-minimal", "python3-zmq", "python3-msgpack")
BUILD_LIMIT_S = 600.0
_DEBIAN_NAMES = {"aarch64": "arm64", "armv7": "armhf"}
_FACTS_NAME = ".farbench-board.json"


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What a finished tree says of itself; `python` is the interpreter's name under usr/bin."""

    arch: str
    suite: str
    python: str
    version: int = TREE_VERSION


def cache_folder() -> Path:
    """Return the folder that holds the boards (under XDG_CACHE_HOME, where that is set)."""
    return Path(platformdirs.user_cache_dir("farbench", appauthor=False)) / "boards"


def ensure_tree(arch: str, progress: Progress, folder: Path | None = None) -> Path:
    """Return the root of the tree of `arch` (aarch64 or armv7), building it the first time.

    Several processes may ask at once: one builds, the others wait for it. Raises BoardUnavailable.
    """
    if arch not in _DEBIAN_NAMES:
        known = " and ".join(_DEBIAN_NAMES)
        raise BoardUnavailable(f"no emulated board for {arch!r}; there are {known}")
    archive = choose_archive(read_os_release(), read_sources())
    folder = folder or cache_folder()
    root = folder / f"{archive.suite}-{_DEBIAN_NAMES[arch]}-v{TREE_VERSION}"
    if _is_complete(root):
        return root
    if shutil.which("mmdebstrap") is None:
        raise BoardUnavailable("mmdebstrap is not installed: apt-get install mmdebstrap")
    folder.mkdir(parents=True, exist_ok=True)
    with _build_lock(root.with_name(root.name + ".lock"), progress):
        if not _is_complete(root):
            _build(root, arch, archive, progress)
    return root


def read_facts(root: Path) -> TreeFacts:
    """Read what the tree at `root` says of itself; raise BoardUnavailable if it is not whole."""
    try:
        return TreeFacts(**json.loads((root / _FACTS_NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise BoardUnavailable(f"{root} is not a finished board ({error}); remove it") from error


def _is_complete(root: Path) -> bool:
    return (root / _FACTS_NAME).is_file()


def _build(root: Path, arch: str, archive: Archive, progress: Progress) -> None:
    for stale in root.parent.glob(root.name + ".partial-*"):
        shutil.rmtree(stale, ignore_errors=True)
    # What stands at `root` without its facts is half removed: it cannot be renamed onto.
    shutil.rmtree(root, ignore_errors=True)
    partial = root.parent / f"{root.name}.partial-{os.getpid()}"
    progress(f"building the emulated {arch} board from {archive.suite} (once, about 10 s)")
    try:
        _unpack(partial, _DEBIAN_NAMES[arch], archive)
        facts = TreeFacts(arch, archive.suite, _find_python(partial))
        text = json.dumps(asdict(facts), indent=1)
        (partial / _FACTS_NAME).write_text(text, encoding="utf-8")
        os.replace(partial, root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _unpack(target: Path, debian_arch: str, archive: Archive) -> None:
    # Without root, mmdebstrap's chrootless mode unpacks just as well: no package script runs.
    mode = "root" if os.geteuid() == 0 else "chrootless"
    command = [
        "mmdebstrap",
        f"--mode={mode}",
        "--variant=extract",
        f"--architectures={debian_arch}",
        f"--include={','.join(PACKAGES)}",
        archive.suite,
        str(target),
        archive.apt_line,
    ]
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BUILD_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BoardUnavailable(
            f"mmdebstrap did not finish within {BUILD_LIMIT_S:.0f} s; is the archive reachable?"
        ) from error
    if done.returncode != 0:
        raise BoardUnavailable(f"mmdebstrap failed: {_last_error(done.stderr)}")


def _last_error(stderr: bytes) -> str:
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
    errors = [line for line in lines if line.startswith(("E:", "W:"))]
    return (errors or [line for line in lines if line] or ["no output"])[0]


def _find_python(root: Path) -> str:
    names = [path.name for path in (root / "usr/bin").glob("python3.*")]
    minors = [int(minor) for name in names if (minor := name.removeprefix("python3.")).isdigit()]
    if not minors:
        raise BoardUnavailable(f"{root} holds no Python; the archive's packages have changed")
    return f"python3.{max(minors)}"


@contextlib.contextmanager
def _build_lock(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock file for the block; the kernel lets go of it even if this process is killed."""
    import fcntl  # not on every host that imports this package

    deadline = time.monotonic() + BUILD_LIMIT_S
    told = False
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if time.monotonic() > deadline:
                raise BoardUnavailable(f"another process has held {path} for {BUILD_LIMIT_S:.0f} s")
            if not told:
                progress("waiting for another process that builds the same board")
                told = True
            time.sleep(0.1)
        yield
