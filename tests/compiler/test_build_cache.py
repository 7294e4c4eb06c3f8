"""Builds come from memory, from disk, or are made; what is broken on disk is made again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farbench_compiler import build_cache, te
from farbench_compiler.artifact import Artifact
from farbench_compiler.build import build


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_cache, "folder", lambda: tmp_path / "builds")
    build_cache.clear()


def made(factor: int = 4, *, cache: bool = True) -> Artifact:
    a = te.placeholder((64,), name="A")
    c = te.compute((64,), lambda i: a[i] + 1, name="C")
    schedule = te.create_schedule(c.op)
    schedule[c].split(c.op.axis[0], factor=factor)
    return build(schedule, [a, c], cache=cache)


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "builds").glob("*/*.fbo"))


def test_an_equal_program_is_the_same_artifact() -> None:
    assert made() is made()
    assert made() is not made(factor=8)


@pytest.mark.parametrize(("cap", "kept"), [("IN_MEMORY", 2), ("IN_MEMORY_BYTES", 0)])
def test_memory_holds_so_many_and_so_much(
    monkeypatch: pytest.MonkeyPatch, cap: str, kept: int
) -> None:
    artifacts = [made(factor) for factor in (2, 4, 8)]
    assert [made(factor) is a for factor, a in zip((2, 4, 8), artifacts, strict=True)] == [True] * 3
    monkeypatch.setattr(build_cache, cap, kept)
    again = made(16)
    assert again.get_source()
    assert (made(16) is again) == (kept > 0)
    assert made(2) is not artifacts[0]


def test_a_build_without_the_cache_is_made_anew() -> None:
    assert made(cache=False) is not made(cache=False)


def test_another_process_reads_what_was_built_and_linked(tmp_path: Path) -> None:
    first = made()
    (entry,) = entries(tmp_path)
    build_cache.clear()
    second = made()
    assert (second.objects, second.linked) == (first.objects, b"")
    library = second.link()
    assert entries(tmp_path) == [entry]
    build_cache.clear()
    second = made()
    assert second is not first
    assert second.linked == library
    assert second.manifest == first.manifest
    assert second.get_source() == first.get_source()
    assert second.get_source("asm") == first.get_source("asm")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"no archive at all"])
def test_a_broken_entry_is_built_again(tmp_path: Path, content: bytes) -> None:
    library = made().link()
    (entry,) = entries(tmp_path)
    entry.write_bytes(content)
    build_cache.clear()
    assert made().link() == library
    assert entries(tmp_path) == [entry]
    assert entry.stat().st_size > len(content)


def test_a_cut_entry_is_built_again(tmp_path: Path) -> None:
    library = made().link()
    (entry,) = entries(tmp_path)
    entry.write_bytes(entry.read_bytes()[:-100])
    build_cache.clear()
    assert made().link() == library


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_damaged_entry_never_fails_a_build(tmp_path: Path, where: float, change: int) -> None:
    build_cache.clear()
    library = made().link()
    (entry,) = entries(tmp_path)
    raw = bytearray(entry.read_bytes())
    raw[int(where * len(raw))] ^= change
    entry.write_bytes(raw)
    build_cache.clear()
    assert made().link() == library
    entry.unlink(missing_ok=True)


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    for factor in (2, 4, 8):
        made(factor).link()
    every = entries(tmp_path)
    for age, path in enumerate(every):
        os.utime(path, (1e9 - age, 1e9 - age))
    build_cache.sweep(sum(path.stat().st_size for path in every[:2]))
    assert entries(tmp_path) == every[:2]


def test_a_folder_that_cannot_be_written_stops_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(build_cache, "folder", lambda: tmp_path / "file")
    assert made().link()


def test_an_entry_under_the_name_of_another_is_not_taken(tmp_path: Path) -> None:
    right = made(4)
    (first,) = entries(tmp_path)
    made(8)
    (second,) = set(entries(tmp_path)) - {first}
    first.write_bytes(second.read_bytes())
    build_cache.clear()
    assert made(4).objects == right.objects != made(8).objects


def test_a_path_that_cannot_be_looked_up_stops_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_cache, "folder", lambda: tmp_path / ("x" * 300))
    assert made().objects


def test_a_sweep_removes_what_killed_writers_left(tmp_path: Path) -> None:
    made()
    (entry,) = entries(tmp_path)
    old, new = (entry.with_name(f".{entry.name}.{end}") for end in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    build_cache.sweep(1 << 30)
    assert (old.exists(), new.exists(), entry.exists()) == (False, True, True)


def test_a_sweep_passes_over_what_it_cannot_remove(tmp_path: Path) -> None:
    made(4)
    (first,) = entries(tmp_path)
    first.unlink()
    first.mkdir()
    os.utime(first, (1e9, 1e9))
    made(8)
    build_cache.sweep(0)
    assert entries(tmp_path) == [first]
