"""`farbench build`: build a tensor program of a Python file for a target."""

from __future__ import annotations

import time
from pathlib import Path

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.compiling import build
from farbench.errors import UsageError
from farbench.programs import build_program, split
from farbench_compiler.target import Target


@click.command("build")
@click.argument("program", metavar="FILE.py:FUNCTION")
@click.option("--target", default="native", show_default=True, help="A preset or `llvm -m...`.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), metavar="FILE.so")
@click.option("--name", help="Name of the entry; default: the function's.")
@options.json_option
def command(program: str, target: str, output: str, name: str | None, as_json: bool) -> None:
    """Build FUNCTION, which returns (schedule, args), into a library for --target.

    FUNCTION takes nothing, or `target` (the target that it is built for).
    """
    out = Output(as_json)
    parsed = Target.parse(target)
    split(program)
    path = Path(output)
    if not path.parent.is_dir():
        raise UsageError(f"no folder {path.parent} to write {path.name} into")
    began = time.perf_counter()
    with out.task(f"building {program} for {target}") as task:
        schedule, args, function = build_program(program, parsed)
        module = build(schedule, args, target=parsed, name=name or function)
        module.export_library(path, task.say)
    took_s = time.perf_counter() - began
    out.result(
        {
            "path": str(path),
            "entry": module.entry_name,
            "target": target,
            "arch": parsed.arch,
            "nbytes": path.stat().st_size,
            "seconds": took_s,
        }
    )
    out.line(
        f"{path}: {module.signature} for {parsed.arch} ({parsed.cpu}), "
        f"{path.stat().st_size:,} bytes, {took_s:.2f} s"
    )
