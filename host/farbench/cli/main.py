"""The door of the command line: exit statuses, and errors as one line.

0 done, 1 the run failed, 2 used wrongly, 130 stopped by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from farbench.errors import AddressError, HostError, MissingExtra, Terminated, is_ours
from farbench.extras import explain, load
from farbench.listing import printable

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give the exit status; errors of ours end as one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with _signals():
            return _run(arguments)
    except KeyboardInterrupt:
        print("farbench: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe left (`farbench devices | head`); nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        missing = explain(error) if isinstance(error, ModuleNotFoundError) else None
        told = missing or error
        if not is_ours(told):
            raise
        _tell(told, as_json="--json" in arguments)
        return _status(told)


@contextmanager
def _signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM unwind what is open, also where a shell had Ctrl-C ignored.

    A shell without job control starts background commands so, and then no one could stop them
    but by force, which would leave their devices and leases behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminated)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated(TERMINATED)


def _run(arguments: list[str]) -> int:
    try:
        click = load("click")
    except MissingExtra as error:
        if arguments[:1] == ["device"]:
            return _device(arguments[1:])
        _tell(error, as_json=False)
        return FAILED
    from farbench.cli.group import farbench

    try:
        status = farbench.main(args=arguments, prog_name="farbench", standalone_mode=False)
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.exceptions.Exit as done:
        return int(done.exit_code)
    except click.ClickException as error:
        if not arguments or type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)
            return USAGE
        where = f" (see {error.ctx.command_path} --help)" if getattr(error, "ctx", None) else ""
        _say(f"{error.format_message()}{where}", type(error).__name__, "--json" in arguments)
        return int(error.exit_code)
    return status if isinstance(status, int) else 0


def _device(arguments: list[str]) -> int:
    """Run the device server where there is only what a board has."""
    from farbench_device_runtime.cli import main as device_main

    try:
        return device_main(arguments)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else FAILED


def _status(error: Exception) -> int:
    """Tell bad input (2) from a run that failed (1)."""
    if isinstance(error, HostError):
        return error.exit_status
    # The compiler is not imported for the sake of one name.
    is_target = type(error).__name__ == "TargetError"
    return USAGE if is_target or isinstance(error, AddressError) else FAILED


def _tell(error: Exception, as_json: bool) -> None:
    code = getattr(error, "code", "") or type(error).__name__
    _say(str(error) or type(error).__name__, str(code), as_json)


def _say(message: str, code: str, as_json: bool) -> None:
    line = printable(" ".join(message.split()))
    if as_json:
        print(json.dumps({"error": {"code": code, "message": line}}), flush=True)
    print(f"farbench: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
