"""`farbench demo`: a tracker, this machine and an emulated board; a model's layers on both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from farbench.cli import options
from farbench.cli.output import Output, Task
from farbench.demo.events import Event
from farbench.demo.plan import DemoPlan, make_plan, usable_cores
from farbench.errors import UsageError
from farbench.report.rows import COLUMNS
from farbench.result import seconds

NOTE = (
    "Libraries were cross-compiled here, sent to each device, checked against numpy and timed "
    "there, inputs filled on the device from one seed. Spread is the median absolute deviation."
)


@click.command("demo")
@click.option(
    "--report",
    "report_path",
    default="farbench-report.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the report is written.",
)
@click.option("--no-board", is_flag=True, help="Leave the emulated board out.")
@options.json_option
def command(report_path: Path, no_board: bool, as_json: bool) -> int:
    """Compile, send, check and time matmul, vector add and ResNet-18's layers on two devices."""
    folder = report_path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"no folder {folder} to write the report into")
    from farbench_compiler.target import Target

    plan = make_plan(usable_cores(), not no_board, Target.parse("native").arch)
    out = Output(as_json)
    with _on_cores(plan.host_cores):
        return _play(plan, out, report_path)


def _play(plan: DemoPlan, out: Output, report_path: Path) -> int:
    # Imported late: numerical libraries count the cores that they may use when they are loaded.
    from farbench.demo.show import Show
    from farbench.report import write_report

    with out.task("starting a tracker and devices") as task, Show(plan) as show:
        skipped = []
        for event in show.play(task.say):
            _tell(out, task, event)
            if event.kind == "skipped":
                skipped.append(f"{event.device}: {event.text}")
        task.say("writing the report")
        write_report(show.report((NOTE, *skipped)), report_path)
        devices, rows = show.devices, list(show.rows)
    out.table(COLUMNS, [row.cells() for row in rows])
    out.line(f"report: {report_path}")
    out.result({"devices": devices, "results": [row.as_dict() for row in rows]})
    return 0 if rows and all(row.valid for row in rows) else 1


def _tell(out: Output, task: Task, event: Event) -> None:
    """Show one event, to a person or a program."""
    if event.kind == "sample":
        out.event("sample", device=event.device, workload=event.workload, seconds=event.seconds)
        task.step(f"{event.device}: {event.workload}, last {seconds(event.seconds)} a call")
    elif event.row is not None:
        row = event.row
        out.event("row", **row.as_dict())
        speed = f"{seconds(row.result.median)}, {row.gflops:.2f} GFLOP/s" if row.result else ""
        said = ", ".join(part for part in (speed, f"valid: {row.verdict}") if part)
        task.say(f"{row.device}: {row.workload}: {said}")
    elif event.kind == "skipped":
        out.event("skipped", device=event.device, reason=event.text)
        out.note(f"{event.device} is left out: {event.text}")
    elif event.kind == "device":
        out.event("device", device=event.device, arch=event.text)
        task.say(f"{event.device} ({event.text}) is ready")
    elif event.kind == "built":
        out.event("built", device=event.device, workload=event.workload, seconds=event.seconds)
        task.step(f"{event.workload} for {event.device} built in {seconds(event.seconds)}")


@contextmanager
def _on_cores(cores: tuple[int, ...]) -> Iterator[None]:
    """Keep this process to some cores, so that it leaves alone the one that is timed."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
