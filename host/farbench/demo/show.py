"""The whole demo: what it starts it also ends, whatever happens in between."""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path

import farbench as fb
from farbench.boards import (
    Board,
    BoardUnavailable,
    DeviceOptions,
    DeviceStartError,
    ensure_board,
    start_device,
)
from farbench.demo.builder import Builder, Built, Job
from farbench.demo.events import Event
from farbench.demo.plan import DemoPlan, DeviceRole
from farbench.demo.run import DeviceRun, Planned
from farbench.report import Report, Row
from farbench.report.page import DeviceSection
from farbench.settings import Settings
from farbench.tracker import Tracker, connect_tracker
from farbench.workloads import Workload, named_set
from farbench_tracker.service import TrackerServer

JOIN_S = 5.0
POLL_S = 0.5


class Show:
    """The demo as a context: `play` yields events until all devices are done."""

    def __init__(self, plan: DemoPlan) -> None:
        self.rows: list[Row] = []
        self._plan = plan
        self._events: queue.Queue[Event] = queue.Queue()
        self._runs: list[DeviceRun] = []
        self._stack = ExitStack()
        self._folder = Path()

    def __enter__(self) -> Show:
        made = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="farbench-demo-"))
        self._folder = Path(made)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def play(self, progress: Callable[[str], None]) -> Iterator[Event]:
        """Start everything and yield what happens; `progress` hears of long first-time work."""
        roles = [self._plan.native, *([self._plan.board] if self._plan.board else [])]
        builder = self._stack.enter_context(Builder(self._folder, self._plan.host_cores))
        planned = self._plan_builds(builder, roles)
        server = self._stack.enter_context(TrackerServer("127.0.0.1", 0))
        server.start()
        settings = Settings(tracker=str(server.address), user="demo")
        tracker = self._stack.enter_context(connect_tracker(settings=settings))
        self._stack.callback(self._end_runs)
        for role in roles:
            yield from self._begin(role, tracker, planned[role.name], progress)
        yield from self._follow()

    def _plan_builds(self, builder: Builder, roles: Sequence[DeviceRole]) -> dict[str, Planned]:
        """Ask for every library, in turns, so that no device waits for all of another's."""
        planned: dict[str, list[tuple[Workload, Future[Built]]]] = {r.name: [] for r in roles}
        sets = [[(role, workload) for workload in named_set(role.set_name)] for role in roles]
        for turn in zip_longest(*sets):
            for role, workload in filter(None, turn):
                future = builder.submit(Job(role.set_name, workload.name, role.target))
                planned[role.name].append((workload, future))
        return dict(planned)

    def _begin(
        self,
        role: DeviceRole,
        tracker: Tracker,
        planned: Planned,
        progress: Callable[[str], None],
    ) -> Iterator[Event]:
        """Start a device and its run; a board that cannot be had is said and left out."""
        try:
            board: Board | None = None
            if role.emulated:
                board = ensure_board(role.arch, progress)
            options = DeviceOptions(
                tracker=str(tracker.address),
                state=self._folder / role.name,
                name=role.name,
                cores=role.cores_text,
                emulated=role.emulated,
            )
            self._stack.enter_context(start_device(board, options))
        except (BoardUnavailable, DeviceStartError) as error:
            if not role.emulated:
                raise
            yield Event("skipped", role.name, text=f"no emulated board: {error}")
            return
        # The runs end before their devices do: later in, sooner out.
        run = DeviceRun(role, tracker, planned, self._events.put)
        self._stack.callback(self._end_runs)
        self._runs.append(run)
        run.start()
        yield Event("device", role.name, text=role.arch)

    def _follow(self) -> Iterator[Event]:
        """Yield events until every run has ended."""
        left = len(self._runs)
        while left:
            try:
                event = self._events.get(timeout=POLL_S)
            except queue.Empty:
                continue  # wakes up now and then so that Ctrl-C is heard on every system
            if event.kind == "ended":
                left -= 1
            if event.row is not None:
                self.rows.append(event.row)
            yield event

    def _end_runs(self) -> None:
        for run in self._runs:
            run.cancel()
        for run in self._runs:
            run.join(JOIN_S)

    def ordered_rows(self) -> tuple[Row, ...]:
        """Give the rows by device, each in the order of its set."""
        names = [run.role.name for run in self._runs]
        return tuple(sorted(self.rows, key=lambda row: names.index(row.device)))

    @property
    def devices(self) -> list[dict[str, object]]:
        """Give name, arch and emulated of each device that took part."""
        return [
            {"name": run.role.name, "arch": run.role.arch, "emulated": run.role.emulated}
            for run in self._runs
        ]

    def report(self, notes: tuple[str, ...]) -> Report:
        """Give the report of what has run so far."""
        sections = tuple(
            DeviceSection(run.role.name, run.facts, _device_notes(run.role)) for run in self._runs
        )
        made_at = time.strftime("%Y-%m-%d %H:%M:%S %z")
        return Report(
            f"farbench {fb.__version__}: demo", made_at, sections, self.ordered_rows(), notes
        )


def _device_notes(role: DeviceRole) -> tuple[str, ...]:
    notes = []
    if role.emulated:
        notes.append(
            "This board is emulated: that it runs and agrees counts, its times mean nothing."
        )
    if role.set_name != "resnet18":
        notes.append(f"It runs the smaller set of workloads {role.set_name!r}.")
    if role.cores:
        notes.append(f"Timed on core {role.cores_text}; builds and checks ran on other cores.")
    return tuple(notes)
