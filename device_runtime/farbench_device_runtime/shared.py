"""What every session of a device uses, and what a session knows of its worker at work."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from farbench_device_runtime import facts
from farbench_device_runtime.exits import Intent
from farbench_device_runtime.folders import Sweeper
from farbench_device_runtime.jobs import Job
from farbench_device_runtime.settings import Settings
from farbench_device_runtime.staging import Window
from farbench_device_runtime.supervisor import Supervisor, Worker
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.manifest import Machine
from farbench_rpc.server import Endpoint


@dataclass
class House:
    """What every session of a device uses."""

    settings: Settings
    supervisor: Supervisor
    endpoint: Endpoint
    machine: Machine
    clock: Callable[[], float] = time.monotonic
    sweeper: Sweeper = field(default_factory=Sweeper)

    def memory_limit(self) -> int:
        """Give what a worker that starts now may use (bytes): as set, or half of what is free."""
        return self.settings.memory_limit or facts.available_bytes() // 2


class Waiting(deque[Job]):
    """The requests of a session that are not wholly sent to its worker, in order and bounded."""

    MOST = 1024
    MOST_BYTES = 64 << 20

    def admit(self, job: Job) -> None:
        """Take a request; InvalidArgument when there are too many, or too much data in them."""
        nbytes = sum(waiting.nbytes for waiting in self) if job.nbytes else 0
        if len(self) >= self.MOST or nbytes + job.nbytes > self.MOST_BYTES:
            raise InvalidArgument("too many requests under way; wait for answers")
        self.append(job)


@dataclass
class Run:
    """A worker at work: its directory, what it has not answered yet, and since when."""

    worker: Worker
    window: Window
    folder: Path
    pending: deque[Job] = field(default_factory=deque)
    since: float = 0.0
    intent: Intent | None = None
    ending: bool = False

    def close(self) -> None:
        """Let go of the pipe and the window; the worker is gone, or ends by it."""
        self.worker.pipe.close()
        self.window.close()
