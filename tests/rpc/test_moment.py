"""A look for an answer: only after a brisk one, bounded, and never where it cannot help."""

from __future__ import annotations

import pytest

from farbench_rpc import moment
from farbench_rpc.moment import Moment

LOOK_S = 0.01


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moment, "_PROCESSORS", 2)


def test_nobody_looks_before_an_answer_was_brisk() -> None:
    looks: list[bool] = []

    def ready() -> bool:
        looks.append(True)
        return True

    assert not Moment(LOOK_S).brings(ready, 1.0)
    assert looks == []


def test_after_a_brisk_answer_the_next_is_looked_for() -> None:
    made = Moment(LOOK_S)
    made.waited(LOOK_S / 2)
    answers = iter([False, False, True])
    assert made.brings(lambda: next(answers), 1.0)


def test_a_look_ends_when_nothing_comes() -> None:
    made = Moment(LOOK_S)
    made.waited(0.0)
    assert not made.brings(lambda: False, 1.0)


def test_a_look_takes_no_longer_than_the_wait_it_stands_for() -> None:
    made = Moment(60.0)
    made.waited(0.0)
    assert not made.brings(lambda: False, 0.0)


def test_after_a_slow_answer_nobody_looks() -> None:
    made = Moment(LOOK_S)
    made.waited(0.0)
    made.waited(10 * LOOK_S)
    assert not made.brings(lambda: True, 1.0)


def test_with_one_processor_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moment, "_PROCESSORS", 1)
    made = Moment(LOOK_S)
    made.waited(0.0)
    assert not made.brings(lambda: True, 1.0)
