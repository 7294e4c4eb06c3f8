"""The command line: flags over environment over file, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench_device_runtime.options import UsageError, read_options
from farbench_device_runtime.settings import parse_cores, parse_size

HOME = {"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"}


def test_flags_win_over_environment(tmp_path: Path) -> None:
    environment = {**HOME, "FARBENCH_TRACKER": "from.env:1"}
    assert str(read_options([], environment).tracker) == "from.env:1"
    assert str(read_options(["--tracker", "flag:2"], environment).tracker) == "flag:2"


def test_environment_wins_over_file(tmp_path: Path) -> None:
    pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")
    file = tmp_path / "device.toml"
    file.write_text(
        '[device]\ntracker = "file:3"\nmemory_limit = "64MiB"\n[device.labels]\nboard = "pi4"\n'
    )
    chosen = read_options(["--config", str(file), "--label", "a:b=c=d e"], HOME)
    assert str(chosen.tracker) == "file:3"
    assert chosen.labels == {"board": "pi4", "a:b": "c=d e"}
    assert chosen.settings.memory_limit == 64 << 20
    assert str(read_options(["--config", str(file)], {"FARBENCH_TRACKER": "e:4"}).tracker) == "e:4"


@pytest.mark.parametrize(
    ("tracker", "listen"),
    [
        ("127.0.0.1:1", "127.0.0.1:0"),
        ("[::1]:1", "[::1]:0"),
        ("name", "127.0.0.1:0"),
    ],
)
def test_n3_listens_in_the_family_of_the_tracker(tracker: str, listen: str) -> None:
    assert str(read_options(["--tracker", tracker], HOME).listen) == listen


def test_listens_beyond_loopback_only_when_told_to() -> None:
    assert not read_options(["--tracker", "x:1", "--insecure"], HOME).listen.is_loopback
    assert read_options(["--tracker", "x:1"], HOME).listen.is_loopback


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "--tracker HOST:PORT is missing"),
        (["--tracker", "a:b:c"], "--tracker"),
        (["--tracker", "x:1", "--label", "novalue"], "KEY=VALUE"),
        (["--tracker", "x:1", "--label", "=v"], "--label"),
        (["--tracker", "x:1", "--label", "arch=arm64"], "the device says that itself"),
        (["--tracker", "x:1", "--cores", "0-x"], "--cores"),
        (["--tracker", "x:1", "--cores", "4095"], "core 4095 cannot be used"),
        (["--tracker", "x:1", "--memory-limit", "lots"], "--memory-limit"),
        (["--tracker", "x:1", "--config", "/no/such/file"], "/no/such/file"),
        (["--tracker", "x:1", "--name", "a\nb"], "--name"),
    ],
)
def test_a_mistake_is_one_line(flags: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(flags, HOME)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_setting_in_the_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")
    file = tmp_path / "x.toml"
    file.write_text('[device]\ntraker = "a"\n')
    with pytest.raises(UsageError, match="traker"):
        read_options(["--config", str(file)], HOME)


@pytest.mark.parametrize(
    ("text", "nbytes"), [("1", 1), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29), ("4 KiB", 4096)]
)
def test_sizes(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "1MB", "0", "1e99"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "2-1", "0-999999999999", "0,,1"])
def test_no_cores(text: str) -> None:
    with pytest.raises(ValueError, match="cores"):
        parse_cores(text)
