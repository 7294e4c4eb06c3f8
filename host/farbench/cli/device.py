"""`farbench device`: the same server as `farbench-device`, with the same flags."""

from __future__ import annotations

import click

from farbench.cli import options
from farbench_device_runtime.cli import main as device_main


@click.command(
    "device",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Offer this machine to a tracker; takes the flags of farbench-device."""
    given = list(arguments)
    asks_help = any(word in ("-h", "--help") for word in given)
    names_tracker = any(word == "--tracker" or word.startswith("--tracker=") for word in given)
    if not asks_help and not names_tracker:
        given = ["--tracker", str(options.settings_from().tracker_address), *given]
    try:
        return device_main(given)
    except SystemExit as done:  # argparse's way to end after --help or bad flags
        return done.code if isinstance(done.code, int) else 1
