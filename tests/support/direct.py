"""A session on a device in this process's memory, as short to use as a test wants it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from farbench_device_runtime.local import LocalDevice
from farbench_rpc import transfer
from farbench_rpc.client import Client, Reply
from farbench_rpc.messages import (
    Alloc,
    Allocated,
    Arm,
    Called,
    CallEntry,
    Load,
    Loaded,
    Measure,
    Measured,
    Message,
    SessionClose,
    SessionOpen,
    SessionOpened,
    StopRule,
)

FORMATS = {"int32": "i", "float32": "f", "uint8": "B"}


class Direct:
    """An open session over any client; `load` gives a module, `array` an array."""

    def __init__(self, client: Client, opening: SessionOpen) -> None:
        self.client = client
        opened = client.ask(opening).message
        assert isinstance(opened, SessionOpened)
        self.opened = opened

    def ask(self, message: Message, timeout_s: float = 60.0) -> Message:
        """Ask, and give the reply's message."""
        return self.client.ask(message, timeout_s=timeout_s).message

    def load(self, path: Path, name: str = "hostile.so") -> int:
        """Upload a library and load it; gives its handle."""
        transfer.upload(self.client, path, name)
        loaded = self.ask(Load(name))
        assert isinstance(loaded, Loaded)
        return loaded.module

    def call(self, module: int, entry: str, *args: int | float, timeout_s: float = 20.0) -> int:
        """Call an entry; gives how long it ran (ns)."""
        called = self.ask(CallEntry(module, entry, args, timeout_s), timeout_s + 20)
        assert isinstance(called, Called)
        return called.elapsed_ns

    def array(self, values: Sequence[int | float], dtype: str = "int32") -> int:
        """Make an array with values; gives its handle."""
        made = self.ask(Alloc(dtype, (len(values),)))
        assert isinstance(made, Allocated)
        data = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        transfer.put(self.client, made.array, memoryview(data))
        return made.array

    def values(self, array: int, count: int, dtype: str = "int32") -> tuple[float, ...]:
        """Fetch the values of an array."""
        data = bytearray(count * struct.calcsize(FORMATS[dtype]))
        transfer.get(self.client, array, memoryview(data))
        return struct.unpack(f"<{count}{FORMATS[dtype]}", data)

    def measure(
        self, module: int, entry: str, *args: int, stop: StopRule, cache: str = "hot"
    ) -> tuple[list[Reply], Measured]:
        """Time an entry; gives the events as they came, and what was said at the end."""
        events: list[Reply] = []
        job = Measure((Arm(module, entry, args),), stop, cache=cache)
        done = self.client.ask(job, timeout_s=150, on_event=events.append).message
        assert isinstance(done, Measured)
        return events, done


class LocalSession(Direct):
    """A session of its own on a LocalDevice of its own."""

    def __init__(self, memory_limit: int = 0) -> None:
        self.closed = False
        self.device = LocalDevice(memory_limit=memory_limit)
        try:
            super().__init__(Client(self.device.dial, "client"), self.device.opening)
        except BaseException:
            self.device.close()
            raise

    def close(self) -> None:
        """End the session and the device; once is enough."""
        if self.closed:
            return
        self.closed = True
        try:
            self.ask(SessionClose())
        finally:
            self.client.close()
            self.device.close()

    def __enter__(self) -> LocalSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
