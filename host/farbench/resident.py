"""Libraries loaded into the caller's own process, and the one context that they share.

What is loaded is a private copy of a file's bytes, and equal bytes are loaded once. The loader
knows libraries by their names: given a path again, it would answer with what the file held when it
was loaded first; and a file that is written over changes under the code that runs from it.

A library is never unloaded, and the thread pool that the first one brought serves them all for as
long as the process lives. A kernel that crashes here takes the caller with it; `fb.local()` does
not.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from farbench.errors import HostError

if TYPE_CHECKING:
    from farbench_device_runtime.library import Context, Library

_lock = threading.Lock()
_libraries: dict[str, Library] = {}
_shared: Context | None = None


def load(data: bytes) -> tuple[Library, Context]:
    """Load a library's bytes into this process; LoadRefused says why they do not fit this machine.

    HostError where libraries cannot be loaded at all.
    """
    if not sys.platform.startswith("linux"):
        raise HostError("libraries run on Linux; use a session: fb.connect_tracker(...).request()")
    from farbench_device_runtime.settings import usable_cores

    global _shared
    digest = hashlib.sha256(data).hexdigest()
    with _lock:
        library = _libraries.get(digest)
        if library is None:
            library = _libraries[digest] = _map(data)
        if _shared is None:
            _shared = library.context(len(usable_cores()))
        return library, _shared


def _map(data: bytes) -> Library:
    from farbench_device_runtime import facts
    from farbench_device_runtime.library import Library

    machine = facts.machine(facts.looks_emulated())
    with tempfile.TemporaryDirectory(prefix="farbench-module-") as folder:
        path = Path(folder) / "module.so"
        path.write_bytes(data)
        # Once mapped, the file is needed no longer.
        return Library.load(path, machine)
