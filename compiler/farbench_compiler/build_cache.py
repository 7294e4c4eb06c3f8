"""The cache of builds: what was built from an equal program, kept in memory and on disk.

The key is the program's fingerprint with its target and the compiler itself, so that nothing is
lowered to find an entry. On disk an entry is one file, replaced as a whole; what cannot be read
is built again. The folder is bounded: what was not used for the longest time goes first.
`FARBENCH_BUILD_CACHE=0` turns the cache off.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import llvmlite

from farbench_compiler.artifact import Artifact
from farbench_compiler.errors import LinkError
from farbench_compiler.fingerprint import NoFingerprintError, fingerprint
from farbench_compiler.llvm.machine import assembly
from farbench_compiler.target import Target
from farbench_compiler.toolchain.cache import cache_dir, digest
from farbench_compiler.toolchain.zig import locate
from farbench_rpc import manifest

_SOURCES = (".py", ".c", ".h", ".json")
IN_MEMORY = 128  # artifacts, some tens of KiB each
IN_MEMORY_BYTES = 256 << 20  # which counts where they hold weights
ON_DISK_BYTES = 256 << 20
_SWEEP_EVERY = 64  # entries written between two looks at the folder's size
_ABANDONED_S = 3600.0  # since a file was last written to that is no entry yet

_lock = threading.Lock()
_recent: OrderedDict[str, Artifact] = OrderedDict()
_written = 0


@lru_cache(maxsize=1)
def enabled() -> bool:
    """Tell whether builds are cached at all; the environment is read once."""
    return os.environ.get("FARBENCH_BUILD_CACHE", "1") not in ("0", "no", "off")


def folder() -> Path:
    """Give the folder of the entries on disk, beside the toolchain's."""
    return cache_dir().with_name("builds")


@lru_cache(maxsize=1)
def _compiler() -> str:
    """Hash all that makes a library besides its program: another compiler, other entries.

    That is the compiler and the manifest, by their sources, LLVM and the linker, by their versions.
    """
    folders = (Path(__file__).parent, Path(manifest.__file__).parent)
    sources = [p for folder in folders for p in sorted(folder.rglob("*")) if p.suffix in _SOURCES]
    versions = (str(llvmlite.__version__), locate().version)
    return digest(*versions, *(p.read_bytes() for p in sources))


def key_of(*parts: object) -> str | None:
    """Give the key of a build from all that it depends on; None where it cannot be shared."""
    try:
        return fingerprint(_compiler(), *parts)
    except NoFingerprintError:
        return None


def remember(key: str | None, make: Callable[[], Artifact]) -> Artifact:
    """Give the artifact of a key, from memory, from disk or made now."""
    if key is None:
        return make()
    with _lock:
        found = _recent.get(key)
        if found is not None:
            _recent.move_to_end(key)
            return found
    found = _read(key)
    if found is None:
        found = make()
        _write(key, found)
    found = replace(found, keep=lambda linked: _write(key, linked))
    with _lock:
        _recent[key] = found
        while len(_recent) > IN_MEMORY or _held_bytes() > IN_MEMORY_BYTES:
            _recent.popitem(last=False)
    return found


def _held_bytes() -> int:
    return sum(len(part) for a in _recent.values() for part in (*a.objects, a.linked, a.llvm_ir))


def _after_fork() -> None:
    """Take a new lock in a forked process: the thread that holds the old one may not exist here."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # which Windows has not
    os.register_at_fork(after_in_child=_after_fork)


def clear() -> None:
    """Forget what is in memory; entries on disk stay."""
    with _lock:
        _recent.clear()


def _path(key: str) -> Path:
    return folder() / key[:2] / f"{key}.fbo"


def _read(key: str) -> Artifact | None:
    path = _path(key)
    if not os.path.isfile(path):  # which is False, too, where the folder is another user's
        return None
    try:
        found = Artifact.read(path, key)
    except LinkError:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now: the last to go
    return replace(found, assembler=_assembler(found.llvm_ir, found.target))


def _assembler(llvm_ir: str, target: Target) -> Callable[[], str]:
    return lambda: assembly(llvm_ir, target)


def _write(key: str, artifact: Artifact) -> None:
    """Keep an artifact on disk, and once more when it is linked.

    A folder that cannot be written is no error of a build.
    """
    global _written
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        artifact.save(path, key)
        with _lock:
            _written += 1
            due = _written % _SWEEP_EVERY == 1
        if due:
            sweep(ON_DISK_BYTES)


def sweep(most_bytes: int) -> None:
    """Remove the entries that were used longest ago, until the rest takes `most_bytes` at most.

    What writers left behind that were killed goes, too; what cannot be removed stays.
    """
    entries = []
    for path in (*folder().glob("??/*.fbo"), *folder().glob("??/.*.fbo.*")):
        with contextlib.suppress(OSError):  # another process sweeps as well, or owns it
            facts = path.stat()
            if path.suffix == ".fbo":
                entries.append((facts.st_mtime, facts.st_size, path))
            elif time.time() - facts.st_mtime > _ABANDONED_S:
                path.unlink()
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= most_bytes:
            break
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            total -= size
