"""Loading libraries and naming devices, under the names that TVM's users know."""

from __future__ import annotations

from farbench.devices import Device, cpu
from farbench.devices import device as _device
from farbench.errors import UsageError
from farbench.module import load_module
from farbench.resident import Threads, set_threads, threads

device = context = _device


def config_threadpool(affinity_mode: int, nthreads: int) -> None:
    """Choose the number of threads as TVM's users do; 0 is one for each core.

    The affinity mode is of TVM's big and little cores: give cores to `set_threads` instead.
    """
    if affinity_mode not in (-2, 0):
        raise UsageError(f"no affinity mode {affinity_mode} here; use set_threads(cores=[...])")
    set_threads(nthreads or None)


__all__ = [
    "Device", "Threads", "config_threadpool", "context", "cpu", "device", "load_module",
    "set_threads", "threads",
]  # fmt: skip
