"""Libraries loaded into the caller's own process, and the one context that they share.

A library is never unloaded, and the thread pool that the first one brought serves them all for as
long as the process lives. A kernel that crashes here takes the caller with it; `fb.local()` does
not.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from farbench.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

    from farbench_device_runtime.library import Context, Library

_lock = threading.Lock()
_shared: Context | None = None


def load(path: Path) -> tuple[Library, Context]:
    """Load a library into this process; LoadRefused says why it does not fit this machine."""
    if not sys.platform.startswith("linux"):
        raise HostError("libraries run on Linux; use a session: fb.connect_tracker(...).request()")
    from farbench_device_runtime import facts
    from farbench_device_runtime.library import Library
    from farbench_device_runtime.settings import usable_cores

    global _shared
    library = Library.load(path, facts.machine(facts.looks_emulated()))
    with _lock:
        if _shared is None:
            _shared = library.context(len(usable_cores()))
        return library, _shared
