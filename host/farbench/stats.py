"""Statistics of timing samples: location, spread, intervals and outliers. Pure functions.

Sources: David and Nagaraja, Order Statistics (interval of the median); Tukey, Exploratory Data
Analysis (fences); Iglewicz and Hoaglin 1993 (modified z); Efron 1979 (bootstrap of the median).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Union

import numpy as np
from numpy.typing import NDArray

Data = Union[Sequence[float], "NDArray[np.float64]"]
Floats = NDArray[np.float64]

MIN_FOR_INTERVAL = 6  # with fewer samples no pair of order statistics covers 95 %
Z_LIMIT = 3.5
SEVERE_SHARE_LIMIT = 0.05
SERIAL_LIMIT = 0.3
_Z_SCALE = 0.6745  # MAD of a standard normal
_BOOTSTRAP_SEED = 0x5EED


@dataclass(frozen=True)
class Interval:
    """An interval of the median; `confidence` is what it covers, 0 for a mere range."""

    low: float
    high: float
    confidence: float
    method: Literal["order", "batch", "bootstrap", "range"]

    @property
    def half_width(self) -> float:
        """Half of its length, in the unit of the samples."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Outliers:
    """How many samples lie far out: Tukey's fences at 1.5 and 3 IQR, and modified z over 3.5."""

    mild: int
    severe: int
    by_z: int
    count: int

    @property
    def many(self) -> bool:
        """Tell whether severe ones pass 5 % of the samples."""
        return self.count > 0 and self.severe > SEVERE_SHARE_LIMIT * self.count


@dataclass(frozen=True)
class Summary:
    """The numbers shown for one series of samples, all in the unit of the samples."""

    count: int
    median: float
    mean: float
    std: float
    min: float
    max: float
    q10: float
    q90: float
    iqr: float
    mad: float
    interval: Interval
    bootstrap: Interval
    outliers: Outliers
    serial_correlation: float


def as_floats(data: Data) -> Floats:
    """Take samples as float64; ValueError when there is none or one is not finite."""
    values = np.asarray(data, dtype=np.float64).ravel()
    if values.size == 0:
        raise ValueError("no samples: at least one is needed")
    if not np.isfinite(values).all():
        raise ValueError("a sample is not a finite number")
    return values


def median(data: Data) -> float:
    """Give the middle value (of an even count, the mean of the middle two)."""
    return float(np.median(as_floats(data)))


def quantile(data: Data, q: float) -> float:
    """Give the q-quantile, 0 <= q <= 1, by linear interpolation."""
    return float(np.quantile(as_floats(data), q))


def mad(data: Data) -> float:
    """Give the median absolute deviation from the median (not scaled)."""
    values = as_floats(data)
    return float(np.median(np.abs(values - np.median(values))))


def iqr(data: Data) -> float:
    """Give the distance between the quartiles."""
    low, high = np.quantile(as_floats(data), (0.25, 0.75))
    return float(high - low)


def std(data: Data) -> float:
    """Give the standard deviation (of a sample, n - 1); 0 for one sample."""
    values = as_floats(data)
    return float(values.std(ddof=1)) if values.size > 1 else 0.0


def geometric_mean(data: Data) -> float:
    """Give the geometric mean; ValueError unless every value is over 0."""
    values = as_floats(data)
    if (values <= 0).any():
        raise ValueError("a geometric mean needs values over 0")
    return float(np.exp(np.log(values).mean()))


def serial_correlation(data: Data) -> float:
    """Give the correlation of neighbours (lag 1); 0 for fewer than 3 samples or no spread."""
    values = as_floats(data)
    if values.size < 3:
        return 0.0
    off = values - values.mean()
    total = float(off @ off)
    return float(off[:-1] @ off[1:]) / total if total > 0 else 0.0


def median_interval(data: Data, confidence: float = 0.95) -> Interval:
    """Give the interval of the median by order statistics; the range for fewer than 6 samples."""
    values = np.sort(as_floats(data))
    rank, covered = _rank(values.size, confidence)
    if rank == 0:
        return Interval(float(values[0]), float(values[-1]), 0.0, "range")
    return Interval(float(values[rank - 1]), float(values[-rank]), covered, "order")


def batch_interval(data: Data, confidence: float = 0.95) -> Interval:
    """Give the interval over medians of batches, for samples that follow their neighbours.

    Batches have about sqrt(n) samples; the range where fewer than 6 batches result.
    """
    values = as_floats(data)
    size = max(1, math.isqrt(values.size))
    batches = values[: values.size // size * size].reshape(-1, size)
    found = median_interval(np.median(batches, axis=1), confidence)
    if found.method == "range":
        return Interval(float(values.min()), float(values.max()), 0.0, "range")
    return Interval(found.low, found.high, found.confidence, "batch")


def bootstrap_interval(data: Data, confidence: float = 0.95, resamples: int = 10_000) -> Interval:
    """Give the percentile bootstrap interval of the median; the same data, the same interval.

    The m-th of n resampled values is the sample of rank ceil(n U), U the m-th of n uniform order
    statistics; so each resample costs three gamma draws, whatever n is.
    """
    values = np.sort(as_floats(data))
    n = values.size
    draw = np.random.default_rng(_BOOTSTRAP_SEED)
    low_rank = (n + 1) // 2
    gap = 0 if n % 2 else 1  # an even count averages two neighbours
    below = draw.gamma(low_rank, size=resamples)
    between = draw.gamma(1.0, size=resamples) if gap else np.zeros(resamples)
    above = draw.gamma(n - low_rank - gap + 1, size=resamples)
    total = below + between + above
    first = values[_ranks(below / total, n)]
    second = values[_ranks((below + between) / total, n)]
    tail = (1 - confidence) / 2
    low, high = np.quantile((first + second) / 2, (tail, 1 - tail))
    return Interval(float(low), float(high), confidence, "bootstrap")


def outliers(data: Data, resolution: float = 0.0) -> Outliers:
    """Count what lies far out; `resolution` is the smallest step a sample can have.

    The spread of the modified z is at least the resolution and 0.1 % of the median, so that a
    series of equal values with one tick of difference has no outlier.
    """
    values = as_floats(data)
    low, high = np.quantile(values, (0.25, 0.75))
    middle = float(np.median(values))
    # The same floor keeps Tukey's fences from closing on a series without spread.
    floor = max(resolution, 1e-3 * abs(middle))
    width = max(float(high - low), floor)
    beyond = np.maximum(low - values, values - high)
    severe = int((beyond > 3.0 * width).sum())
    mild = int((beyond > 1.5 * width).sum()) - severe
    spread = max(mad(values), floor)
    if spread == 0:
        by_z = 0
    else:
        by_z = int((_Z_SCALE * np.abs(values - middle) / spread > Z_LIMIT).sum())
    return Outliers(mild, severe, by_z, int(values.size))


def summarise(data: Data, confidence: float = 0.95, resolution: float = 0.0) -> Summary:
    """Give every number that is shown for a series of samples."""
    values = as_floats(data)
    q10, q90 = (float(q) for q in np.quantile(values, (0.1, 0.9)))
    serial = serial_correlation(values)
    interval = batch_interval if abs(serial) > SERIAL_LIMIT else median_interval
    return Summary(
        count=int(values.size),
        median=median(values),
        mean=float(values.mean()),
        std=std(values),
        min=float(values.min()),
        max=float(values.max()),
        q10=q10,
        q90=q90,
        iqr=iqr(values),
        mad=mad(values),
        interval=interval(values, confidence),
        bootstrap=bootstrap_interval(values, confidence),
        outliers=outliers(values, resolution),
        serial_correlation=serial,
    )


def _ranks(share: Floats, n: int) -> NDArray[np.int64]:
    return np.minimum((share * n).astype(np.int64), n - 1)


def _rank(n: int, confidence: float) -> tuple[int, float]:
    """Give the largest r such that [x_(r), x_(n+1-r)] covers the median, and how surely.

    0 when none does. Sums the tail of Binomial(n, 1/2) from ten deviations below the middle,
    where less than 1e-20 of it is left out.
    """
    if n < MIN_FOR_INTERVAL:
        return 0, 0.0
    tail_limit = (1 - confidence) / 2
    start = max(0, int(n / 2 - 5 * math.sqrt(n)))
    log_half = n * math.log(0.5)
    tail, rank, covered = 0.0, 0, 0.0
    for successes in range(start, n // 2 + 1):
        log_ways = math.lgamma(n + 1) - math.lgamma(successes + 1) - math.lgamma(n - successes + 1)
        tail += math.exp(log_ways + log_half)
        if tail > tail_limit:
            break
        rank, covered = successes + 1, 1 - 2 * tail
    return rank, covered
