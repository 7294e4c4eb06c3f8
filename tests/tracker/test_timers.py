"""Deadlines that move back for free."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from farbench_tracker.timers import Key, Timers


def test_a_renewed_deadline_is_put_back() -> None:
    timers = Timers()
    due = {Key("lease", "a"): 10.0, Key("lease", "b"): 5.0}
    for key, due_s in due.items():
        timers.arm(key, due_s)
    due[Key("lease", "b")] = 8.0
    assert timers.next_s() == 5.0
    assert timers.pop_due(5.0, due.get) == []
    assert timers.next_s() == 8.0
    assert timers.pop_due(8.0, due.get) == [Key("lease", "b")]
    assert timers.pop_due(20.0, due.get) == [Key("lease", "a")]
    assert timers.next_s() is None


def test_what_has_no_deadline_any_more_is_dropped() -> None:
    timers = Timers()
    timers.arm(Key("wait", "r"), 1.0)
    assert timers.pop_due(2.0, lambda key: None) == []
    assert timers.next_s() is None


def test_arming_again_keeps_the_earlier_time_and_one_entry() -> None:
    timers = Timers()
    for due_s in (5.0, 7.0, 3.0, 3.0):
        timers.arm(Key("tell"), due_s)
    assert repr(timers) == "Timers(1 armed, next 3.0)"
    assert timers.pop_due(9.0, lambda key: 0.0) == [Key("tell")]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=30))
def test_each_key_is_looked_at_in_time(armed: list[tuple[str, int]]) -> None:
    timers = Timers()
    earliest: dict[str, int] = {}
    for id_, due_s in armed:
        timers.arm(Key("k", id_), due_s)
        earliest[id_] = min(due_s, earliest.get(id_, 99))
    seen: dict[str, int] = {}
    for now in range(21):
        for key in timers.pop_due(now, lambda key: 0.0):
            seen[key.id] = now
    assert seen == earliest
