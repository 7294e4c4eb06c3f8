"""What a machine refuses to load, and the reason it gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farbench_rpc.manifest import (
    ElfFacts,
    Machine,
    Manifest,
    ManifestError,
    TargetFacts,
    check_loadable,
    glibc_needed,
)

ELF = ElfFacts(
    class_bits=64, endian="little", machine=62, arch="x86_64", type="shared", flags=0, interp="",
    soname="", needed=("libc.so.6", "libm.so.6"), rpath=(), versions=("GLIBC_2.2.5", "GLIBC_2.17"),
    exports=(), imports=(),
)  # fmt: skip
MANIFEST = Manifest((), TargetFacts("x86_64-linux-gnu", "x86_64", "znver4", ("avx2",)), "0" * 64)
MACHINE = Machine("x86_64", ("avx2", "sse2"), (2, 36))


def test_what_fits() -> None:
    check_loadable(ELF, MANIFEST, MACHINE)


def test_glibc_floor() -> None:
    assert glibc_needed(ELF.versions) == (2, 17)


@pytest.mark.parametrize(
    ("elf", "machine", "said"),
    [
        (replace(ELF, type="executable"), MACHINE, "is executable"),
        (replace(ELF, arch="aarch64"), MACHINE, "for aarch64, this device is x86_64"),
        (replace(ELF, rpath=("/tmp",)), MACHINE, "search paths"),
        (replace(ELF, needed=("libevil.so",)), MACHINE, "needs 'libevil.so'"),
        (ELF, replace(MACHINE, glibc=(2, 12)), "glibc 2.17, this device has 2.12"),
        (ELF, replace(MACHINE, glibc=()), "another C library"),
        (ELF, replace(MACHINE, features=("sse2",)), "lacks: avx2"),
    ],
)
def test_what_is_refused(elf: ElfFacts, machine: Machine, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        check_loadable(elf, MANIFEST, machine)


def test_newer_calling_convention() -> None:
    with pytest.raises(ManifestError, match="update farbench"):
        check_loadable(ELF, replace(MANIFEST, abi=99), MACHINE)
