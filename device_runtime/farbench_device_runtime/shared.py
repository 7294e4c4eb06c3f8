"""What every session of a device uses, and what a session knows of its worker at work."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from farbench_device_runtime import facts
from farbench_device_runtime.exits import Intent
from farbench_device_runtime.jobs import Job
from farbench_device_runtime.settings import Settings
from farbench_device_runtime.staging import Window
from farbench_device_runtime.supervisor import Supervisor, Worker
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

    def memory_limit(self) -> int:
        """Give what a worker that starts now may use (bytes): as set, or half of what is free."""
        return self.settings.memory_limit or facts.available_bytes() // 2


@dataclass
class Run:
    """A worker at work: what it has not answered yet, and since when."""

    worker: Worker
    window: Window
    pending: deque[Job] = field(default_factory=deque)
    since: float = 0.0
    intent: Intent | None = None
    ending: bool = False
