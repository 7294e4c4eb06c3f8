"""The machine that runs this: its architecture, libc, CPU and features."""

from __future__ import annotations

import platform
import sys

from farbench_compiler.errors import TargetError
from farbench_compiler.target.resolve import Resolved, resolve_exact
from farbench_compiler.target.table import BASELINES, table
from farbench_compiler.target.triple import ARCH_WORDS, OLDEST_GLIBC, Triple


def native_triple() -> Triple:
    """Find this machine's triple; TargetError if farbench does not build for it."""
    machine = platform.machine().lower()
    if sys.platform != "linux" or machine not in ARCH_WORDS:
        raise TargetError(
            f"no native target on {sys.platform} {machine}: farbench builds for Linux on x86_64, "
            "aarch64, armv7 and riscv64; name the target of a device instead"
        )
    arch = ARCH_WORDS[machine]
    # A 32-bit system under a 64-bit kernel: the user land decides.
    if arch == "aarch64" and sys.maxsize < 2**32:
        arch = "armv7"
    musl = platform.libc_ver()[0] == "musl"
    return Triple(arch, "musl", ()) if musl else Triple(arch, "gnu", OLDEST_GLIBC[arch])


def native_cpu(arch: str) -> tuple[str, Resolved]:
    """Find this machine's CPU and exact features, as far as the table knows them."""
    from llvmlite import binding

    cpu = binding.get_host_cpu_name()
    if cpu not in table(arch).cpus:
        cpu = BASELINES[arch]
    features = binding.get_host_cpu_features()
    has = [name for name, present in features.items() if present]
    lacks = [name for name, present in features.items() if not present]
    return cpu, resolve_exact(arch, cpu, has, lacks)
