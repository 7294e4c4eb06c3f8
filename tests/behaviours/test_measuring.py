"""Rows M1 and M3 to M10: what a timing says, and what stands behind its numbers."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from farbench import errors, fill, nd
from farbench.result import TimingResult
from farbench.session import Session
from farbench_rpc import messages as m
from tests.behaviours.conftest import Run
from tests.behaviours.yard import Place, Yard, start

pytestmark = pytest.mark.linux

COUNT = 1000


def timed(session: Session, **options: object) -> TimingResult:
    """Time an addition of seeded arrays."""
    module = session.load_module("hostile.so")
    there = session.cpu()
    a, b = (nd.random(COUNT, "int32", there, seed) for seed in (11, 12))
    c = nd.zeros(COUNT, "int32", there)
    return module.time_evaluator("add", there, **options)(a, b, c)  # type: ignore[arg-type]


def test_m1_each_result_says_cold_or_warm(place: Place) -> None:
    with place.request() as session:
        hot = timed(session, number=5, repeat=4, cache="hot")
        cold = timed(session, number=5, repeat=4, cache="cold")
    assert (hot.cache, cold.cache) == ("hot", "cold")
    assert (hot.as_dict()["cache"], cold.as_dict()["cache"]) == ("hot", "cold")
    # A flush comes before every call, so that a cold sample is one call.
    assert {sample.k for sample in cold.samples} == {1}
    assert int(cold.facts["0.flush_bytes"]) > 0
    assert int(hot.facts["0.flush_bytes"]) == 0


def test_m3_inputs_are_seeded_and_stated(place: Place, farbench: Run) -> None:
    words = ("--on", f"name={place.arch}", "--entry", "add", "--shape", f"n={COUNT}")
    counts = ("--seed", 40, "--number", 1, "--repeat", 2, "--min-repeat-ms", 0)
    to = ("--tracker", place.yard.address, "--json")
    stated = []
    for _ in range(2):
        said = farbench("bench", place.library, *words, *counts, *to)
        assert said.status == 0, said.err
        (result,) = said.last["results"]
        stated.append(result["inputs"])
    assert stated[0] == stated[1]
    assert [one["name"] for one in stated[0]] == ["a", "b", "c"]
    for index, one in enumerate(stated[0]):
        assert one["source"] == f"seed {40 + index}, uniform [-8, 8)"
        assert (one["dtype"], one["shape"]) == ("int32", [COUNT])


def test_m3_the_same_seed_is_the_same_input_everywhere(place: Place) -> None:
    with place.request() as session:
        session.load_module("hostile.so")
        for dtype in fill.DTYPES:
            made = nd.random((COUNT,), dtype, session.cpu(), seed=99)
            low, high = fill.default_range(dtype)
            wanted = fill.reference(99, "uniform", low, high, dtype, (COUNT,))
            assert made.numpy().tobytes() == wanted.tobytes()
            assert made.source == fill.describe(99, "uniform", low, high)
            assert len(set(wanted.tolist())) > 1


def test_m3_undefined_inputs_are_flagged(native: Place) -> None:
    with native.request() as session:
        module = session.load_module("hostile.so")
        arrays = [nd.empty(8, "int32", session.cpu()) for _ in range(3)]
        found = module.time_evaluator("add", number=1, repeat=2)(*arrays)
    assert "uninitialised_inputs" in found.flags
    assert {one.source for one in found.inputs} == {"uninitialised"}


def test_m4_the_parts_of_the_time_are_apart(place: Place) -> None:
    with place.request() as session:
        session.upload(place.library, "again.so")
        values = np.zeros(1 << 16, np.int32)
        nd.array(values, session.cpu()).numpy()
        found = timed(session, number=1, repeat=4)
    spent = found.spent
    assert spent.device_s == pytest.approx(sum(s.total_ns for s in found.samples) / 1e9)
    assert 0 < spent.device_s < spent.end_to_end_s
    assert spent.transfer_s > 0
    data = found.as_dict()
    for name in ("device_s", "end_to_end_s", "transfer_s", "queued_s"):
        assert data[name] == getattr(spent, name)


def test_m5_a_sample_lasts_a_thousand_ticks(place: Place) -> None:
    with place.request() as session:
        module = session.load_module("hostile.so")
        found = module.time_evaluator("nothing", number=1, repeat=20)()
    tick_ns = found.timer.resolution_ns
    assert tick_ns > 0
    assert found.k > 1
    # Code may run faster later than when its batch was found; once most samples do, it is flagged.
    middle_ns = statistics.median(sample.total_ns for sample in found.samples)
    assert middle_ns >= 1000 * tick_ns or "short_samples" in found.flags
    assert all(sample.total_ns >= 500 * tick_ns for sample in found.samples)
    assert found.median > 0


def test_m5_what_must_stay_short_is_flagged(place: Place) -> None:
    with place.request() as session:
        module = session.load_module("hostile.so")
        found = module.time_evaluator("nothing", number=1, repeat=5, exact=True)()
    assert {sample.k for sample in found.samples} == {1}
    tick_ns = found.timer.resolution_ns
    if statistics.median(sample.total_ns for sample in found.samples) < 1000 * tick_ns:
        assert "short_samples" in found.flags


def test_m6_caps_hold_whatever_is_asked(native: Place) -> None:
    with native.request() as session:
        module = session.load_module("hostile.so")
        began = time.monotonic()
        evaluator = module.time_evaluator(
            "sleep", number=1, repeat=1_000_000, min_repeat_ms=200.0, budget_s=1.0
        )
        found = evaluator(20)
        took_s = time.monotonic() - began
    assert "truncated" in found.flags
    assert 1 <= len(found.samples) <= 10
    assert took_s < 2.0


def test_m7_the_numbers_follow_from_raw_samples(place: Place, farbench: Run) -> None:
    words = ("--on", f"name={place.arch}", "--entry", "add", "--shape", f"n={COUNT}")
    counts = ("--number", 3, "--repeat", 64, "--min-repeat-ms", 0)
    to = ("--tracker", place.yard.address, "--json")
    said = farbench("bench", place.library, *words, *counts, *to)
    assert said.status == 0, said.err
    (result,) = said.last["results"]
    seconds = [total_ns / k / 1e9 for total_ns, k, _ in result["samples"]]
    assert len(seconds) == 64
    middle = statistics.median(seconds)
    assert result["median_s"] == pytest.approx(middle)
    assert result["mad_s"] == pytest.approx(statistics.median(abs(s - middle) for s in seconds))
    assert result["mean_s"] == pytest.approx(statistics.fmean(seconds))
    assert (result["min_s"], result["max_s"]) == pytest.approx((min(seconds), max(seconds)))
    for name in ("interval_s", "bootstrap_s"):
        interval = result[name]
        assert interval["low"] <= middle <= interval["high"]
        assert 0.95 <= interval["confidence"] < 1  # what the method gives, of whole samples
        assert interval["method"] in ("order", "batch", "bootstrap")
    assert set(result["outliers"]) == {"mild", "severe", "by_z"}
    assert all(0 <= count <= 64 for count in result["outliers"].values())
    # Every sample was told as it came, too.
    told = [json.loads(line) for line in said.out.splitlines()]
    streamed = [one["total_ns"] for one in told if one.get("event") == "sample"]
    assert streamed == [total_ns for total_ns, _, _ in result["samples"]]


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep cores busy with processes of our own."""
    spin = "while True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def test_m8_a_busy_machine_is_flagged(native: Place) -> None:
    with native.request() as session:
        module = session.load_module("hostile.so")
        with busy_cores((os.cpu_count() or 1) + 2):
            found = module.time_evaluator("sleep", number=1, repeat=5, exact=True)(20)
    assert "busy" in found.flags
    for name in ("load", "runnable"):
        assert float(found.facts[f"{name}_before"]) >= 0
        assert float(found.facts[f"{name}_after"]) >= 0
    assert int(found.facts["switches_voluntary"]) >= 0
    assert int(found.facts["switches_involuntary"]) >= 0


def test_m9_the_cores_are_an_option_and_recorded(yard: Yard, tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    state = tmp_path / "state"
    with (
        start("native", yard.address, state, "one-core", cores=str(core)),
        yard.tracker.request("name=one-core,cores=1", timeout=30) as session,
    ):
        session.upload(yard.library("native"), "hostile.so")
        found = timed(session, number=1, repeat=3)
        assert session.facts["core_set"] == (str(core),)
    assert found.facts["core_set"] == str(core)
    assert found.as_dict()["facts"]["core_set"] == str(core)  # type: ignore[index]


WRONG = [
    ("repeat", 0), ("repeat", -1), ("number", 0), ("number", -5), ("min_repeat_ms", -1.0),
    ("min_repeat_ms", math.nan), ("budget_s", 0.0), ("budget_s", math.inf), ("repeat", 2.5),
    ("number", True), ("cache", "warm"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_m10_counts_are_checked_before_anything_runs(
    native: Place, name: str, value: object
) -> None:
    with native.request() as session:
        module = session.load_module("hostile.so")
    # The session is over: whatever was sent now would fail as closed.
    with pytest.raises(errors.UsageError, match=name):
        module.time_evaluator("nothing", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flag", "name"),
    [("--repeat=0", "repeat"), ("--number=0", "number"), ("--budget=0", "budget"),
     ("--min-repeat-ms=-1", "min_repeat_ms"), ("--repeat=x", "repeat")],
)  # fmt: skip
def test_m10_the_command_checks_counts_before_it_connects(
    native: Place, farbench: Run, flag: str, name: str
) -> None:
    # Nobody listens there, which would be told if it were tried.
    said = farbench("bench", native.library, flag, "--tracker", "127.0.0.1:1")
    assert said.status == 2
    assert name in said.err
    assert "127.0.0.1" not in said.err
    assert said.err.count("\n") == 1


def test_m10_a_device_refuses_what_a_client_let_pass(place: Place) -> None:
    with place.request() as session:
        module = session.load_module("hostile.so")
        arm = m.Arm(module.handle, "nothing", ())
        for stop in (m.StopRule(number=0), m.StopRule(repeat=0), m.StopRule(budget_s=0.0)):
            with pytest.raises(errors.InvalidArgument):
                session.ask(m.Measure((arm,), stop), timeout_s=20.0)
        module["nothing"]()
