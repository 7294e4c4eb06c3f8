"""Artifacts: libraries that describe themselves, archives that link again, sources."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from farbench_compiler.artifact import Artifact
from farbench_compiler.errors import CompilerError
from farbench_compiler.target import Target
from farbench_compiler.toolchain import LinkError
from farbench_rpc.manifest import read_elf, read_manifest
from tests.compiler.toolchain.kernels import artifact


@pytest.mark.parametrize("preset", ["x86-64", "aarch64", "armv7", "riscv64"])
def test_a_library_carries_its_manifest_and_its_objects(preset: str, tmp_path: Path) -> None:
    built = artifact(Target.parse(preset))
    path = built.export_library(tmp_path / "kernels.so")
    assert read_manifest(path) == built.manifest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernels.fbo", "kernels.so"]
    again = Artifact.read(tmp_path / "kernels.fbo")
    assert again.objects == built.objects
    assert again.manifest == built.manifest
    assert again.target == built.target
    assert again.link() == path.read_bytes()


def test_equal_artifacts_are_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        artifact(Target.parse("aarch64")).export_library(tmp_path / f"{name}.so")
    for suffix in (".so", ".fbo"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_a_library_in_use_is_replaced_not_written_to(tmp_path: Path) -> None:
    built = artifact(Target.parse("x86-64"))
    path = tmp_path / "kernels.so"
    path.write_bytes(b"what was there")
    with path.open("rb") as before:
        built.export_library(path)
        assert before.read() == b"what was there"
    assert read_elf(path).arch == "x86_64"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="cannot write"):
        artifact(Target.parse("x86-64")).export_library(tmp_path / "none" / "x.so")


def test_sources(tmp_path: Path) -> None:
    built = artifact(Target.parse("x86-64"))
    assert "define i32 @exp_one" in built.get_source()
    with pytest.raises(CompilerError, match="'asm'.*kinds: ll, asm"):
        built.get_source("asm")
    with pytest.raises(CompilerError, match="'c'"):
        built.get_source("c")


def test_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.fbo"
    with pytest.raises(LinkError, match="no archive"):
        Artifact.read(path)
    path.write_bytes(b"PK nonsense")
    with pytest.raises(LinkError, match="no archive"):
        Artifact.read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("head.json", '{"farbench": 99}')
    with pytest.raises(LinkError, match="another version"):
        Artifact.read(path)
