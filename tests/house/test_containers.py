"""The container files name what exists, and open nothing beyond their own network."""

from __future__ import annotations

import re

import pytest

from tests.house._files import ROOT

DOCKER = ROOT / "docker"
COMPOSE = (DOCKER / "compose.yaml").read_text()


@pytest.mark.parametrize("name", ["Containerfile.tracker", "Containerfile.device"])
def test_copies_what_exists(name: str) -> None:
    text = (DOCKER / name).read_text()
    sources = re.findall(r"^COPY (\S+) ", text, re.M)
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert re.search(r"^USER (?!root)", text, re.M)


def test_compose_builds_the_container_files() -> None:
    files = re.findall(r"dockerfile: (\S+)", COMPOSE)
    assert sorted(files) == ["docker/Containerfile.device", "docker/Containerfile.tracker"]
    assert all((ROOT / file).is_file() for file in files)
    assert {(DOCKER / context).resolve() for context in re.findall(r"context: (\S+)", COMPOSE)} == {
        ROOT
    }


def test_compose_is_closed_to_the_outside() -> None:
    assert re.search(r"^networks:\n  fleet:\n    internal: true$", COMPOSE, re.M)
    assert "ports:" not in COMPOSE
    services = COMPOSE.partition("\nservices:")[2].partition("\nnetworks:")[0]
    names = re.findall(r"^  (\S+):$", services, re.M)
    assert names == ["tracker", "device-a", "device-b"]
    for word in ("networks: [fleet]", "--insecure", "cap_drop: [ALL]", "no-new-privileges:true"):
        assert services.count(word) == len(names), word


def test_image_runs_the_right_modules() -> None:
    device = (DOCKER / "Containerfile.device").read_text()
    assert '"-m", "farbench_device_runtime"' in device
    assert (ROOT / "device_runtime/farbench_device_runtime/__main__.py").is_file()
    assert "farbench.cli.main" in (DOCKER / "farbench.sh").read_text()
