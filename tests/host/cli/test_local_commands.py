"""Commands that need no fleet: targets and clean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.host.cli.conftest import Run


def test_targets_lists_every_preset(run: Run) -> None:
    said = run("targets", "--json")
    names = {target["name"] for target in said.last["targets"]}
    assert {"native", "pi3", "pi4", "pi5", "armv7", "visionfive2", "x86-64-v3"} <= names
    assert "cortex-a72" in run("targets").out


def test_clean_shows_sizes_and_empties(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = run("clean", "--dry-run", "--json")
    places = {cache["name"]: Path(cache["path"]) for cache in said.last["caches"]}
    assert set(places) == {"toolchain", "boards"}
    for place in places.values():
        place.mkdir(parents=True)
        (place / "file").write_bytes(b"x" * 2048)
    said = run("clean", "--dry-run")
    assert "2.0 KiB" in said.out
    assert run("clean", "boards", "--json").last["caches"][0]["nbytes"] == 2048
    assert not places["boards"].exists()
    assert (places["toolchain"] / "file").exists()
    assert run("clean").status == 0
    assert not places["toolchain"].exists()
