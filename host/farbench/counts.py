"""The counts of a measurement, checked before anything is connected or run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farbench.errors import UsageError
from farbench_rpc.limits import MAX_THREADS
from farbench_rpc.messages import StopRule

CACHES = ("hot", "cold")
MAX_REPEAT = 1_000_000
MAX_NUMBER = 1_000_000_000
MAX_BUDGET_S = 3600.0
MAX_CALL_S = 86_400.0
TIMEOUT_MARGIN_S = 30.0  # the first call and the calibration come on top of the budget


@dataclass(frozen=True)
class Counts:
    """How often a measurement calls and when it ends.

    A sample is `number` calls or more, until it lasts `min_repeat_ms` and 1,000 ticks of the
    timer (unless `exact`); `repeat` samples are taken within `budget_s`. `cold` flushes the
    caches before every call, so that there a sample is one call. `threads` run parallel loops,
    None for as many as usual.
    """

    number: int = 10
    repeat: int = 1
    min_repeat_ms: float = 0.0
    cache: str = "hot"
    exact: bool = False
    budget_s: float = 60.0
    threads: int | None = None

    def __post_init__(self) -> None:
        _whole("number", self.number, MAX_NUMBER)
        _whole("repeat", self.repeat, MAX_REPEAT)
        if not _is_number(self.min_repeat_ms) or not 0 <= self.min_repeat_ms <= 1e6:
            raise UsageError(
                f"min_repeat_ms must be between 0 and 1,000,000 ms, not {self.min_repeat_ms!r}"
            )
        if not _is_number(self.budget_s) or not 0 < self.budget_s <= MAX_BUDGET_S:
            raise UsageError(
                f"budget_s must be over 0 and at most {MAX_BUDGET_S:.0f} s, not {self.budget_s!r}"
            )
        thread_count(self.threads)
        if self.cache not in CACHES:
            raise UsageError(f"cache must be one of {', '.join(CACHES)}, not {self.cache!r}")
        if self.cache == "cold" and self.exact and self.number != 1:
            raise UsageError(
                f"a cold sample is one call: exact=True with number={self.number} cannot be kept; "
                "use number=1 or cache='hot'"
            )

    @property
    def timeout_s(self) -> float:
        """The deadline of the whole measurement in seconds."""
        return self.budget_s + TIMEOUT_MARGIN_S

    def stop_rule(self) -> StopRule:
        """Give the rule as it travels."""
        cold = self.cache == "cold"
        return StopRule(
            number=1 if cold else self.number,
            repeat=self.repeat,
            min_sample_s=0.0 if cold else self.min_repeat_ms / 1e3,
            exact=True if cold else self.exact,
            budget_s=float(self.budget_s),
        )


def call_timeout(timeout_s: object) -> float:
    """Check the limit of a call in seconds; UsageError where it is none."""
    if not _is_number(timeout_s) or not 0 < timeout_s <= MAX_CALL_S:  # type: ignore[operator]
        raise UsageError(
            f"timeout_s must be over 0 and at most {MAX_CALL_S:,.0f} s, not {timeout_s!r}"
        )
    return float(timeout_s)  # type: ignore[arg-type]


def thread_count(threads: int | None) -> int:
    """Check how many threads a call asks for; 0 for as many as usual. UsageError for no count."""
    if threads is None:
        return 0
    _whole("threads", threads, MAX_THREADS)
    return threads


def _is_number(value: object) -> bool:
    is_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_real and math.isfinite(value)  # type: ignore[arg-type]


def _whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(f"{name} must be a whole number from 1 to {most:,}, not {value!r}")
