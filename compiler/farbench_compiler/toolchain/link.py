"""Linking: relocatable objects, the C runtime and a manifest become one shared library."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from farbench_compiler.errors import LinkError
from farbench_compiler.target import Target
from farbench_compiler.toolchain.cache import cached
from farbench_compiler.toolchain.objects import check_object
from farbench_compiler.toolchain.runtime import runtime_objects
from farbench_compiler.toolchain.stubs import c_library
from farbench_compiler.toolchain.zig import Progress, locate
from farbench_rpc.manifest import MACHINES, read_elf

_EMULATION = {
    "x86_64": "elf_x86_64",
    "aarch64": "aarch64linux",
    "armv7": "armelf_linux_eabi",
    "riscv64": "elf64lriscv",
}
# Symbolic: two libraries in one process each use their own copy of the runtime.
_SHARED = ("-shared", "-Bsymbolic", "--gc-sections", "--strip-debug", "--build-id=none")
_SAFE = ("--hash-style=both", "-z", "relro", "-z", "now", "-z", "noexecstack")


def link_shared(
    objects: Sequence[bytes], target: Target, progress: Progress | None = None
) -> bytes:
    """Link objects with the runtime of their target; LinkError says what does not fit or resolve.

    `progress` gets a line when parts of the toolchain are made for a target for the first time.
    """
    for index, data in enumerate(objects):
        check_object(data, target, f"object {index}")
    runtime = runtime_objects(target, progress)
    libraries = c_library(target, progress)
    with tempfile.TemporaryDirectory(prefix="farbench-link-") as folder:
        room = Path(folder)
        paths = [room / f"{index}.o" for index in range(len(objects))]
        for path, data in zip(paths, objects, strict=True):
            path.write_bytes(data)
        command = ["ld.lld", "-m", _EMULATION[target.arch], *_SHARED, *_SAFE, "-o", "out.so"]
        command += [str(path) for path in (*paths, *runtime)]
        if libraries:
            # Without stubs (musl) what libc has cannot be told from what is missing.
            command += ["-z", "defs", "--as-needed", *(str(path) for path in libraries)]
        locate().run(command, room)
        linked = (room / "out.so").read_bytes()
    facts = read_elf(linked)
    if facts.type != "shared" or facts.machine != MACHINES[target.arch]:
        raise LinkError(f"the linker made {facts.type} for {facts.arch}, not a library of {target}")
    return linked


def link_runtime(target: Target, progress: Progress | None = None) -> Path:
    """Give the runtime of a target as a library of its own, made the first time.

    It has neither entries nor a manifest: code that is linked in memory runs on it.
    """
    objects = runtime_objects(target, progress)

    def make(part: Path) -> None:
        (part / "runtime.so").write_bytes(link_shared((), target, progress))

    # The folder of the objects is named by all that they are made of.
    made = objects[0].parent
    return cached(f"{target.zig_target}/library-{made.name}", make) / "runtime.so"
