"""A tree is built once, whole or not at all."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from farbench.boards import tree
from farbench.boards.errors import BoardUnavailable
from farbench.boards.sources import Archive

ARCHIVE = Archive("http://archive.example/debian", "bookworm", ("main",), "")


@pytest.fixture
def fake_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "choose_archive", lambda *_: ARCHIVE)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/mmdebstrap")


def unpack_python(target: Path, _arch: str, _archive: Archive) -> None:
    (target / "usr/bin").mkdir(parents=True)
    for name in ("python3", "python3.9", "python3.11", "python3.11-config"):
        (target / "usr/bin" / name).touch()


@pytest.mark.usefixtures("fake_archive")
def test_builds_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[str] = []
    monkeypatch.setattr(tree, "_unpack", unpack_python)
    root = tree.ensure_tree("aarch64", told.append, tmp_path)
    facts = tree.read_facts(root)
    assert (facts.arch, facts.suite, facts.version) == ("aarch64", "bookworm", tree.TREE_VERSION)
    assert len(told) == 1
    monkeypatch.setattr(tree, "_unpack", lambda *_: pytest.fail("built twice"))
    assert tree.ensure_tree("aarch64", told.append, tmp_path) == root


@pytest.mark.usefixtures("fake_archive")
def test_failure_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def break_off(target: Path, _arch: str, _archive: Archive) -> None:
        target.mkdir(parents=True)
        raise BoardUnavailable("mmdebstrap failed: E: no space")

    monkeypatch.setattr(tree, "_unpack", break_off)
    with pytest.raises(BoardUnavailable, match="no space"):
        tree.ensure_tree("armv7", lambda _: None, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.usefixtures("fake_archive")
def test_replaces_what_a_killed_build_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = f"bookworm-armhf-v{tree.TREE_VERSION}"
    (tmp_path / f"{name}.partial-1").mkdir()
    (tmp_path / name / "usr").mkdir(parents=True)
    monkeypatch.setattr(tree, "_unpack", unpack_python)
    root = tree.ensure_tree("armv7", lambda _: None, tmp_path)
    assert tree.read_facts(root).arch == "armv7"
    assert not list(tmp_path.glob("*.partial-*"))


def test_unknown_architecture_is_named(tmp_path: Path) -> None:
    with pytest.raises(BoardUnavailable, match="riscv64"):
        tree.ensure_tree("riscv64", lambda _: None, tmp_path)


def test_missing_builder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tree, "choose_archive", lambda *_: ARCHIVE)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(BoardUnavailable, match="apt-get install mmdebstrap"):
        tree.ensure_tree("aarch64", lambda _: None, tmp_path)


def test_unfinished_tree_is_not_a_board(tmp_path: Path) -> None:
    with pytest.raises(BoardUnavailable, match="not a finished board"):
        tree.read_facts(tmp_path)
    (tmp_path / ".farbench-board.json").write_text(json.dumps({"arch": "armv7"}))
    with pytest.raises(BoardUnavailable, match="not a finished board"):
        tree.read_facts(tmp_path)


def test_python_is_the_newest(tmp_path: Path) -> None:
    unpack_python(tmp_path, "arm64", ARCHIVE)
    assert tree._find_python(tmp_path) == "python3.11"


def test_error_text_prefers_the_builders_error() -> None:
    assert tree._last_error(b"I: start\nE: unable to fetch\nI: cleaning") == "E: unable to fetch"
    assert tree._last_error(b"") == "no output"


def _ensure(folder: str, log: str) -> None:
    """Build in a process of its own, appending to `log` each time a build really runs."""

    def unpack(target: Path, arch: str, archive: Archive) -> None:
        with Path(log).open("a") as handle:
            handle.write("built\n")
        unpack_python(target, arch, archive)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.which", lambda _: "/usr/bin/mmdebstrap")
        patch.setattr(tree, "choose_archive", lambda *_: ARCHIVE)
        patch.setattr(tree, "_unpack", unpack)
        tree.ensure_tree("aarch64", lambda _: None, Path(folder))


@pytest.mark.linux
def test_processes_that_ask_at_once_build_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    context = multiprocessing.get_context("spawn")
    arguments = (str(tmp_path / "boards"), str(log))
    children = [context.Process(target=_ensure, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert log.read_text() == "built\n"
