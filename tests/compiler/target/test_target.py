"""Targets: presets and strings resolve; what is unknown is refused with what was perhaps meant."""

from __future__ import annotations

from typing import Any

import pytest

from farbench_compiler.target import ARCHES, Target, TargetError, preset_texts, presets

PI4 = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


@pytest.mark.parametrize("name", preset_texts())
def test_a_preset_is_its_text(name: str) -> None:
    target = Target.parse(name)
    assert target.preset == name
    assert Target.parse(target.text) == target
    assert target.arch in ARCHES
    assert target.facts.arch == target.arch
    assert set(target.facts.features) <= set(target.features)


def test_presets_cover_every_architecture() -> None:
    assert {target.arch for target in presets().values()} == set(ARCHES)


@pytest.mark.linux
def test_native_is_this_machine_and_can_be_named_elsewhere() -> None:
    native = Target.parse("native")
    assert native.preset == "native"
    assert Target.parse(native.text) == native
    assert Target.parse("llvm -mcpu=native") == native
    assert presets()["native"] == native


def test_a_target_is_its_own_parse() -> None:
    target = Target.parse(PI4)
    assert Target.parse(target) is target


@pytest.mark.parametrize(
    ("text", "bits", "registers"),
    [
        ("x86-64", 128, 16),
        ("x86-64-v3", 256, 16),
        ("x86-64-v4", 512, 32),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512", 512, 32),
        ("pi4", 128, 32),
        ("armv7", 128, 16),
        ("riscv64", 64, 32),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", 128, 32),
        ("bananapi-f3", 256, 32),
    ],
)
def test_vectors(text: str, bits: int, registers: int) -> None:
    target = Target.parse(text)
    assert (target.vector_bits, target.vector_registers) == (bits, registers)


@pytest.mark.parametrize(
    ("text", "zig", "triple"),
    [
        ("pi4", "aarch64-linux-gnu.2.17", "aarch64-unknown-linux-gnu"),
        ("armv7", "arm-linux-gnueabihf.2.17", "armv7-unknown-linux-gnueabihf"),
        ("riscv64", "riscv64-linux-gnu.2.27", "riscv64-unknown-linux-gnu"),
        ("llvm -mtriple=arm64-linux-gnu.2.31", "aarch64-linux-gnu.2.31", None),
        ("llvm -mtriple=amd64-pc-linux", "x86_64-linux-gnu.2.17", None),
        ("llvm -mtriple=armv7l-unknown-linux-musleabihf", "arm-linux-musleabihf", None),
    ],
)
def test_triples(text: str, zig: str, triple: str | None) -> None:
    target = Target.parse(text)
    assert target.zig_target == zig
    assert triple in (None, target.triple)
    assert Target.parse(target.text) == target


def test_features_are_applied_in_order_with_what_they_imply() -> None:
    plain = Target.parse("x86-64-v3")
    wide = Target.parse("x86-64-v3 -mattr=+avx512vl")
    assert wide.has("avx512f")
    assert not plain.has("avx512f")
    narrow = Target.parse("x86-64-v3 -mattr=-avx")
    assert not narrow.has("avx2")
    assert "-avx2" in narrow.llvm_features.split(",")
    assert Target.parse("x86-64-v3 -mattr=+avx512vl -mattr=-avx512f") == plain


def test_fast_math_and_the_hints_of_tvm() -> None:
    target = Target.parse(f"{PI4} -keys=arm_cpu,cpu -device=arm_cpu -model=bcm2711 -fast-math")
    assert target.fast_math
    assert Target.parse(target.text) == target
    assert not Target.parse(PI4).fast_math


@pytest.mark.parametrize(
    ("other", "name"),
    [("core-avx2", "haswell"), ("core-avx-i", "ivybridge"), ("corei7-avx", "sandybridge")],
)
def test_cpus_have_other_names(other: str, name: str) -> None:
    triple = "llvm -mtriple=x86_64-linux-gnu"
    assert Target.parse(f"{triple} -mcpu={other}") == Target.parse(f"{triple} -mcpu={name}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the target is empty"),
        ("pi6", "unknown target 'pi6'; did you mean pi5"),
        ("cuda", "unknown target 'cuda'"),
        ("llvm -mcpus=x", "unknown flag '-mcpus=x' in target .*did you mean -mcpu"),
        ("llvm -mcpu=", "-mcpu needs a value"),
        ("llvm -mtriple=arch64-linux-gnu", "unknown architecture 'arch64'.*did you mean aarch64"),
        ("llvm -mtriple=aarch64-linus-gnu", "did you mean aarch64-linux-gnu"),
        ("llvm -mtriple=aarch64-linux-gnueabihf", "unknown libc 'gnueabihf'.*known: gnu, musl"),
        ("llvm -mtriple=arm-linux-gnueabi", "did you mean armv7-linux-gnueabihf"),
        ("llvm -mtriple=x86_64-pc-windows-msvc", "is for Windows"),
        ("llvm -mtriple=arm64-apple-darwin23", "is for macOS"),
        ("llvm -mtriple=x86_64-linux-gnu.2.5", "one of 2.17 to"),
        ("llvm -mtriple=x86_64-linux-gnu.new", "cannot read glibc's version"),
        ("llvm -mtriple=x86_64-a-b-linux-gnu", "cannot read the triple"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver44", "unknown cpu 'znver44'.*znver4"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortexa72", "did you mean cortex-a72"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=znver4", "unknown cpu 'znver4' for aarch64"),
        ("llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-m4", "unknown cpu 'cortex-m4'"),
        ("llvm -mtriple=x86_64-linux-gnu -mattr=+sse4_2", "did you mean sse4.2"),
        ("llvm -mtriple=x86_64-linux-gnu -mattr=avx2", r"must begin with \+ or -"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=-d", "cannot do without 'd'"),
        ("llvm -mtriple=x86_64-linux-gnu -mattr=+soft-float", "'soft-float' could not be called"),
        ("llvm -mtriple=armv7-linux-gnueabihf -mattr=-v6", "armv7 code cannot do without"),
        ("llvm -mtriple=armv7-linux-gnueabihf -mattr=+mve.fp", "'mve' could not be called"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+zcmp", "code for 'zc.*' could not be called"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+zvl256b", "zvl.*b is a length of vectors"),
        ("llvm -fast-math=yes", "-fast-math is 0 or 1"),
    ],
)
def test_what_is_unknown_is_refused_with_near_matches(text: str, said: str) -> None:
    with pytest.raises(TargetError, match=said) as caught:
        Target.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.linux
def test_the_cpu_of_this_machine_is_not_that_of_another() -> None:
    here = Target.parse("native").arch
    other = "riscv64" if here != "riscv64" else "x86_64"
    with pytest.raises(TargetError, match="-mcpu=native is"):
        Target.parse(f"llvm -mtriple={other}-linux-gnu -mcpu=native")


@pytest.mark.parametrize("target", [None, 5])
def test_what_is_no_text_is_refused(target: Any) -> None:
    with pytest.raises(TargetError, match="a target is text such as native or pi4, not"):
        Target.parse(target)


def test_the_innermost_open_target_is_the_current_one() -> None:
    assert Target.current() is None
    with Target.parse("pi4") as outer:
        with Target.parse("x86-64"):
            assert str(Target.current()) == "x86-64"
        assert Target.current() is outer
    with pytest.raises(TargetError, match="no target is current"):
        Target.current(allow_none=False)


def test_the_class_reads_a_text() -> None:
    read: Any = Target
    assert read("pi4") == Target.parse("pi4")
    assert read(PI4, host=PI4) == Target.parse(PI4)
    with pytest.raises(TargetError, match="host pi4 is not the target x86-64"):
        read("x86-64", host="pi4")
