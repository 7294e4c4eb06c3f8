"""Directories that code of users has filled: gone whatever lies in them, a little at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from farbench_device_runtime.folders import Sweeper, remove

pytestmark = pytest.mark.linux


def deep(folder: Path, levels: int) -> None:
    """Make directories within each other, deeper than any path can name."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 100, dir_fd=here)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_removes_what_is_deeper_than_a_path_or_the_stack(tmp_path: Path) -> None:
    deep(tmp_path / "x", 1500)
    assert remove(tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_removes_directories_without_rights_and_follows_no_link(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("stays")
    folder = tmp_path / "x"
    (folder / "closed" / "within").mkdir(parents=True)
    (folder / "link").symlink_to(kept)
    (folder / "closed" / "up").symlink_to("../..")
    os.mkfifo(folder / "pipe")
    (folder / "closed").chmod(0)
    assert remove(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "stays"


def test_a_link_in_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("stays")
    (tmp_path / "x").symlink_to(kept)
    remove(tmp_path / "x")
    assert (kept / "file").read_text() == "stays"


def test_what_is_gone_already_is_no_error(tmp_path: Path) -> None:
    assert remove(tmp_path / "x")


def test_a_long_removal_takes_several_turns(tmp_path: Path) -> None:
    for index in range(300):
        (tmp_path / "x" / str(index)).mkdir(parents=True)
    sweeper = Sweeper()
    sweeper.remove(tmp_path / "x")
    turns = 0
    while not sweeper.idle:
        sweeper.work(0.0)
        turns += 1
    assert not (tmp_path / "x").exists()
    assert turns <= 1000


def test_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    deep(tmp_path / "x", 50)
    sweeper = Sweeper()
    sweeper.remove(tmp_path / "x")
    while not sweeper.idle:
        sweeper.work()
    assert len(os.listdir("/proc/self/fd")) == before
