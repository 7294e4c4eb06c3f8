"""`farbench bench`: time a library on one or on every matching device."""

from __future__ import annotations

from pathlib import Path

import click

from farbench.benching import BenchPlan, Sizes, plan, time_on
from farbench.cli import options
from farbench.cli.output import Output, Task
from farbench.counts import CACHES, Counts
from farbench.errors import HostError, RpcError
from farbench.result import Sample, TimingResult, seconds
from farbench.tracker import Tracker, connect_tracker

COLUMNS = (
    "DEVICE", "ENTRY", "MEDIAN", "95 % INTERVAL", "MIN", "SAMPLES", "K", "CACHE",
    "RUN", "TRANSFER", "QUEUE", "FLAGS",
)  # fmt: skip


@click.command("bench")
@click.argument("library", metavar="FILE.so", type=click.Path(path_type=Path))
@click.option("--on", "requirement", default="", metavar="REQUIREMENT", help="Which device.")
@click.option("--each", is_flag=True, help="On every device that matches, one after another.")
@click.option("--entry", help="Entry to time; default: the first.")
@click.option("--number", default=10, show_default=True, help="Least calls in a sample.")
@click.option("--repeat", default=30, show_default=True, help="Samples.")
@click.option("--min-repeat-ms", default=10.0, show_default=True, help="Least length of a sample.")
@click.option("--cache", default="hot", show_default=True, type=click.Choice(CACHES))
@click.option("--exact", is_flag=True, help="Keep --number even if the timer is too coarse.")
@click.option("--budget", "budget_s", default=60.0, show_default=True, help="Longest run in s.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--shape", multiple=True, metavar="NAME=N", help="Size of a symbol; repeatable.")
@click.option("--priority", default=1, show_default=True, help="The higher number goes first.")
@options.wait_options
@options.tracker_option
@options.json_option
def command(
    library: Path,
    requirement: str,
    each: bool,
    entry: str | None,
    number: int,
    repeat: int,
    min_repeat_ms: float,
    cache: str,
    exact: bool,
    budget_s: float,
    seed: int,
    shape: tuple[str, ...],
    priority: int,
    wait_s: float | None,
    no_wait: bool,
    tracker: str | None,
    as_json: bool,
) -> int:
    """Time FILE.so on a device that matches, with inputs filled there from --seed.

    Waiting for the device, moving arrays and running are shown apart. A device that fails is a
    row with the reason, and the exit status is 1.
    """
    counts = Counts(number, repeat, min_repeat_ms, cache, exact, budget_s)
    planned = plan(library, Sizes.parse(shape), counts, seed, entry)
    settings = options.settings_from(tracker, wait_s)
    wait_for_s = options.waiting(settings, wait_s, no_wait)
    with connect_tracker(settings=settings) as connection:
        bench = _Bench(Output(as_json), connection, planned, wait_for_s, priority)
        wanted = ",".join(term for term in (planned.requirement, requirement) if term)
        return bench.run(bench.every(wanted) if each else [wanted], strict=not each)


class _Bench:
    """One command's run over its devices."""

    def __init__(
        self, out: Output, tracker: Tracker, planned: BenchPlan, wait_s: float, priority: int
    ) -> None:
        self._out = out
        self._tracker = tracker
        self._plan = planned
        self._wait_s = wait_s
        self._priority = priority

    def every(self, wanted: str) -> list[str]:
        """Name each matching device by its id."""
        found = [device for device in self._tracker.devices(wanted) if device.state != "lost"]
        if not found:
            raise HostError(f"no device matches {wanted!r}; see `farbench devices`")
        return [f"id={device.id}" for device in found]

    def run(self, requirements: list[str], strict: bool) -> int:
        """Time on each; gives 1 if one failed. `strict` raises the first failure instead."""
        rows: list[tuple[str, TimingResult | None, str]] = []
        for requirement in requirements:
            try:
                result = self._time(requirement)
            except (RpcError, HostError) as error:
                if strict:
                    raise
                rows.append((requirement, None, str(error)))
                self._out.event("failed", requirement=requirement, error=str(error))
                continue
            rows.append((result.device, result, ""))
            self._out.event("result", **result.as_dict())
        self._out.result({"results": [_data(*row) for row in rows]})
        self._out.table(COLUMNS, [_cells(*row) for row in rows])
        return 1 if any(result is None for _, result, _ in rows) else 0

    def _time(self, requirement: str) -> TimingResult:
        with self._out.task(f"waiting for {requirement}") as task:

            def queued(position: int, reason: str) -> None:
                self._out.event("queued", position=position, reason=reason)
                task.say(f"waiting for {requirement}: {reason} ({position} ahead)")

            with self._tracker.request(
                requirement,
                priority=self._priority,
                timeout=self._wait_s,
                on_queued=queued,
            ) as session:
                task.begin(f"timing {self._plan.entry.name} on {session.name}")
                self._out.event("granted", device=session.name, queued_s=session.queued_s)
                return time_on(session, self._plan, _Follow(self._out, task, session.name))


class _Follow:
    """Shows samples while they come."""

    def __init__(self, out: Output, task: Task, device: str) -> None:
        self._out = out
        self._task = task
        self._device = device
        self._count = 0

    def __call__(self, sample: Sample) -> None:
        """Take one sample."""
        self._count += 1
        self._out.event("sample", device=self._device, total_ns=sample.total_ns, k=sample.k)
        self._task.step(f"{self._count} samples, last {seconds(sample.seconds)} a call")


def _cells(device: str, result: TimingResult | None, failure: str) -> tuple[str, ...]:
    if result is None:
        return (device, failure, *([""] * (len(COLUMNS) - 2)))
    interval = result.interval
    return (
        device,
        result.entry,
        seconds(result.median),
        f"{seconds(interval.low)} - {seconds(interval.high)}",
        seconds(result.min),
        str(len(result.samples)),
        str(result.k),
        result.cache,
        seconds(result.spent.device_s),
        seconds(result.spent.transfer_s),
        seconds(result.spent.queued_s),
        ",".join(result.flags),
    )


def _data(device: str, result: TimingResult | None, failure: str) -> dict[str, object]:
    if result is None:
        return {"device": device, "failure": failure}
    return result.as_dict()
