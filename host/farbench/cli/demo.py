"""`farbench demo`: a tracker, this machine and an emulated board; a model's layers on both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.demo.plan import make_plan, usable_cores
from farbench.errors import UsageError


@click.command("demo")
@click.option(
    "--report",
    "report_path",
    default="farbench-report.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the report is written.",
)
@click.option(
    "--set",
    "set_name",
    default="resnet18",
    show_default=True,
    help="What this machine runs: resnet18, or small for a quick look.",
)
@click.option("--no-board", is_flag=True, help="Leave the emulated board out.")
@options.json_option
def command(report_path: Path, set_name: str, no_board: bool, as_json: bool) -> int:
    """Compile, send, check and time matmul, vector add and ResNet-18's layers on two devices."""
    folder = report_path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"no folder {folder} to write the report into")
    from farbench_compiler.target import Target

    arch = Target.parse("native").arch
    plan = make_plan(usable_cores(), arch, set_name, with_board=not no_board)
    out = Output(as_json)
    with _on_cores(plan.host_cores):
        # Imported late: numerical libraries count the cores they may use when they are loaded.
        from farbench.demo.screen import play

        return play(plan, out, report_path)


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
