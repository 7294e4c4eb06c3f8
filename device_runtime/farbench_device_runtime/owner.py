"""The process that started a server: the server ends with it, however that ends."""

from __future__ import annotations

import os
import signal
import threading

_STDIN = 0


def end_with_input() -> None:
    """Have SIGTERM sent to this process when its standard input reaches its end.

    The owner holds the other end of the pipe, which closes even when the owner is killed.
    """
    threading.Thread(target=_watch, name="owner", daemon=True).start()


def _watch() -> None:
    try:
        while os.read(_STDIN, 4096):
            pass
    except OSError:
        pass  # There is no input: the same as its end.
    os.kill(os.getpid(), signal.SIGTERM)
