"""`farbench queue`: list the requests that wait for a device."""

from __future__ import annotations

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.listing import QUEUE_COLUMNS, queue_data, queue_row
from farbench.tracker import connect_tracker


@click.command("queue")
@options.tracker_option
@options.json_option
def command(tracker: str | None, as_json: bool) -> None:
    """List the requests that wait for a device, the next one first."""
    out = Output(as_json)
    with connect_tracker(settings=options.settings_from(tracker)) as connection:
        waiting = connection.queue()
        out.result({"queue": [queue_data(i, entry) for i, entry in enumerate(waiting)]})
        if waiting:
            out.table(QUEUE_COLUMNS, [queue_row(i, entry) for i, entry in enumerate(waiting)])
        else:
            out.line(f"nothing waits at {connection.address}")
