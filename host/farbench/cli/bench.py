"""`farbench bench`: time a library on one or on every matching device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from farbench.benching import BenchPlan, Sizes, plan, time_on
from farbench.cli import options
from farbench.cli.output import Output, Task
from farbench.counts import CACHES, Counts
from farbench.errors import HostError, RpcError
from farbench.listing import printable, why_none
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
@click.option("--threads", type=int, help="Threads of parallel loops; default: the device's.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--shape", multiple=True, metavar="NAME=N", help="Size of a symbol; repeatable.")
@click.option("--priority", default=1, show_default=True, help="The higher number goes first.")
@options.wait_options()
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
    threads: int | None,
    seed: int,
    shape: tuple[str, ...],
    priority: int,
    wait_s: float | None,
    no_wait: bool,
    tracker: str | None,
    as_json: bool,
) -> int:
    """Time FILE.so on a device that matches, with inputs filled there from --seed.

    Waiting for the device, moving arrays and running are shown apart. With --each, a device that
    fails is named with the reason, and the exit status is 1.

    \b
    K is the number of calls in a sample. FLAGS say what to mind:
      busy            other programs ran on the device
      emulated        an emulator ran the code: times mean nothing
      preempted       the system often took the core away
      same_layout     all samples are of one process; another may differ
      shared_machine  another device server timed there at the same time
      short_samples   samples are short for the timer
      throttled       the clock of the cores fell meanwhile
      truncated       --budget ended before all samples were taken
    """
    counts = Counts(number, repeat, min_repeat_ms, cache, exact, budget_s, threads)
    planned = plan(library, Sizes.parse(shape), counts, seed, entry)
    settings = options.settings_from(tracker, wait_s)
    wait_for_s = options.waiting(settings, wait_s, no_wait)
    with connect_tracker(settings=settings) as connection:
        bench = _Bench(Output(as_json), connection, planned, wait_for_s, priority)
        wanted = requirement
        if planned.requirement not in requirement.split(","):
            wanted = ",".join(term for term in (planned.requirement, requirement) if term)
        return bench.each(wanted) if each else bench.one(wanted)


@dataclass(frozen=True)
class _Outcome:
    """What became of one device: a result, or why there is none."""

    device: str
    result: TimingResult | None
    failure: str = ""

    def data(self) -> dict[str, object]:
        """Give plain data for JSON."""
        if self.result is None:
            return {"device": self.device, "failure": self.failure}
        return self.result.as_dict()


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

    def one(self, wanted: str) -> int:
        """Time on one device; a failure is raised."""
        return self._show([_Outcome("", self._time(wanted, wanted))])

    def each(self, wanted: str) -> int:
        """Time on every matching device that is there; gives 1 if one failed."""
        found = self._tracker.devices(wanted)
        if not found:
            devices = self._tracker.devices()
            raise HostError(why_none(self._tracker.address, wanted, devices))
        there = [device for device in found if device.state != "lost"]
        if not there:
            raise HostError(f"every device that matches {wanted} is lost; see `farbench devices`")
        outcomes = []
        for device in there:
            try:
                result = self._time(f"id={device.id}", device.name)
            except (RpcError, HostError) as error:
                outcomes.append(_Outcome(device.name, None, str(error)))
                self._out.event("failed", device=device.name, id=device.id, error=str(error))
                continue
            outcomes.append(_Outcome(device.name, result))
        return self._show(outcomes)

    def _show(self, outcomes: list[_Outcome]) -> int:
        self._out.result({"results": [outcome.data() for outcome in outcomes]})
        timed = [outcome.result for outcome in outcomes if outcome.result is not None]
        if timed:
            self._out.table(COLUMNS, [_cells(result) for result in timed])
        failed = [outcome for outcome in outcomes if outcome.result is None]
        for outcome in failed:
            self._out.line(printable(f"{outcome.device} failed: {outcome.failure}"))
        return 1 if failed else 0

    def _time(self, requirement: str, called: str) -> TimingResult:
        with self._out.task(f"waiting for {called}") as task:

            def queued(position: int, reason: str) -> None:
                self._out.event("queued", position=position, reason=reason)
                task.say(f"waiting for {called}: {reason} ({position} ahead)")

            with self._tracker.request(
                requirement,
                priority=self._priority,
                timeout=self._wait_s,
                on_queued=queued,
            ) as session:
                task.begin(f"timing {self._plan.entry.name} on {session.name}")
                self._out.event("granted", device=session.name, queued_s=session.queued_s)
                follow = _Follow(self._out, task, session.name)
                result = time_on(session, self._plan, follow)
        self._out.event("result", **result.as_dict())
        return result


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


def _cells(result: TimingResult) -> tuple[str, ...]:
    interval = result.interval
    return (
        result.device,
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
