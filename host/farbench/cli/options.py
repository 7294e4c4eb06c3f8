"""Options that several commands share, and what they open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from farbench.settings import Settings, load_settings

Function = TypeVar("Function", bound=Callable[..., Any])


def json_option(function: Function) -> Function:
    """Add --json."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="One JSON object, or one a line for events."
    )
    return option(function)


def tracker_option(function: Function) -> Function:
    """Add --tracker (over FARBENCH_TRACKER over config.toml)."""
    option = click.option(
        "--tracker",
        metavar="HOST:PORT",
        help="The tracker; default: FARBENCH_TRACKER, config.toml, then 127.0.0.1:9190.",
    )
    return option(function)


def wait_options(default_s: float | None = None) -> Callable[[Function], Function]:
    """Add --wait and --no-wait; without a default the settings have one."""
    default = "wait_s of config.toml, then 60" if default_s is None else f"{default_s:.0f}"
    wait = click.option(
        "--wait",
        "wait_s",
        type=click.FloatRange(min=0, max=86_400),
        metavar="SECONDS",
        help=f"How long to wait for a device to come free; default: {default}.",
    )
    no_wait = click.option("--no-wait", is_flag=True, help="Fail at once when none is free.")
    return lambda function: wait(no_wait(function))


def settings_from(tracker: str | None = None, wait_s: float | None = None) -> Settings:
    """Read the settings and lay flags over them."""
    settings = load_settings()
    if tracker is not None:
        settings = replace(settings, tracker=tracker)
    if wait_s is not None:
        settings = replace(settings, wait_s=wait_s)
    return settings


def waiting(settings: Settings, wait_s: float | None, no_wait: bool) -> float:
    """Give how long to wait in seconds; --wait and --no-wait together are refused."""
    if no_wait and wait_s is not None:
        raise click.UsageError("--wait and --no-wait exclude each other")
    return 0.0 if no_wait else settings.wait_s
