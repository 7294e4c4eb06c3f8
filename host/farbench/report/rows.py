"""One row of results: a workload on a device, with everything that is shown of it."""

from __future__ import annotations

from dataclasses import dataclass

from farbench.result import TimingResult, seconds
from farbench.validation import Comparison

COLUMNS = ("DEVICE", "WORKLOAD", "MEDIAN", "SPREAD", "GFLOP/S", "SAMPLES", "VALID")


@dataclass(frozen=True)
class Row:
    """What became of one workload on one device; `failure` is empty when it ran."""

    device: str
    workload: str
    flops: int
    result: TimingResult | None = None
    comparison: Comparison | None = None
    build_s: float = 0.0
    failure: str = ""

    @property
    def valid(self) -> bool:
        """Tell whether it ran and its output agreed with the reference."""
        return self.result is not None and self.comparison is not None and self.comparison.valid

    @property
    def gflops(self) -> float:
        """Billions of floating-point operations a second, at the median; 0 without a result."""
        if self.result is None or self.result.median <= 0:
            return 0.0
        return self.flops / self.result.median / 1e9

    @property
    def verdict(self) -> str:
        """Say in a word or a line whether it is valid."""
        if self.failure:
            return self.failure
        if self.comparison is None:
            return "not checked"
        return "yes" if self.comparison.valid else str(self.comparison)

    @property
    def spread(self) -> str:
        """Show the median absolute deviation, relative to the median."""
        if self.result is None or self.result.median <= 0:
            return "-"
        return f"{100 * self.result.mad / self.result.median:.1f} %"

    def cells(self) -> tuple[str, ...]:
        """Give the cells of COLUMNS."""
        if self.result is None:
            return (self.device, self.workload, "-", "-", "-", "0", self.verdict)
        return (
            self.device,
            self.workload,
            seconds(self.result.median),
            self.spread,
            f"{self.gflops:.2f}",
            str(len(self.result.samples)),
            self.verdict,
        )

    def as_dict(self) -> dict[str, object]:
        """Give plain data for JSON; a row without a result says why."""
        data: dict[str, object] = {
            "device": self.device,
            "workload": self.workload,
            "median_s": self.result.median if self.result else None,
            "gflops": self.gflops if self.result else None,
            "valid": self.valid,
            "samples": len(self.result.samples) if self.result else 0,
        }
        if self.result is not None:
            data["mad_s"] = self.result.mad
            data["flags"] = list(self.result.flags)
        if self.comparison is not None:
            data["max_error"] = self.comparison.max_error
        if self.failure:
            data["failure"] = self.failure
        return data
