"""Whether a machine can load a library: compared before the loader, which would die or worse."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from farbench_rpc.manifest.elf import ElfFacts
from farbench_rpc.manifest.errors import ManifestError
from farbench_rpc.manifest.features import missing
from farbench_rpc.manifest.schema import ABI_VERSION, Manifest

# What a library of ours may ask of a board; ld-linux* is the loader itself.
ALLOWED_NEEDED = re.compile(
    r"lib(c|m|pthread|dl|rt)\.so\.6|lib(pthread|dl|rt)\.so\.[0-3]|libc\.so|libc\.musl-\w+\.so\.1"
    r"|ld-linux[-\w]*\.so\.\d+|ld-musl-\w+\.so\.1"
)
_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


@dataclass(frozen=True)
class Machine:
    """What the loader's machine offers; `glibc` is empty where the C library is another one."""

    arch: str
    features: tuple[str, ...]
    glibc: tuple[int, ...] = ()


def glibc_needed(versions: Iterable[str]) -> tuple[int, int]:
    """Find the newest glibc that symbol versions ask for; (0, 0) if none does."""
    found = [(int(m[1]), int(m[2])) for v in versions if (m := _GLIBC.fullmatch(v))]
    return max(found, default=(0, 0))


def check_loadable(elf: ElfFacts, manifest: Manifest, machine: Machine) -> None:
    """Refuse, with the reason, what the machine cannot load or run; ManifestError."""
    if elf.type != "shared":
        raise ManifestError(f"a shared library is needed, this ELF file is {elf.type}")
    if elf.arch != machine.arch or elf.class_bits != (32 if elf.arch == "armv7" else 64):
        raise _of_another_arch(elf.arch or f"machine {elf.machine}", machine)
    if elf.rpath:
        raise ManifestError(f"the library names search paths of its own ({elf.rpath[0]!r})")
    for name in elf.needed:
        if ALLOWED_NEEDED.fullmatch(name) is None:
            raise ManifestError(f"the library needs {name!r}, which farbench libraries never do")
    _check_libc(elf, machine)
    check_runnable(manifest, machine)


def check_runnable(manifest: Manifest, machine: Machine) -> None:
    """Refuse, with the reason, code that the machine cannot run; ManifestError."""
    if manifest.target.arch != machine.arch:
        raise _of_another_arch(manifest.target.arch, machine)
    if manifest.abi > ABI_VERSION:
        raise ManifestError(
            f"the library uses calling convention {manifest.abi}, this device knows up to "
            f"{ABI_VERSION}; update farbench on the device"
        )
    lacking = missing(machine.arch, manifest.target.features, machine.features)
    if lacking:
        raise ManifestError(
            f"the library needs CPU features that this device lacks: {', '.join(lacking)} "
            f"(built for {manifest.target.cpu}); build it for a plainer -mcpu"
        )


def _of_another_arch(arch: str, machine: Machine) -> ManifestError:
    return ManifestError(
        f"the library is for {arch}, this device is {machine.arch}; build it for a target "
        "of the device's arch"
    )


def _check_libc(elf: ElfFacts, machine: Machine) -> None:
    needed = glibc_needed(elf.versions)
    if needed == (0, 0):
        return
    if not machine.glibc:
        raise ManifestError("the library needs glibc, this device has another C library")
    if needed > machine.glibc[:2]:
        have = ".".join(map(str, machine.glibc))
        raise ManifestError(
            f"the library needs glibc {needed[0]}.{needed[1]}, this device has {have}"
        )
