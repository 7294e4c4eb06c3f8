"""Find the user-mode emulator of an architecture and run single executables with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from farbench.boards.errors import BoardUnavailable

# farbench's word for the user land -> qemu's.
_QEMU_NAMES = {"aarch64": "aarch64", "armv7": "arm", "riscv64": "riscv64", "x86_64": "x86_64"}


def find_emulator(arch: str) -> str:
    """Return the path of qemu-user for `arch`; raise BoardUnavailable with what to install."""
    if arch not in _QEMU_NAMES:
        known = ", ".join(sorted(_QEMU_NAMES))
        raise BoardUnavailable(f"no emulator for architecture {arch!r} (known: {known})")
    if not sys.platform.startswith("linux"):
        raise BoardUnavailable(f"qemu's user mode needs Linux; this is {sys.platform}")
    name = f"qemu-{_QEMU_NAMES[arch]}"
    # Debian 12 calls the static one -static; from Debian 13 on the plain name is static.
    for candidate in (f"{name}-static", name):
        path = shutil.which(candidate)
        if path:
            return path
    raise BoardUnavailable(f"{name}-static is not installed: apt-get install qemu-user-static")


def run_static(
    arch: str, executable: str | os.PathLike[str], args: Sequence[str] = (), *, timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a statically linked executable of `arch` and return its output and exit status.

    The way to prove code for an architecture that has no user land here (RISC-V on Debian 12).
    Raises BoardUnavailable without the emulator and subprocess.TimeoutExpired after `timeout_s`.
    """
    command = [find_emulator(arch), os.fspath(executable), *args]
    return subprocess.run(command, capture_output=True, timeout=timeout_s, check=False)
