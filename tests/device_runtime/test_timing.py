"""Measurements through a worker: samples, batches, caps and what is written down beside them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from farbench_device_runtime.jobs import MAX_ARMS
from farbench_rpc.client import Reply
from farbench_rpc.errors import InvalidArgument, KernelCrashed, KernelTimeout
from farbench_rpc.messages import Arm, Measure, Measured, Samples, StopRule
from farbench_rpc.transport.base import Buffer
from tests.support.direct import LocalSession

pytestmark = pytest.mark.linux


def test_m5_samples_are_long_enough_for_the_timer(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    events, done = session.measure(module, "nothing", stop=StopRule(number=1, repeat=7))
    totals = [total for event in events for total in _totals(event.frames)]
    assert len(totals) == 7
    facts = done.facts
    assert int(facts["0.k"]) > 1
    if "short_samples" not in done.flags:
        assert sorted(totals)[3] >= 1000 * int(facts["timer_resolution_ns"])
    assert facts["0.samples"] == 7
    assert facts["0.calls"] == 7 * int(facts["0.k"])
    assert "same_layout" in done.flags


def test_exact_counts_are_kept(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    out = session.array([0])
    stop = StopRule(number=3, repeat=4, exact=True)
    events, done = session.measure(module, "noise", out, stop=stop)
    assert [event.message for event in events] == [Samples(0, 0, 3, 4)]
    # One first call, one batch to look, four samples.
    assert session.values(out, 1) == (1 + 3 + 4 * 3,)
    assert done.facts["0.k"] == 3
    assert "short_samples" in done.flags


def test_m1_cold_samples_flush_before_every_call(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    stop = StopRule(number=10, repeat=3)
    events, done = session.measure(module, "nothing", stop=stop, cache="cold")
    assert done.facts["0.k"] == 1
    assert done.facts["0.cold"] is True
    assert int(done.facts["0.flush_bytes"]) > 0
    assert done.facts["cache"] == "cold"
    assert sum(event.message.count for event in events) == 3  # type: ignore[attr-defined]


def test_m6_the_budget_ends_a_measurement(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    stop = StopRule(number=1, repeat=1_000_000, budget_s=0.5)
    _, done = session.measure(module, "sleep", 20, stop=stop)
    assert 1 <= int(done.facts["0.samples"]) <= 25
    assert "truncated" in done.flags


def test_samples_come_while_it_runs(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    stop = StopRule(number=1, repeat=4, exact=True)
    events, _ = session.measure(module, "sleep", 60, stop=stop)
    assert len(events) == 4


def test_m8_load_and_switches_are_written_down(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    _, done = session.measure(module, "nothing", stop=StopRule(repeat=1))
    for name in ("load", "runnable"):
        assert f"{name}_before" in done.facts
        assert f"{name}_after" in done.facts
    assert {"switches_voluntary", "switches_involuntary", "0.first_call_ns"} <= set(done.facts)


def test_arms_are_told_apart(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    arms = (Arm(module, "nothing", ()), Arm(module, "sleep", (5,)))
    stop = StopRule(number=1, repeat=2, exact=True)
    events: list[Reply] = []
    done = session.client.ask(Measure(arms, stop), timeout_s=60, on_event=events.append).message
    assert {event.message.arm for event in events} == {0, 1}  # type: ignore[attr-defined]
    assert isinstance(done, Measured)
    assert int(done.facts["1.first_call_ns"]) >= 5_000_000


def test_as_many_arms_as_one_answer_can_tell_of(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    stop = StopRule(exact=True)
    arms = (Arm(module, "nothing", ()),) * MAX_ARMS
    done = session.client.ask(Measure(arms, stop), timeout_s=60).message
    assert isinstance(done, Measured)
    assert f"{MAX_ARMS - 1}.first_call_ns" in done.facts
    for wrong in ((), (*arms, arms[0])):
        with pytest.raises(InvalidArgument, match=f"1 to {MAX_ARMS} arms"):
            session.client.ask(Measure(wrong, stop))


@pytest.mark.parametrize(
    "stop",
    [
        StopRule(number=0),
        StopRule(repeat=0),
        StopRule(repeat=-1),
        StopRule(number=10, max_calls=5),
        StopRule(budget_s=0.0),
        StopRule(budget_s=float("inf")),
        StopRule(min_sample_s=float("nan")),
    ],
)
def test_m10_counts_are_checked_before_anything_runs(
    session: LocalSession, library: Path, stop: StopRule
) -> None:
    module = session.load(library)
    with pytest.raises(InvalidArgument):
        session.measure(module, "segfault", stop=stop)
    session.call(module, "nothing")


def test_a_crash_names_the_measurement(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    with pytest.raises(KernelCrashed) as caught:
        session.measure(module, "segfault", stop=StopRule())
    assert caught.value.detail["last_call"] == "measurement of segfault"


def test_a_timeout_names_the_phase(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    job = Measure((Arm(module, "loop", ()),), StopRule(), timeout_s=1.0)
    with pytest.raises(KernelTimeout) as caught:
        session.client.ask(job, timeout_s=30)
    assert caught.value.detail["phase"] == "first_call"


def _totals(frames: Sequence[Buffer]) -> list[int]:
    data = bytes(frames[0])
    return list(struct.unpack(f"<{len(data) // 8}q", data))
