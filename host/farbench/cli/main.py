"""The door of the command line: exit statuses, and errors as one line.

0 done, 1 the run failed, 2 used wrongly, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from farbench.errors import HostError, MissingExtra, is_ours
from farbench.extras import load

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give the exit status; errors of ours end as one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("farbench: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe left (`farbench devices | head`); nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if not is_ours(error):
            raise
        _tell(error, as_json="--json" in arguments)
        return error.exit_status if isinstance(error, HostError) else FAILED


def _run(arguments: list[str]) -> int:
    try:
        click = load("click")
    except MissingExtra as error:
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


def _tell(error: Exception, as_json: bool) -> None:
    code = getattr(error, "code", "") or type(error).__name__
    _say(str(error) or type(error).__name__, str(code), as_json)


def _say(message: str, code: str, as_json: bool) -> None:
    line = " ".join(message.split())
    if as_json:
        print(json.dumps({"error": {"code": code, "message": line}}), flush=True)
    print(f"farbench: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
