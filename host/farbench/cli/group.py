"""The group of commands; each command's module is imported when it is called or listed."""

from __future__ import annotations

import importlib

import click

import farbench as fb

# Command -> module of this folder that holds it (under the same name), and its line of help.
COMMANDS: dict[str, str] = {
    "bench": "Time a library on one or on every matching device.",
    "build": "Build a tensor program of a Python file for a target.",
    "clean": "Show and empty the caches.",
    "demo": "Compile, run, time and validate a model's layers on two devices.",
    "device": "Offer this machine to a tracker (same as farbench-device).",
    "devices": "List the devices of a tracker.",
    "doctor": "Try connect, upload, run and return on every device.",
    "queue": "List the requests that wait for a device.",
    "targets": "List the presets that --target knows.",
    "tracker": "Run a tracker in the foreground.",
}


class LazyGroup(click.Group):
    """A group that imports a command's module no sooner than it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"farbench.cli.{cmd_name}")
        found: click.Command = module.command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name those that come near."""
        name = args[0] if args else ""
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fb.__version__, prog_name="farbench")
def farbench() -> None:
    """Compile tensor programs here, run and time them there."""
