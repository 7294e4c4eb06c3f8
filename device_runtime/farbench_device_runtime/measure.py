"""Timing of entries inside the worker: first call apart, batches, raw samples sent as they come.

The loop that is timed is native and linked into the library; nothing of Python runs inside a
sample. Between samples this module decides, and sends what it has about every 50 ms.
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from farbench_device_runtime import facts, procfs
from farbench_device_runtime.batching import TICKS, Batch, Timer, find_batch
from farbench_rpc.errors import InvalidArgument, Value
from farbench_rpc.messages import StopRule

FLUSH_S = 0.05
FLUSH_COUNT = 512
MAX_REPEAT = 10_000_000
_TIMEOUT_SHARE = 0.9
_SLOWER = 0.95

Send = Callable[[Sequence[Any]], object]


class Timed(Protocol):
    """A prepared call that can be timed."""

    def sample(self, k: int, flush_bytes: int = 0) -> int:
        """Run k calls; give their time in ns. Flushes that many bytes of cache before each."""


@dataclass(frozen=True)
class Place:
    """Where it is measured: cores that are pinned (empty: none), bytes that flush the caches."""

    cores: tuple[int, ...] = ()
    flush_bytes: int = 16 << 20


class Clock(Protocol):
    """What the runtime says of its timer."""

    def timer_probe(self) -> tuple[int, int]:
        """Give (resolution, overhead) in ns."""


@dataclass(frozen=True)
class Job:
    """What to measure: the fields of a Measure message, checked."""

    stop: StopRule
    order: str = "sequential"
    mode: str = "tune"
    cache: str = "hot"
    timer: str = "wall"
    timeout_s: float = 120.0

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Job:
        """Read the fields; InvalidArgument names the one that does not fit."""
        stop = StopRule(**fields["stop"])
        names = ("order", "mode", "cache", "timer", "timeout_s")
        job = cls(stop, **{name: fields[name] for name in names})
        job.check()
        return job

    def check(self) -> None:
        """Refuse counts and words that cannot be run; nothing was run then."""
        stop = self.stop
        for name, value in (("number", stop.number), ("repeat", stop.repeat)):
            if value < 1:
                raise InvalidArgument(f"{name} must be at least 1, got {value}")
        if stop.repeat > MAX_REPEAT:
            raise InvalidArgument(f"repeat may be {MAX_REPEAT} at most, got {stop.repeat}")
        if stop.max_calls < 1 or stop.number > stop.max_calls:
            raise InvalidArgument(f"number is {stop.number}, more than max_calls {stop.max_calls}")
        if not 0 < stop.budget_s < float("inf") or not 0 <= stop.min_sample_s < float("inf"):
            raise InvalidArgument("budget_s and min_sample_s must be finite, and a budget above 0")
        _one_of("order", self.order, ("sequential",))
        _one_of("mode", self.mode, ("tune", "report", "ab"))
        _one_of("cache", self.cache, ("hot", "cold"))
        _one_of("timer", self.timer, ("wall",))


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidArgument(f"{name} {value!r} is not known here; there is {', '.join(known)}")


@dataclass(frozen=True)
class _Weather:
    """What else the machine was doing at a moment."""

    load: float
    runnable: int
    switches: tuple[int, int]
    frequencies_khz: tuple[int, ...]
    temperature_c: float | None

    @classmethod
    def now(cls, cores: Sequence[int]) -> _Weather:
        """Look around."""
        return cls(
            facts.load_average(),
            facts.runnable_tasks(),
            procfs.context_switches(os.getpid()),
            facts.frequencies_khz(cores),
            facts.temperature_c(),
        )


class _Stream:
    """Samples of one arm on their way out; sent when old or many."""

    def __init__(self, send: Send, arm: int, k: int) -> None:
        self.send = send
        self.arm = arm
        self.k = k
        self.held = array("q")
        self.sent_at = time.monotonic()

    def add(self, total_ns: int) -> None:
        """Take one sample."""
        self.held.append(total_ns)
        if len(self.held) >= FLUSH_COUNT or time.monotonic() - self.sent_at >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Send what is held."""
        if self.held:
            if sys.byteorder == "big":
                self.held.byteswap()
            self.send(["samples", self.arm, self.k, self.held.tobytes()])
        self.held = array("q")
        self.sent_at = time.monotonic()


def run(
    job: Job, calls: Sequence[Timed], clock: Clock, send: Send, place: Place
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Time every arm; give the facts of each (`<arm>.<fact>`) and of the machine, and flags."""
    timer = Timer(*clock.timer_probe())
    known: dict[str, Value] = {
        "timer_resolution_ns": timer.resolution_ns,
        "timer_overhead_ns": timer.overhead_ns,
        "mode": job.mode,
        "cache": job.cache,
        "order": job.order,
        "core_set": ",".join(map(str, place.cores)),
    }
    flags = {"same_layout"}
    before = _Weather.now(place.cores)
    share = min(job.stop.budget_s, _TIMEOUT_SHARE * job.timeout_s) / max(1, len(calls))
    taken = 0
    for index, call in enumerate(calls):
        arm = _Arm(job, index, call, timer, int(share * 1e9))
        flags |= arm.run(send, place.flush_bytes if job.cache == "cold" else 0)
        known.update({f"{index}.{name}": value for name, value in arm.facts.items()})
        taken += arm.taken
    flags |= _compare(before, _Weather.now(place.cores), known, taken)
    return known, tuple(sorted(flags))


class _Arm:
    """The measurement of one arm within its share of the budget."""

    def __init__(self, job: Job, index: int, call: Timed, timer: Timer, budget_ns: int) -> None:
        self.job = job
        self.index = index
        self.call = call
        self.timer = timer
        self.budget_ns = budget_ns
        self.began = time.monotonic_ns()
        self.facts: dict[str, Value] = {}
        self.taken = 0
        self.short = 0

    def run(self, send: Send, flush_bytes: int) -> set[str]:
        """Time the first call, find the batch, take the samples; give what disturbed."""
        send(["phase", "first_call", self.index])
        self.facts["first_call_ns"] = self.call.sample(1)
        send(["phase", "calibrate", self.index])
        batch = self._batch(flush_bytes)
        send(["phase", "run", self.index])
        flags = self._samples(batch.k, flush_bytes, _Stream(send, self.index, batch.k))
        self.facts.update(
            k=batch.k,
            warmup_calls=batch.warmup_calls,
            samples=self.taken,
            calls=self.taken * batch.k,
            cold=bool(flush_bytes),
            flush_bytes=flush_bytes,
        )
        most_are_short = self.short > self.taken // 2
        return flags | ({"short_samples"} if batch.short or most_are_short else set())

    def _batch(self, flush_bytes: int) -> Batch:
        """Find k: 1 in a cold measurement, `number` itself when it is exact."""
        stop = self.job.stop
        shortest = self.timer.shortest_ns(0.0 if flush_bytes else stop.min_sample_s)
        if flush_bytes or stop.exact:
            k = 1 if flush_bytes else stop.number
            elapsed = self.call.sample(k, flush_bytes)
            return Batch(k, k, elapsed, short=elapsed < shortest)
        left = self.budget_ns - (time.monotonic_ns() - self.began)
        return find_batch(
            self.call.sample, stop.number, stop.repeat, shortest, stop.max_calls, left
        )

    def _samples(self, k: int, flush_bytes: int, stream: _Stream) -> set[str]:
        """Take `repeat` samples, or as many as the caps allow, at least one."""
        stop = self.job.stop
        sample, add = self.call.sample, stream.add
        deadline = self.began + self.budget_ns
        shortest_ns = TICKS * max(1, self.timer.resolution_ns)
        last = 0
        while self.taken < stop.repeat:
            if self.taken and time.monotonic_ns() + last > deadline:
                break
            if self.taken and (self.taken + 1) * k > stop.max_calls:
                break
            began = time.monotonic_ns()
            total_ns = sample(k, flush_bytes)
            add(total_ns)
            self.short += total_ns < shortest_ns
            last = time.monotonic_ns() - began
            self.taken += 1
        stream.flush()
        return {"truncated"} if self.taken < stop.repeat else set()


def _compare(before: _Weather, after: _Weather, known: dict[str, Value], samples: int) -> set[str]:
    """Write down the machine's state on both sides of the block; give what it says."""
    voluntary, involuntary = (b - a for a, b in zip(before.switches, after.switches, strict=True))
    known["load_before"], known["load_after"] = before.load, after.load
    known["runnable_before"], known["runnable_after"] = before.runnable, after.runnable
    known["switches_voluntary"], known["switches_involuntary"] = voluntary, involuntary
    flags = set()
    # This process itself is one of the runnable.
    if before.runnable > 2 or after.runnable > 2:
        flags.add("busy")
    if involuntary > max(2, samples // 10):
        flags.add("preempted")
    for name, state in (("before", before), ("after", after)):
        if state.frequencies_khz:
            known[f"frequency_khz_{name}"] = min(state.frequencies_khz)
        if state.temperature_c is not None:
            known[f"temperature_c_{name}"] = state.temperature_c
    slowest = min(before.frequencies_khz, default=0)
    if min(after.frequencies_khz, default=slowest) < _SLOWER * slowest:
        flags.add("throttled")
    return flags
