"""A session on this machine without a socket: the worker, isolation and API of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farbench.errors import UsageError
from farbench.line import Line, OnPush
from farbench.session import Session
from farbench_rpc.client import Client

if TYPE_CHECKING:
    from farbench_device_runtime.local import LocalDevice


class LocalSession(Session):
    """A session whose device lives in this process; `close` ends both."""

    device_here: LocalDevice

    def close(self) -> None:
        """End the session, its worker and the device; once is enough, more do nothing."""
        if self.closed:
            return
        try:
            super().close()
        finally:
            self.device_here.close()


def local(cores: Sequence[int] = (), memory_limit: int = 0) -> LocalSession:
    """Open a session on this machine; `cores` binds its worker, `memory_limit` is in bytes.

    The same calls work as on a session from a tracker, with `with` or `close`. Linux only.
    """
    from farbench_device_runtime.local import LocalDevice
    from farbench_device_runtime.settings import usable_cores

    strange = [core for core in cores if core not in usable_cores()]
    if strange:
        usable = ",".join(map(str, usable_cores()))
        raise UsageError(f"core {strange[0]!r} cannot be used here; usable: {usable}")
    if not isinstance(memory_limit, int) or not 0 <= memory_limit < 1 << 62:
        raise UsageError(
            f"memory_limit is a number of bytes (0: most of what there is), not {memory_limit!r}"
        )
    device = LocalDevice(tuple(cores), memory_limit)
    try:

        def dial(on_push: OnPush) -> Client:
            return Client(device.dial, "client", on_push=on_push)

        session = LocalSession.open(Line(dial), device.opening)
    except BaseException:
        device.close()
        raise
    session.device_here = device
    return session
