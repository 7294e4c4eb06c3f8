"""`farbench tracker`: run a tracker in the foreground."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.errors import SettingsError
from farbench.settings import TRACKER_PORT, read_toml, state_folder
from farbench_tracker.errors import TrackerError
from farbench_tracker.journal import Journal
from farbench_tracker.options import Options, options_from
from farbench_tracker.service import TrackerServer


@click.command("tracker")
@click.option("--host", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"[default: {TRACKER_PORT}]")
@click.option("--insecure", is_flag=True, help="Allow others than this machine, without keys.")
@click.option(
    "--journal",
    metavar="FILE",
    help="Where devices, leases and queue are kept; none: nowhere.  [default: the state folder]",
)
@click.option(
    "--config", type=click.Path(path_type=Path), help="A tracker.toml; flags win over it."
)
@options.json_option
def command(
    host: str | None,
    port: int | None,
    insecure: bool,
    journal: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Run a tracker until Ctrl-C or SIGTERM; port 0 lets the system pick one, which is printed."""
    chosen = _read(config) if config is not None else Options(port=TRACKER_PORT)
    host = chosen.host if host is None else host
    port = chosen.port if port is None else port
    insecure = insecure or chosen.insecure
    kept = _journal(chosen.journal if journal is None else journal, port)
    out = Output(as_json)

    with (
        closing(kept) if kept is not None else nullcontext(),
        TrackerServer(host, port, chosen.settings, insecure=insecure, journal=kept) as server,
    ):
        out.event("listening", address=str(server.address))
        out.line(f"tracker listens at {server.address}; Ctrl-C stops it")
        server.serve()


def _journal(asked: str, port: int) -> Journal | None:
    """Open the journal; a tracker on any free port keeps none unless it is told where."""
    if asked == "none" or (not asked and not port):
        return None
    return Journal(Path(asked) if asked else state_folder() / f"tracker-{port}.db")


def _read(path: Path) -> Options:
    try:
        return options_from(read_toml(path))
    except FileNotFoundError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except TrackerError as error:
        raise SettingsError(f"{path}: {error}") from error
