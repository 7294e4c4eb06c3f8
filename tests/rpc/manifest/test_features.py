"""CPU features: kernel words and bits become LLVM names; only what can be reported is compared."""

from __future__ import annotations

from farbench_rpc.manifest import features


def test_cpuinfo_words() -> None:
    assert features.from_words("x86_64", ["pni", "sse4_1", "abm", "nonsense"]) == (
        "lzcnt",
        "sse3",
        "sse4.1",
    )


def test_hwcap_bits() -> None:
    assert features.from_hwcaps("aarch64", 1 << 1 | 1 << 8 | 1 << 20, 1 << 1) == (
        "dotprod",
        "lse",
        "neon",
        "sve2",
    )
    assert "d32" in features.from_hwcaps("armv7", 1 << 12)


def test_isa_line() -> None:
    found = features.from_isa("rv64imafdc_zba_zbb")
    assert {"i", "m", "a", "f", "d", "c", "zba", "zbb", "zicsr", "zifencei"} <= set(found)


def test_missing_ignores_tuning_flags() -> None:
    required = ("avx2", "avx512f", "slow-3ops-lea", "fast-7bytenop")
    assert features.missing("x86_64", required, ("avx2",)) == ("avx512f",)
