"""The timing loop with a call and a clock that a test controls."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from farbench_device_runtime import measure
from farbench_device_runtime.measure import Job, Place
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.messages import StopRule


class FakeCall:
    """Takes `per_call_ns` each time, and keeps what was asked."""

    def __init__(self, per_call_ns: int) -> None:
        self.per_call_ns = per_call_ns
        self.asked: list[tuple[int, int]] = []

    def sample(self, k: int, flush_bytes: int = 0) -> int:
        self.asked.append((k, flush_bytes))
        return k * self.per_call_ns


class FakeClock:
    """A timer of 100 ns that costs 10 ns to read."""

    def timer_probe(self) -> tuple[int, int]:
        return (100, 10)


def run(job: Job, *calls: FakeCall) -> tuple[list[Sequence[Any]], dict[str, Any], tuple[str, ...]]:
    sent: list[Sequence[Any]] = []
    facts, flags = measure.run(job, calls, FakeClock(), sent.append, Place((), 4096))
    return sent, facts, flags


def totals(sent: list[Sequence[Any]], arm: int) -> list[int]:
    found = array("q")
    for message in sent:
        if message[0] == "samples" and message[1] == arm:
            found.frombytes(message[3])
    return list(found)


def test_the_first_call_is_apart_and_warm_up_is_no_sample() -> None:
    call = FakeCall(1000)
    sent, facts, _ = run(Job(StopRule(number=1, repeat=4)), call)
    # 100 us are 1,000 ticks: 1 call and 10 are short of it, then 1.2 times, and once to be sure.
    assert call.asked == [(1, 0), (1, 0), (10, 0), *[(120, 0)] * 2, *[(120, 0)] * 4]
    assert totals(sent, 0) == [120_000] * 4
    assert (facts["0.first_call_ns"], facts["0.k"], facts["0.samples"]) == (1000, 120, 4)
    phases = [message[1] for message in sent if message[0] == "phase"]
    assert phases == ["first_call", "calibrate", "run"]


def test_cold_flushes_before_every_call() -> None:
    call = FakeCall(1000)
    _, facts, flags = run(Job(StopRule(number=50, repeat=3), cache="cold"), call)
    assert call.asked == [(1, 0), (1, 4096), *[(1, 4096)] * 3]
    assert facts["0.cold"] is True
    assert "short_samples" in flags


def test_max_calls_ends_it() -> None:
    call = FakeCall(10**6)
    _, facts, flags = run(Job(StopRule(number=3, repeat=100, max_calls=10)), call)
    assert facts["0.calls"] <= 10
    assert "truncated" in flags


def test_many_samples_go_out_in_batches() -> None:
    sent, _, _ = run(Job(StopRule(number=1, repeat=2000, exact=True)), FakeCall(10**6))
    sizes = [len(message[3]) // 8 for message in sent if message[0] == "samples"]
    assert sum(sizes) == 2000
    assert max(sizes) <= measure.FLUSH_COUNT


def test_samples_do_not_wait_for_the_batch_to_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(measure.time, "monotonic", lambda: next(ticks) * 0.04)  # type: ignore[attr-defined]
    sent, _, _ = run(Job(StopRule(number=1, repeat=6, exact=True)), FakeCall(10**6))
    assert len([message for message in sent if message[0] == "samples"]) >= 3


@pytest.mark.parametrize(
    "field", [{"order": "abba"}, {"mode": "fast"}, {"cache": "warm"}, {"timer": "tsc"}]
)
def test_words_it_does_not_know_are_refused(field: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(field))):
        Job(StopRule(), **field).check()  # type: ignore[arg-type]


def test_a_slower_clock_after_than_before_is_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = iter([(2_000_000,), (1_500_000,)])
    monkeypatch.setattr(measure.facts, "frequencies_khz", lambda cores: next(speeds))  # type: ignore[attr-defined]
    monkeypatch.setattr(measure.facts, "temperature_c", lambda: 61.5)  # type: ignore[attr-defined]
    _, facts, flags = run(Job(StopRule()), FakeCall(10**6))
    assert "throttled" in flags
    assert facts["frequency_khz_after"] == 1_500_000
    assert facts["temperature_c_before"] == 61.5
