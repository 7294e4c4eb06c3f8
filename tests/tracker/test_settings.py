"""Settings of the tracker."""

from __future__ import annotations

import pytest

from farbench_tracker.errors import SettingsError
from farbench_tracker.settings import Settings, settings_from


def test_defaults_are_the_contract() -> None:
    settings = settings_from({})
    assert settings == Settings()
    assert (settings.ttl_s, settings.renew_s, settings.kill_s) == (3.0, 1.0, 1.0)
    assert (settings.beat_s, settings.lost_beats, settings.confirm_s) == (5.0, 3, 2.0)


def test_whole_numbers_serve_as_times() -> None:
    assert settings_from({"ttl_s": 6, "max_waiting": 5}) == Settings(ttl_s=6.0, max_waiting=5)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"tll_s": 3}, "unknown setting 'tll_s'; did you mean tell_s, ttl_s"),
        ({"ttl_s": "3"}, "ttl_s must be a number"),
        ({"ttl_s": True}, "ttl_s must be a number"),
        ({"ttl_s": 0}, "ttl_s must be over 0"),
        ({"ttl_s": float("inf")}, "ttl_s must be over 0 and finite"),
        ({"lost_beats": 2.5}, "lost_beats must be a whole number"),
        ({"ttl_s": 1.5}, "twice renew_s"),
    ],
)
def test_errors_name_the_setting(table: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_from(table)
