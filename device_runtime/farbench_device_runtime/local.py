"""A device without a network: the same core and worker, in this process's memory.

    with LocalDevice() as device:
        client = Client(device.dial, "client")
        client.ask(device.opening)

The server's loop runs in a thread; the zygote is a program of its own, since this process may have
threads that a fork would break. One session, which lives as long as the device.
"""

from __future__ import annotations

import logging
import secrets
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType

from farbench_device_runtime import folders
from farbench_device_runtime.core import DeviceCore
from farbench_device_runtime.house import build_core
from farbench_device_runtime.identity import Identity
from farbench_device_runtime.loop import Loop
from farbench_device_runtime.settings import Settings
from farbench_device_runtime.supervisor import Supervisor
from farbench_rpc.errors import Refused, RpcError
from farbench_rpc.messages import Facts, Grant, SessionOpen
from farbench_rpc.server import Endpoint
from farbench_rpc.transport.base import Bell, Channel
from farbench_rpc.transport.memory import MemoryListener

_log = logging.getLogger(__name__)
CLOSE_S = 10.0
_FOREVER = float("inf")


class LocalDevice:
    """A device in this process; owns its thread, its zygote and a temporary directory."""

    def __init__(self, cores: tuple[int, ...] = (), memory_limit: int = 0) -> None:
        """Start it; Refused where the system is not Linux."""
        if not sys.platform.startswith("linux"):
            raise Refused("local sessions need Linux; call the module in this process instead")
        self._folder = Path(tempfile.mkdtemp(prefix="farbench-local-"))
        settings = Settings(self._folder, cores=cores, memory_limit=memory_limit)
        self._listener = MemoryListener("this machine")
        self._bell = Bell()
        self._running = True
        self._supervisor: Supervisor | None = None
        self._core: DeviceCore | None = None
        try:
            self._supervisor = Supervisor.execute()
            endpoint = Endpoint(self._listener, "device")
            identity = Identity(self._folder, secrets.token_hex(16))
            core = build_core(settings, self._supervisor, endpoint, identity, "local")
            self._core = core
        except BaseException:
            self._clean_up()
            raise
        lease, token = secrets.token_hex(8), secrets.token_hex(16)
        self.opening = SessionOpen(lease, 1, token)
        core.grant(Grant(lease, 1, token, _FOREVER, _FOREVER))
        self.facts: Facts = core.facts
        """What is known of this machine."""
        self._loop = Loop(core, endpoint, self._bell.fileno())
        self._thread = threading.Thread(target=self._run, name="farbench-local", daemon=True)
        self._thread.start()

    def dial(self, deadline: float) -> Channel:
        """Connect, as a `Dial` of farbench_rpc."""
        return self._listener.dial(deadline)

    def close(self) -> None:
        """End the session with all its processes, and the thread."""
        if self._running:
            self._running = False
            self._bell.ring()
            self._thread.join(CLOSE_S)
            self._clean_up()

    def _run(self) -> None:
        try:
            self._loop.run(lambda: self._running)
        except RpcError as error:
            _log.warning("the local session ended: %s", error.message)
        finally:
            # Whoever waits for an answer finds the connection ended.
            self._listener.close()

    def _clean_up(self) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
        if self._core is not None:
            self._core.close()
        self._listener.close()
        self._bell.close()
        folders.remove(self._folder)

    def __enter__(self) -> LocalDevice:
        """Give itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()
