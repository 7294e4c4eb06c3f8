"""Figures: a kernel of ours beside a rival's, timed in turns, and ratios of their speeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from _common import Peer, in_turns, median, note
from _kernels.kernel import MOST_CALLS, SAMPLE_S
from farbench.stats import geometric_mean

Seconds = Callable[[int], Sequence[float]]
ROUNDS = 6
ROUND_S = 0.1  # how long one side's turn takes, where its call is short
MOST_SAMPLES = 25
LEAST_SAMPLES = 3


@dataclass(frozen=True)
class Pair:
    """Two ways to do the same work; each takes so many samples, in seconds a call."""

    name: str
    ours: Seconds
    theirs: Seconds

    def measure(self) -> Measured:
        """Time both in turns; the first turn warms and is dropped."""
        turns = {
            side: _turn(seconds) for side, seconds in (("ours", self.ours), ("theirs", self.theirs))
        }
        taken = in_turns(turns, ROUNDS)
        found = Measured(self.name, median(taken["ours"]), median(taken["theirs"]))
        note(f"  {found}")
        return found


@dataclass(frozen=True)
class Measured:
    """The medians of a pair, in seconds a call."""

    name: str
    ours_s: float
    theirs_s: float

    @property
    def ratio(self) -> float:
        """Our speed over the rival's: more than 1 is faster."""
        return self.theirs_s / self.ours_s

    def __str__(self) -> str:
        ours_us, theirs_us = self.ours_s * 1e6, self.theirs_s * 1e6
        return f"{self.name}: {ours_us:.1f} us against {theirs_us:.1f} us, {self.ratio:.2f}"


def asked(peer: Peer, **request: object) -> Seconds:
    """Ask a peer for samples of one kind of work; a sample holds as many calls as it needs."""
    calls = 0

    def seconds(samples: int) -> Sequence[float]:
        nonlocal calls
        if not calls:
            once_s = max(min(peer.seconds(samples=LEAST_SAMPLES, calls=1, **request)), 1e-9)
            calls = max(1, min(MOST_CALLS, round(SAMPLE_S / once_s)))
        return peer.seconds(samples=samples, calls=calls, **request)

    return seconds


def _turn(seconds: Seconds) -> Callable[[], Sequence[float]]:
    once_s = max(median(seconds(LEAST_SAMPLES)), 1e-9)
    count = max(LEAST_SAMPLES, min(MOST_SAMPLES, round(ROUND_S / once_s)))
    return lambda: seconds(count)


def summary(ratios: Mapping[str, float]) -> dict[str, object]:
    """Give the geometric mean, the least and each of some ratios."""
    values = list(ratios.values())
    return {"geomean": geometric_mean(values), "least": min(values), "each": dict(ratios)}


def compare(pairs: Iterable[Pair]) -> dict[str, Measured]:
    """Measure pairs one after the other, each in turns with its rival."""
    return {pair.name: pair.measure() for pair in pairs}


def ratios(measured: Mapping[str, Measured]) -> dict[str, float]:
    """Give our speed over the rival's for each."""
    return {name: found.ratio for name, found in measured.items()}
