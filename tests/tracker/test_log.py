"""Lines of the log."""

from __future__ import annotations

from farbench_tracker.log import line


def test_a_line_is_one_line_of_named_values() -> None:
    text = line("lease_ended", device="d1", lease="", reason='it said "no"\n')
    assert text == 'event=lease_ended device=d1 reason="it said \\"no\\"\\n"'
