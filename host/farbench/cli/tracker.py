"""`farbench tracker`: run a tracker in the foreground."""

from __future__ import annotations

import signal
from types import FrameType

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.settings import TRACKER_PORT
from farbench_tracker.service import TrackerServer


@click.command("tracker")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=TRACKER_PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option("--insecure", is_flag=True, help="Allow others than this machine, without keys.")
@options.json_option
def command(host: str, port: int, insecure: bool, as_json: bool) -> None:
    """Run a tracker until Ctrl-C; port 0 lets the system pick one, which is printed."""
    out = Output(as_json)

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    with TrackerServer(host, port, insecure=insecure) as server:
        out.event("listening", address=str(server.address))
        out.line(f"tracker listens at {server.address}; Ctrl-C stops it")
        server.serve()
