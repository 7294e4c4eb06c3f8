"""The ready configurations are read by the programs that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house._files import ROOT

CONFIGS = ROOT / "configs"


def test_host_reads_its_file() -> None:
    from farbench.settings import Settings, load_settings

    assert load_settings(CONFIGS / "config.toml", {}) == Settings("127.0.0.1:9190", "ada", 60, 600)


def test_a_device_table_is_left_to_the_device(tmp_path: Path) -> None:
    from farbench.settings import load_settings

    file = tmp_path / "config.toml"
    file.write_text('tracker = "[::1]:9190"\n[device]\ncores = "0"\n')
    assert load_settings(file, {}).tracker == "[::1]:9190"


def test_device_reads_its_file() -> None:
    pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")
    from farbench_device_runtime.options import read_options

    chosen = read_options(["--config", str(CONFIGS / "device.toml")], {"HOME": "/"})
    assert chosen.name


def test_every_file_is_toml() -> None:
    from farbench.settings import read_toml

    files = sorted(CONFIGS.glob("*.toml"))
    assert {"config.toml", "device.toml", "tracker.toml"} <= {file.name for file in files}
    for file in files:
        assert read_toml(file)
