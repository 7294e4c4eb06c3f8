"""Libraries of every target: what they need, export and say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench_compiler.target import Target, presets
from farbench_compiler.toolchain import LinkError, link_shared, zig
from farbench_rpc.manifest import glibc_needed, read_elf
from farbench_rpc.manifest.loadable import Machine, check_loadable
from tests.compiler.toolchain.kernels import EXP, artifact, compile_ir

TARGETS = ["x86-64", "pi4", "armv7", "beaglebone", "riscv64", "visionfive2"]
RUNTIME = {
    "fb_abi_version", "fb_alloc", "fb_ctx_bound", "fb_ctx_clear", "fb_ctx_create", "fb_ctx_destroy",
    "fb_ctx_error", "fb_empty_kernel", "fb_fill", "fb_flush", "fb_free", "fb_now_ns",
    "fb_sentinel_chain", "fb_sentinel_copy", "fb_time_rotate", "fb_time_sample", "fb_timer_probe",
}  # fmt: skip


@pytest.mark.parametrize("preset", TARGETS)
def test_a_library_needs_the_right_libraries_and_no_more(preset: str) -> None:
    target = Target.parse(preset)
    facts = read_elf(artifact(target).link())
    assert facts.type == "shared"
    assert facts.arch == target.arch
    assert facts.class_bits == target.pointer_bits
    assert set(facts.needed) <= {"libc.so.6", "libm.so.6", "libpthread.so.0"}
    assert {"libc.so.6", "libm.so.6"} <= set(facts.needed)
    assert facts.rpath == ()
    floor = (2, 27) if target.arch == "riscv64" else (2, 17)
    assert glibc_needed(facts.versions) <= floor
    assert all(version.startswith("GLIBC_") for version in facts.versions)


@pytest.mark.parametrize("preset", TARGETS)
def test_a_library_exports_entries_and_runtime_alone(preset: str) -> None:
    target = Target.parse(preset)
    facts = read_elf(link_shared([compile_ir(EXP, target)], target))
    assert set(facts.exports) == RUNTIME | {"exp_one"}
    assert "expf" in facts.imports
    assert not [name for name in facts.imports if name.startswith("__aeabi")]


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "armv7", "riscv64"])
def test_a_library_for_musl_names_no_libc(arch: str) -> None:
    suffix = "eabihf" if arch == "armv7" else ""
    target = Target.parse(f"llvm -mtriple={arch}-linux-musl{suffix}")
    facts = read_elf(link_shared([compile_ir(EXP, target)], target))
    assert facts.needed == ()
    assert facts.versions == ()


def test_a_newer_glibc_may_be_the_floor() -> None:
    target = Target.parse("llvm -mtriple=x86_64-linux-gnu.2.34")
    facts = read_elf(artifact(target).link())
    # Since 2.34 threads are in libc.
    assert set(facts.needed) == {"libc.so.6", "libm.so.6"}


def test_what_does_not_resolve_is_named() -> None:
    target = Target.parse("x86-64")
    text = "declare void @no_such_function()\n"
    text += "define void @f() { call void @no_such_function() ret void }"
    with pytest.raises(LinkError, match="undefined symbol: no_such_function") as caught:
        link_shared([compile_ir(text, target)], target)
    assert "\n" not in str(caught.value)


def test_linking_again_gives_the_same_bytes() -> None:
    built = artifact(Target.parse("aarch64"))
    assert built.link() == built.link()


def test_a_library_fits_its_own_machine() -> None:
    built = artifact(Target.parse("aarch64"))
    machine = Machine("aarch64", ("neon", "fp-armv8"), (2, 36))
    check_loadable(read_elf(built.link()), built.manifest, machine)


def test_progress_is_told_the_first_time_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    target = Target.parse("x86-64")
    said: list[str] = []
    first = link_shared([compile_ir(EXP, target)], target, said.append)
    assert [line.split()[0] for line in said] == ["compiling", "preparing"]
    said.clear()
    assert link_shared([compile_ir(EXP, target)], target, said.append) == first
    assert said == []


def test_a_missing_zig_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    zig.locate.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    try:
        with pytest.raises(LinkError, match=r"pip install 'farbench\[host\]'"):
            zig.locate()
    finally:
        zig.locate.cache_clear()


def test_c_that_does_not_compile_is_said_in_one_line(tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int f(void) { return nothing; }\n")
    with pytest.raises(LinkError, match="undeclared identifier 'nothing'") as caught:
        zig.compile_c("broken", [source], Target.parse("x86-64"))
    assert "\n" not in str(caught.value)


def test_every_preset_has_a_known_linker() -> None:
    from farbench_compiler.toolchain.link import _EMULATION

    assert {target.arch for target in presets().values()} <= set(_EMULATION)
