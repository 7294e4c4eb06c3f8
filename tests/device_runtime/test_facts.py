"""What a device says of itself, here and where everything is absent."""

from __future__ import annotations

import glob
import os
import platform

import pytest

from farbench_device_runtime import facts, libc
from farbench_rpc.codec import decode, encode
from farbench_rpc.messages import Register

pytestmark = pytest.mark.linux


def test_facts_travel_in_one_message() -> None:
    known = facts.collect((), False, ("process_group",), True)
    message = Register("0" * 32, "n", {}, known, 1)
    assert decode(encode(message, 1)).message == message
    assert known["cores"] == len(os.sched_getaffinity(0))
    assert known["isolation"] == ("process_group", "subreaper")
    assert int(known["memory"]) > 1 << 20  # type: ignore[arg-type]
    assert 0 < int(known["timer_resolution_ns"]) < 10**9  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "bits", "arch"),
    [
        ("x86_64", 64, "x86_64"),
        ("aarch64", 64, "aarch64"),
        ("aarch64", 32, "armv7"),
        ("armv8l", 32, "armv7"),
        ("armv7l", 32, "armv7"),
        ("riscv64", 64, "riscv64"),
        ("sparc64", 64, "sparc64"),
    ],
)
def test_arch_is_the_user_lands(
    monkeypatch: pytest.MonkeyPatch, word: str, bits: int, arch: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: word)
    monkeypatch.setattr(facts, "bits", lambda: bits)
    assert facts.arch() == arch


def test_a_foreign_cpuinfo_betrays_an_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "arch", lambda: "aarch64")
    monkeypatch.setattr(facts, "read_text", lambda path: "vendor_id : x\nflags : fpu sse2\n")
    assert facts.looks_emulated()
    monkeypatch.setattr(facts, "read_text", lambda path: "Features : fp asimd\n")
    assert not facts.looks_emulated()
    monkeypatch.setattr(facts, "read_text", lambda path: "")
    assert not facts.looks_emulated()


def test_an_emulated_board_is_asked_by_its_hwcaps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "arch", lambda: "aarch64")
    monkeypatch.setattr(libc, "auxiliary", lambda kind: 0b11 if kind == 16 else 0)
    monkeypatch.setattr(facts, "read_text", lambda path: "Features : fp asimd atomics\n")
    assert facts.cpu_features(True) == ("fp-armv8", "neon")
    assert facts.cpu_features(False) == ("fp-armv8", "lse", "neon")


def test_what_is_absent_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "read_text", lambda path: "")
    monkeypatch.setattr(glob, "glob", lambda pattern: [])
    known = facts.collect((0,), False, (), False)
    assert not {"governor", "temperature_c", "max_frequency_khz", "model"} & set(known)
    assert facts.frequencies_khz((0, 1)) == ()
    assert facts.temperature_c() is None
    assert facts.flush_bytes(False) >= 16 << 20
    assert facts.available_bytes() == facts.memory_bytes()


def test_what_is_free_is_within_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < facts.available_bytes() <= facts.memory_bytes()
    texts = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  4096 kB\n"}
    monkeypatch.setattr(facts, "read_text", lambda path: texts.get(path, ""))
    assert facts.available_bytes() == 4 << 20
    texts["/sys/fs/cgroup/memory.max"] = "1048576\n"
    assert facts.available_bytes() == 1 << 20
