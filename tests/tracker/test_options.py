"""What the tracker's file may say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from farbench_tracker.errors import SettingsError
from farbench_tracker.options import Options, options_from
from farbench_tracker.settings import Settings

CONFIG = Path(__file__).parents[2] / "configs" / "tracker.toml"


def test_nothing_said_is_the_default() -> None:
    assert options_from({}) == Options("127.0.0.1", 9190, False, "", Settings())


def test_settings_stand_beside_the_address() -> None:
    found = options_from({"tracker": {"host": "::1", "port": 0, "insecure": True, "ttl_s": 5,
                                        "journal": "j.db"}})  # fmt: skip
    assert found == Options("::1", 0, True, "j.db", Settings(ttl_s=5.0))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"port": 1}, r"unknown table or key 'port'; settings stand under \[tracker\]"),
        ({"tracker": "127.0.0.1:9190"}, "must be a table"),
        ({"tracker": {"host": 1}}, "host must be text"),
        ({"tracker": {"port": 70000}}, "port must be"),
        ({"tracker": {"port": True}}, "port must be"),
        ({"tracker": {"insecure": "no"}}, "insecure must be true or false"),
        ({"tracker": {"journal": 1}}, "journal must be text"),
        ({"tracker": {"hots": "x"}}, "unknown setting 'hots'"),
    ],
)
def test_errors_name_what_is_wrong(document: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        options_from(document)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib needs Python 3.11")
def test_the_ready_file_shows_every_default() -> None:
    import tomllib

    document = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    assert options_from(document) == Options()
    shown = document["tracker"].keys()
    assert shown == {"host", "port", "insecure", "journal"} | Settings.__dataclass_fields__.keys()
