"""The id is made once, kept to its owner, and damage is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from farbench_device_runtime.identity import StateError, load_identity, open_state


def test_is_made_once_and_kept(tmp_path: Path) -> None:
    folder = open_state(tmp_path / "a" / "b")
    first = load_identity(folder)
    assert load_identity(folder).id == first.id
    assert len(first.id) == 32
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.stat(folder / "identity.json").st_mode & 0o777 == 0o600
    assert load_identity(open_state(tmp_path / "other")).id != first.id


def test_of_two_that_start_at_once_the_first_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the second sees it: nothing there when it looked, the file of the first when it writes.
    first = load_identity(tmp_path)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert load_identity(tmp_path).id == first.id
    assert os.listdir(tmp_path) == ["identity.json"]


def test_the_highest_epoch_survives_a_restart(tmp_path: Path) -> None:
    identity = load_identity(tmp_path)
    identity.raise_epoch(7)
    identity.raise_epoch(5)
    assert load_identity(tmp_path).epoch == 7


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": 3}', '{"id": "../x"}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "identity.json").write_text(text)
    with pytest.raises(StateError, match=r"identity\.json.*remove it"):
        load_identity(tmp_path)


def test_a_state_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="file"):
        open_state(tmp_path / "file" / "state")
