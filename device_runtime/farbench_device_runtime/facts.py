"""What this device is: facts that requirements match and results carry.

What is absent is left out (many guests and boards have neither cpufreq nor thermal zones). On an
emulated board /proc/cpuinfo and /sys are the host's, so the instruction set is asked of the
auxiliary vector and the host's frequencies are left out.
"""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import struct
import time
from collections.abc import Sequence

from farbench_device_runtime import libc
from farbench_device_runtime.procfs import read_text
from farbench_device_runtime.settings import usable_cores
from farbench_rpc.manifest import Machine, features
from farbench_rpc.messages import Facts

_ARCHES = {
    ("x86_64", 64): "x86_64",
    ("amd64", 64): "x86_64",
    ("aarch64", 64): "aarch64",
    ("arm64", 64): "aarch64",
    ("aarch64", 32): "armv7",
    ("armv8l", 32): "armv7",
    ("armv7l", 32): "armv7",
    ("riscv64", 64): "riscv64",
}
_FOREIGN_WORDS = {"x86_64": "flags", "aarch64": "Features", "armv7": "Features", "riscv64": "isa"}


def bits() -> int:
    """Give the size of a pointer in this user land."""
    return struct.calcsize("P") * 8


def arch() -> str:
    """Name the user land's architecture: x86_64, aarch64, armv7, riscv64, or the system's word."""
    word = platform.machine().lower()
    return _ARCHES.get((word, bits()), word)


def looks_emulated() -> bool:
    """Tell whether /proc/cpuinfo is of another architecture than the programs that run here."""
    here = arch()
    keys = {line.partition(":")[0].strip() for line in read_text("/proc/cpuinfo").splitlines()}
    if here not in _FOREIGN_WORDS or not keys - {""}:
        return False
    return _FOREIGN_WORDS[here] not in keys and bool(keys & set(_FOREIGN_WORDS.values()))


def cpu_features(emulated: bool) -> tuple[str, ...]:
    """List the instruction set features by LLVM's names."""
    here = arch()
    found = set(features.from_hwcaps(here, *_hwcaps()))
    if not emulated:
        words = _cpuinfo(_FOREIGN_WORDS.get(here, "flags"))
        if here == "riscv64":
            found.update(features.from_isa(words))
        else:
            found.update(features.from_words(here, words.split()))
    return tuple(sorted(found))


def glibc_version() -> tuple[int, ...]:
    """Give the version of glibc; empty where the C library is another one."""
    with contextlib.suppress(ValueError, OSError):
        words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        if len(words) == 2 and words[0] == "glibc":
            return tuple(int(part) for part in words[1].split(".") if part.isdigit())
    return ()


def machine(emulated: bool) -> Machine:
    """Describe this machine as the check before a load wants it."""
    return Machine(arch(), cpu_features(emulated), glibc_version())


def memory_bytes() -> int:
    """Give the memory this process can have: the machine's, or its control group's if less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    text = read_text("/sys/fs/cgroup/memory.max").strip()
    if text.isdigit():
        total = min(total, int(text))
    if bits() == 32:
        total = min(total, 3 << 30)
    return int(total)


def available_bytes() -> int:
    """Give the memory that can be had now without swapping, at most `memory_bytes`."""
    total = memory_bytes()
    for line in read_text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return min(total, int(line.split()[1]) * 1024)
    return total


def collect(cores: Sequence[int], emulated: bool, held: Sequence[str], subreaper: bool) -> Facts:
    """Collect every fact of the device; `held` are the isolation limits that held when tried."""
    chosen = tuple(cores) or usable_cores()
    known: Facts = {
        "arch": arch(),
        "bits": bits(),
        "cores": len(chosen),
        "core_set": tuple(map(str, chosen)),
        "memory": memory_bytes(),
        "features": cpu_features(emulated),
        "system": platform.system().lower(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "emulated": emulated,
        "isolation": (*held, "subreaper") if subreaper else tuple(held),
        "isolation_level": 0,
        "timer_resolution_ns": timer_resolution_ns(),
    }
    version = glibc_version()
    if version:
        known["libc"] = "glibc " + ".".join(map(str, version))
    if not emulated:
        known.update(_hardware(chosen))
    return known


def timer_resolution_ns(reads: int = 2000) -> int:
    """Give the smallest positive step of the monotonic clock seen in some reads."""
    clock = getattr(time, "CLOCK_MONOTONIC_RAW", getattr(time, "CLOCK_MONOTONIC", None))
    read = time.monotonic_ns if clock is None else lambda: time.clock_gettime_ns(clock)
    stamps = [read() for _ in range(reads)]
    steps = [b - a for a, b in zip(stamps, stamps[1:], strict=False) if b > a]
    return min(steps, default=0)


def flush_bytes(emulated: bool) -> int:
    """Give how much memory to walk to empty the caches: twice the largest, within bounds."""
    largest = 0
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        text = read_text(path).strip()
        scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        digits = text.rstrip("KM")
        largest = max(largest, int(digits) * scale if digits.isdigit() else 0)
    if emulated:
        return 8 << 20  # The caches are the host's, and walking them is slow.
    return min(max(2 * largest, 16 << 20), 512 << 20)


def frequencies_khz(cores: Sequence[int]) -> tuple[int, ...]:
    """Read the current frequency of each core; empty where the system does not tell."""
    found = []
    for core in cores:
        text = read_text(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").strip()
        if text.isdigit():
            found.append(int(text))
    return tuple(found)


def temperature_c() -> float | None:
    """Read the hottest thermal zone in degrees; None where there is none."""
    hottest: float | None = None
    for path in glob.glob("/sys/class/thermal/thermal_zone*/temp"):
        with contextlib.suppress(ValueError):
            value = int(read_text(path).strip() or "x") / 1000
            hottest = value if hottest is None else max(hottest, value)
    return hottest


def load_average() -> float:
    """Give the load of the last minute; 0 where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def runnable_tasks() -> int:
    """Count the tasks that run or wait for a core now; 0 where the system does not tell."""
    fields = read_text("/proc/loadavg").split()
    running = fields[3].partition("/")[0] if len(fields) > 3 else ""
    return int(running) if running.isdigit() else 0


def _hardware(cores: Sequence[int]) -> Facts:
    """Collect what only a real machine tells of itself."""
    known: Facts = {}
    model = _cpuinfo("model name") or read_text("/proc/device-tree/model").rstrip("\0\n")
    if model:
        known["model"] = model[:120]
    governor = read_text(f"/sys/devices/system/cpu/cpu{cores[0]}/cpufreq/scaling_governor").strip()
    if governor:
        known["governor"] = governor
    maximum = read_text(f"/sys/devices/system/cpu/cpu{cores[0]}/cpufreq/cpuinfo_max_freq").strip()
    if maximum.isdigit():
        known["max_frequency_khz"] = int(maximum)
    degrees = temperature_c()
    if degrees is not None:
        known["temperature_c"] = degrees
    known["virtual"] = "hypervisor" in _cpuinfo("flags").split() or os.path.exists("/.dockerenv")
    return known


def _hwcaps() -> tuple[int, int]:
    return libc.auxiliary(libc.AT_HWCAP), libc.auxiliary(libc.AT_HWCAP2)


def _cpuinfo(key: str) -> str:
    """Give the first value of a key in /proc/cpuinfo; empty if it has none."""
    for line in read_text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""
