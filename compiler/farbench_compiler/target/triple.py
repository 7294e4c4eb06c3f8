"""Triples: which machine, C library and float ABI code is for.

    triple ::= arch ["-" vendor] "-linux" ["-" libc]
    libc   ::= "gnu" | "gnueabihf" | "musl" | "musleabihf", with glibc's version behind it or not

Objects are ELF for Linux. The version (`gnu.2.28`) is the oldest glibc that the library loads on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from farbench_compiler.errors import TargetError
from farbench_compiler.target.table import near

# Spellings of uname and of distributions; 32-bit ARM means hard-float ARMv7, as Debian's armhf.
ARCH_WORDS = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "arm": "armv7",
    "armhf": "armv7",
    "armv7": "armv7",
    "armv7a": "armv7",
    "armv7l": "armv7",
    "armv8l": "armv7",
    "riscv64": "riscv64",
    "riscv64gc": "riscv64",
}
# The oldest glibc that zig can link for and that has the architecture.
OLDEST_GLIBC = {"x86_64": (2, 17), "aarch64": (2, 17), "armv7": (2, 17), "riscv64": (2, 27)}
NEWEST_GLIBC = (2, 41)

_LIBCS = {"gnu": "gnu", "gnueabihf": "gnu", "musl": "musl", "musleabihf": "musl"}
_OTHERS = {
    "windows": "Windows (PE)",
    "win32": "Windows (PE)",
    "darwin": "macOS (Mach-O)",
    "macos": "macOS (Mach-O)",
    "macosx": "macOS (Mach-O)",
    "ios": "iOS (Mach-O)",
    "freebsd": "FreeBSD",
    "wasi": "WebAssembly",
    "none": "bare metal",
}


@dataclass(frozen=True)
class Triple:
    """A triple in farbench's words; `glibc` is empty for musl."""

    arch: str
    libc: str
    glibc: tuple[int, ...]

    @property
    def environment(self) -> str:
        """The last part: libc and float ABI."""
        return f"{self.libc}{'eabihf' if self.arch == 'armv7' else ''}"

    @property
    def short(self) -> str:
        """The form that people write: `aarch64-linux-gnu`, with a version that is not the usual."""
        usual = self.glibc in ((), OLDEST_GLIBC[self.arch])
        version = "" if usual else "".join(f".{part}" for part in self.glibc)
        return f"{self.arch}-linux-{self.environment}{version}"

    @property
    def llvm(self) -> str:
        """The form in four parts that LLVM needs, since it does not guess."""
        return f"{self.arch}-unknown-linux-{self.environment}"

    @property
    def zig(self) -> str:
        """The form of zig, with the oldest glibc that will do."""
        arch = "arm" if self.arch == "armv7" else self.arch
        version = "".join(f".{part}" for part in self.glibc)
        return f"{arch}-linux-{self.environment}{version}"


def parse_triple(text: str) -> Triple:
    """Read a triple; TargetError says what is wrong and what was perhaps meant."""
    word, *rest = text.split("-")
    if word not in ARCH_WORDS:
        raise TargetError(f"unknown architecture {word!r} in {text!r}; {near(word, ARCH_WORDS)}")
    arch = ARCH_WORDS[word]
    if "linux" not in rest:
        raise TargetError(_no_linux(text, arch, rest))
    at = rest.index("linux")
    if at > 1 or len(rest) > at + 2:
        raise TargetError(f"cannot read the triple {text!r}; write it as {_example(arch)}")
    environment = rest[at + 1] if len(rest) > at + 1 else _example(arch).split("-")[-1]
    name, *version = environment.split(".")
    _check_environment(text, arch, name)
    libc = _LIBCS[name]
    return Triple(arch, libc, _glibc(text, arch, version) if libc == "gnu" else ())


def _example(arch: str) -> str:
    return f"{arch}-linux-{'gnueabihf' if arch == 'armv7' else 'gnu'}"


def _no_linux(text: str, arch: str, rest: list[str]) -> str:
    for part in rest:
        system = _OTHERS.get(re.sub(r"[\d.]+$", "", part))
        if system:
            return f"{text!r} is for {system}; farbench builds ELF for Linux: {_example(arch)}"
    return f"no known system in the triple {text!r}; did you mean {_example(arch)}?"


def _check_environment(text: str, arch: str, name: str) -> None:
    fits = [n for n in _LIBCS if n.endswith("eabihf") == (arch == "armv7")]
    if name in fits:
        return
    if arch == "armv7" and name in ("gnueabi", "musleabi", "eabi"):
        raise TargetError(
            f"{text!r} passes floats in integer registers; farbench builds for the hard-float "
            f"ABI: did you mean armv7-linux-{'musl' if 'musl' in name else 'gnu'}eabihf?"
        )
    raise TargetError(f"unknown libc {name!r} in {text!r}; {near(name, fits)}")


def _glibc(text: str, arch: str, version: list[str]) -> tuple[int, ...]:
    oldest = OLDEST_GLIBC[arch]
    if not version:
        return oldest
    if not all(part.isdigit() for part in version):
        raise TargetError(f"cannot read glibc's version in {text!r}; write it as gnu.2.28")
    wanted = tuple(int(part) for part in version[:2])
    if not oldest <= wanted <= NEWEST_GLIBC:
        low, high = (".".join(map(str, v)) for v in (oldest, NEWEST_GLIBC))
        raise TargetError(f"{text!r}: glibc for {arch} is one of {low} to {high}")
    return wanted
