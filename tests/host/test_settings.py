"""Settings: environment over file, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench.errors import SettingsError
from farbench.settings import Settings, default_threads, load_settings
from farbench_rpc.errors import AddressError


def test_without_file_and_environment_there_are_defaults(tmp_path: Path) -> None:
    found = load_settings(tmp_path / "none.toml", {})
    assert str(found.tracker_address) == "127.0.0.1:9190"
    assert found.wait_s == 60.0
    assert found.user


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('tracker = "filehost:1"\nuser = "ann"\nwait_s = 5\n')
    assert load_settings(file, {}).tracker == "filehost:1"
    found = load_settings(file, {"FARBENCH_TRACKER": "[::1]:7"})
    assert (found.tracker, found.user, found.wait_s) == ("[::1]:7", "ann", 5.0)
    assert str(found.tracker_address) == "[::1]:7"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tracker = 3\n", "tracker must be a str"),
        ("trakcer = 'x'\n", "unknown setting 'trakcer'"),
        ("wait_s = -1\n", "wait_s must be over 0"),
        ("= 3\n", "not valid TOML"),
    ],
)
def test_what_the_file_does_wrong_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=says) as caught:
        load_settings(file, {})
    assert "config.toml" in str(caught.value)


def test_an_address_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    found = load_settings(tmp_path / "none.toml", {"FARBENCH_TRACKER": "host:port"})
    with pytest.raises(AddressError, match="port"):
        _ = found.tracker_address


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_address_is_not_every_interface(text: str) -> None:
    with pytest.raises(SettingsError, match="address is empty"):
        _ = Settings(tracker=text).tracker_address


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, None),
        ({"TVM_NUM_THREADS": "", "OMP_NUM_THREADS": ""}, None),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"TVM_NUM_THREADS": "2", "OMP_NUM_THREADS": "3"}, 2),
    ],
)
def test_the_size_of_a_pool_is_read_as_tvm_reads_it(
    environment: dict[str, str], count: int | None
) -> None:
    assert default_threads(environment) == count


@pytest.mark.parametrize("text", ["0", "-1", "many", "1025", "\u0663"])
def test_what_is_no_size_of_a_pool_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="TVM_NUM_THREADS must be a number from 1 to 1024"):
        default_threads({"TVM_NUM_THREADS": text})
