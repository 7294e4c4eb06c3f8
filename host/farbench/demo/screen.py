"""How the demo looks: progress while it runs, then a table, a report and one object."""

from __future__ import annotations

from pathlib import Path

from farbench.cli.output import Output, Task
from farbench.demo.events import Event
from farbench.demo.plan import DemoPlan
from farbench.demo.show import Show
from farbench.report import write_report
from farbench.report.rows import COLUMNS
from farbench.result import seconds

NOTE = (
    "Libraries were cross-compiled here, sent to each device, checked against numpy and timed "
    "there, inputs filled on the device from one seed. Spread is the median absolute deviation."
)


def play(plan: DemoPlan, out: Output, report_path: Path) -> int:
    """Run the demo and show it; gives 0 when every workload ran and was valid."""
    with out.task("demo") as task, Show(plan) as show:
        task.begin("starting a tracker and devices")
        skipped = []

        def prepares(text: str) -> None:
            out.event("progress", text=text)
            task.say(text)

        for event in show.play(prepares):
            _tell(out, task, event)
            if event.kind == "skipped":
                skipped.append(f"{event.device}: {event.text}")
        task.begin("writing the report")
        write_report(show.report((NOTE, *skipped)), report_path)
        devices, rows = show.devices, show.ordered_rows()
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
        task.begin("compiling and timing")
    elif event.kind == "built":
        out.event("built", device=event.device, workload=event.workload, seconds=event.seconds)
        task.step(f"{event.workload} for {event.device} built in {seconds(event.seconds)}")
