"""From a CPU's name and wishes to the exact set of features, and what follows from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from farbench_compiler.errors import TargetError
from farbench_compiler.target.table import Table, table

# Tuning that would make LLVM split the 512-bit vectors which the schedules ask for; instructions
# that LLVM 22 writes where it holds them to be illegal.
_UNWANTED = {
    "x86_64": ("prefer-256-bit", "prefer-128-bit"),
    "riscv64": ("xandesperf",),
}
# Without these the float ABI of the architecture does not exist.
_REQUIRED = {
    "x86_64": ("64bit", "sse2"),
    "aarch64": ("neon",),
    "armv7": ("neon", "v7", "thumb2", "v8m"),
    "riscv64": ("64bit", "m", "a", "f", "d", "c"),
}
# Other ways of calling or encoding than those of the libraries, registers that code cannot spare,
# and what LLVM 22 ends the process for (found by compiling with each feature of the tables).
_IMPOSSIBLE = {
    "x86_64": re.compile(r"16bit-mode|32bit-mode|x32|soft-float"),
    "aarch64": re.compile(r"reserve-.*|execute-only"),
    "armv7": re.compile(
        r"execute-only|lob|long-calls|mve.*|noarm|soft-float|thumb-mode|reserve-.*"
    ),
    "riscv64": re.compile(
        r"32bit|.*u32|exact-asm|reserve-.*|xqc.*|xwchc|xsfvfbfexp16e|zcl?sd|zce|zcf|zcmp|zcmt"
        r"|z[dfh]inx(min)?|zilsd"
    ),
}


@dataclass(frozen=True)
class Resolved:
    """All enabled features, and the difference from the CPU's own as `-mattr` writes it."""

    features: frozenset[str]
    llvm: str
    difference: str


def base_features(known: Table, cpu: str) -> frozenset[str]:
    """Give what a CPU of the table has, with all that is implied."""
    dropped = {f for name in _UNWANTED.get(known.arch, ()) for f in known.dependants(name)}
    return known.closure(known.cpus[cpu]) - dropped


def resolve(arch: str, cpu: str, wishes: Iterable[str]) -> Resolved:
    """Apply `+feature` and `-feature` wishes in order; TargetError for what is unknown."""
    known = table(arch)
    base = base_features(known, known.check_cpu(cpu))
    enabled = set(base)
    for wish in wishes:
        if wish[:1] not in ("+", "-"):
            raise TargetError(f"feature {wish!r} must begin with + or -, as in -mattr=+crc,-aes")
        name = known.check_feature(wish[1:])
        if wish[0] == "+":
            enabled |= known.closure((name,))
        else:
            enabled -= known.dependants(name)
    return _finish(known, cpu, base, enabled)


def resolve_exact(arch: str, cpu: str, has: Iterable[str], lacks: Iterable[str]) -> Resolved:
    """Take a CPU's features, with those that a machine says it has and without what it lacks."""
    known = table(arch)
    base = base_features(known, known.check_cpu(cpu))
    enabled = set(base)
    for name in lacks:
        enabled -= known.dependants(name) if name in known.features else set()
    enabled |= known.closure(name for name in has if name in known.features)
    return _finish(known, cpu, base, enabled)


def _finish(known: Table, cpu: str, base: frozenset[str], enabled: set[str]) -> Resolved:
    for name in sorted(enabled - known.closure(known.cpus[cpu])):
        if _IMPOSSIBLE[known.arch].fullmatch(name):
            raise TargetError(
                f"{known.arch} code for {name!r} could not be called here, or LLVM cannot make it; "
                "leave it out"
            )
    lengths = [name for name in enabled if re.fullmatch(r"zvl\d+b", name)]
    if lengths and "zve32x" not in enabled:
        raise TargetError(f"{max(lengths)} is a length of vectors; add v or zve32x, which has them")
    for name in _REQUIRED[known.arch]:
        if name not in enabled:
            raise TargetError(f"{known.arch} code cannot do without {name!r} (cpu {cpu})")
    own = known.closure(known.cpus[cpu])
    plus = [f"+{name}" for name in sorted(enabled)]
    minus = [f"-{name}" for name in sorted(own - enabled)]
    difference = [f"+{name}" for name in sorted(enabled - base)]
    difference += [f"-{name}" for name in sorted(base - enabled)]
    return Resolved(frozenset(enabled), ",".join(plus + minus), ",".join(difference))


def vectors(arch: str, features: frozenset[str]) -> tuple[int, int]:
    """Give (bits of a vector register, how many there are); 64 bits where there are none."""
    if arch == "x86_64":
        if "avx512f" in features:
            return 512, 32
        return (256 if "avx" in features else 128), 16
    if arch == "aarch64":
        return 128, 32
    if arch == "armv7":
        return 128, 16
    lengths = [int(m[1]) for f in features if (m := re.fullmatch(r"zvl(\d+)b", f))]
    return (max(lengths), 32) if "zve32x" in features and lengths else (64, 32)
