"""`farbench-device`: the device server as a command."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farbench_device_runtime.options import Options

NEEDED = ("zmq", "msgpack")
_MISSING = (
    "farbench-device needs {names}: install them with `apt-get install python3-zmq "
    "python3-msgpack` or `pip install pyzmq msgpack`"
)


class Speaker:
    """Says what happens, a line each: to people, or as JSON objects."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def __call__(self, event: str, text: str, **fields: object) -> None:
        """Print one event and flush; a reader that left is no reason to end."""
        line = (
            json.dumps({"event": event, **fields}) if self.as_json else f"farbench-device: {text}"
        )
        with contextlib.suppress(BrokenPipeError):
            print(line, flush=True)


def missing_packages() -> list[str]:
    """List the packages that a device needs and that are not here."""
    names = {"zmq": "pyzmq", "msgpack": "msgpack"}
    return [names[name] for name in NEEDED if importlib.util.find_spec(name) is None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the device server; gives the exit status (0, 1, 2 usage, 130 after Ctrl-C)."""
    absent = missing_packages()
    if absent:
        return _fail(_MISSING.format(names=" and ".join(absent)), 2)
    from farbench_device_runtime import options

    try:
        chosen = options.read_options(sys.argv[1:] if arguments is None else arguments, os.environ)
    except options.UsageError as error:
        return _fail(f"farbench-device: {error}", 2)
    return _serve(chosen)


def _serve(chosen: Options) -> int:
    """Fork the zygote, then listen: after the fork come sockets and threads."""
    from farbench_device_runtime import libc, owner
    from farbench_device_runtime.identity import StateError
    from farbench_device_runtime.supervisor import Supervisor
    from farbench_rpc.errors import RpcError

    try:
        # A signal in the middle of the start must not leave a zygote behind.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminated)
        if threading.active_count() > 1:
            supervisor = Supervisor.execute()
        else:
            supervisor = Supervisor.fork()
        supervisor.adopts = libc.adopt_orphans()
        try:
            if chosen.until_eof:
                owner.end_with_input()
            from farbench_device_runtime.server import Plan, serve

            plan = Plan(chosen.tracker, chosen.listen, chosen.name, chosen.labels, chosen.insecure)
            return serve(plan, chosen.settings, supervisor, Speaker(chosen.json))
        finally:
            supervisor.close()
    except KeyboardInterrupt:
        return 130
    except (RpcError, StateError, OSError) as error:
        return _fail(f"farbench-device: {error}", 1)


def _terminated(number: int, frame: object) -> None:
    """End cleanly while starting."""
    raise SystemExit(0)


def _fail(text: str, status: int) -> int:
    print(text, file=sys.stderr, flush=True)
    return status
