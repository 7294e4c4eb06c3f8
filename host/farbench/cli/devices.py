"""`farbench devices`: list the devices of a tracker."""

from __future__ import annotations

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.listing import DEVICE_COLUMNS, device_data, device_row, why_none
from farbench.tracker import connect_tracker


@click.command("devices")
@click.argument("requirement", default="")
@options.tracker_option
@options.json_option
def command(requirement: str, tracker: str | None, as_json: bool) -> None:
    """List the devices of a tracker, all or those that match REQUIREMENT."""
    out = Output(as_json)
    with connect_tracker(settings=options.settings_from(tracker)) as connection:
        found = connection.devices(requirement)
        out.result({"devices": [device_data(device) for device in found]})
        if found:
            out.table(DEVICE_COLUMNS, [device_row(device) for device in found])
        else:
            out.line(why_none(connection.address, requirement, connection.devices()))
