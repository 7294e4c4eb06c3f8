"""`farbench targets`: list the presets that --target knows."""

from __future__ import annotations

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench_compiler.target import Target, presets

COLUMNS = ("NAME", "ARCH", "CPU", "VECTOR", "TRIPLE")


@click.command("targets")
@options.json_option
def command(as_json: bool) -> None:
    """List the presets that --target knows; `llvm -mtriple= -mcpu= -mattr=` works beside them."""
    out = Output(as_json)
    found = presets()
    out.result({"targets": [_data(name, target) for name, target in found.items()]})
    out.table(
        COLUMNS,
        [
            (name, target.arch, target.cpu, f"{target.vector_bits} bits", target.triple)
            for name, target in found.items()
        ],
    )


def _data(name: str, target: Target) -> dict[str, object]:
    return {
        "name": name,
        "arch": target.arch,
        "cpu": target.cpu,
        "triple": target.triple,
        "features": list(target.features),
        "vector_bits": target.vector_bits,
        "text": target.text,
    }
