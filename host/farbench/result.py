"""The result of a timing: every sample, and the numbers shown for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from farbench import stats

Value = str | int | float | bool


@dataclass(frozen=True)
class Sample:
    """One timed batch: `k` calls in a row took `total_ns`; `execution` numbers the process."""

    total_ns: int
    k: int
    execution: int = 0

    @property
    def seconds(self) -> float:
        """Seconds a call."""
        return self.total_ns / self.k / 1e9


@dataclass(frozen=True)
class Timer:
    """The clock that took the samples: its smallest step and the cost of reading it."""

    kind: str
    resolution_ns: int
    overhead_ns: float


@dataclass(frozen=True)
class InputFact:
    """What an argument held: `source` is a seed and range, `host` data, or a number."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class Spent:
    """Where the time around a measurement went, in seconds; parts that do not overlap.

    `device_s` is the sum of the samples, `end_to_end_s` from the request to the last sample,
    `transfer_s` what the session had spent on moving arrays, `queued_s` on waiting for a device.
    """

    device_s: float
    end_to_end_s: float
    transfer_s: float = 0.0
    queued_s: float = 0.0


@dataclass(frozen=True)
class TimingResult:
    """Samples of one entry on one device; times are seconds a call.

    `results` has shape [repeat]; `mean median std min max mad` are over it. `interval` is the
    95 % interval of the median by order statistics (the range for fewer than 6 samples),
    `bootstrap` the same by resampling.
    """

    entry: str
    device: str
    samples: tuple[Sample, ...]
    cache: str
    timer: Timer
    inputs: tuple[InputFact, ...]
    spent: Spent
    flags: tuple[str, ...] = ()
    facts: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a timing result needs at least one sample")

    @cached_property
    def results(self) -> tuple[float, ...]:
        """Seconds a call, one value a sample."""
        return tuple(sample.seconds for sample in self.samples)

    @cached_property
    def summary(self) -> stats.Summary:
        """Every number shown, in seconds a call."""
        return stats.summarise(self.results, resolution=self.timer.resolution_ns / self.k / 1e9)

    @property
    def k(self) -> int:
        """Calls in a sample (of the first, should they differ)."""
        return self.samples[0].k

    @property
    def mean(self) -> float:
        """Arithmetic mean."""
        return self.summary.mean

    @property
    def median(self) -> float:
        """Middle value."""
        return self.summary.median

    @property
    def std(self) -> float:
        """Standard deviation."""
        return self.summary.std

    @property
    def min(self) -> float:
        """Least value."""
        return self.summary.min

    @property
    def max(self) -> float:
        """Greatest value."""
        return self.summary.max

    @property
    def mad(self) -> float:
        """Median absolute deviation from the median."""
        return self.summary.mad

    @property
    def interval(self) -> stats.Interval:
        """95 % interval of the median."""
        return self.summary.interval

    @property
    def bootstrap(self) -> stats.Interval:
        """95 % bootstrap interval of the median."""
        return self.summary.bootstrap

    @property
    def outliers(self) -> stats.Outliers:
        """How many samples lie far out."""
        return self.summary.outliers

    def as_dict(self) -> dict[str, object]:
        """Give plain data for JSON: raw samples, numbers shown, conditions."""
        return {
            "entry": self.entry,
            "device": self.device,
            "median_s": self.median,
            "mean_s": self.mean,
            "std_s": self.std,
            "min_s": self.min,
            "max_s": self.max,
            "mad_s": self.mad,
            "q10_s": self.summary.q10,
            "q90_s": self.summary.q90,
            "iqr_s": self.summary.iqr,
            "interval_s": _interval(self.interval),
            "bootstrap_s": _interval(self.bootstrap),
            "outliers": {
                "mild": self.outliers.mild,
                "severe": self.outliers.severe,
                "by_z": self.outliers.by_z,
            },
            "k": self.k,
            "samples": [[s.total_ns, s.k, s.execution] for s in self.samples],
            "cache": self.cache,
            "flags": list(self.flags),
            "timer": {
                "kind": self.timer.kind,
                "resolution_ns": self.timer.resolution_ns,
                "overhead_ns": self.timer.overhead_ns,
            },
            "inputs": [
                {"name": i.name, "dtype": i.dtype, "shape": list(i.shape), "source": i.source}
                for i in self.inputs
            ],
            "device_s": self.spent.device_s,
            "end_to_end_s": self.spent.end_to_end_s,
            "transfer_s": self.spent.transfer_s,
            "queued_s": self.spent.queued_s,
            "facts": dict(self.facts),
        }

    def __str__(self) -> str:
        low, high = self.interval.low, self.interval.high
        flags = f"; {', '.join(self.flags)}" if self.flags else ""
        return (
            f"{self.entry} on {self.device}: median {seconds(self.median)} a call "
            f"[{seconds(low)}, {seconds(high)}], {count(len(self.samples), 'sample')} of "
            f"{count(self.k, 'call')}, "
            f"{self.cache}{flags}"
        )


def _interval(of: stats.Interval) -> dict[str, object]:
    return {"low": of.low, "high": of.high, "confidence": of.confidence, "method": of.method}


def count(number: int, what: str) -> str:
    """Write a number of things, such as "1 call" or "2 calls"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def seconds(value: float) -> str:
    """Write a duration with three digits and the unit that suits it."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
