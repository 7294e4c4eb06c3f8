"""Loading libraries and naming devices, under the names that TVM's users know."""

from __future__ import annotations

from farbench.devices import Device, cpu
from farbench.devices import device as _device
from farbench.errors import HostError, RpcError, UsageError
from farbench.module import load_module
from farbench.resident import Threads, set_threads, threads
from farbench_compiler.errors import CompilerError, TargetError
from farbench_compiler.ir.expr import Buffer, as_expr
from farbench_compiler.target import Target
from farbench_rpc.manifest import ManifestError

device = context = _device
# What `except` takes for any error of a build, a call or a device.
TVMError = (CompilerError, HostError, RpcError, ManifestError)


def config_threadpool(affinity_mode: int, nthreads: int) -> None:
    """Choose the number of threads as TVM's users do; 0 is one for each core.

    The affinity mode is of TVM's big and little cores: give cores to `set_threads` instead.
    """
    if affinity_mode not in (-2, 0):
        raise UsageError(f"no affinity mode {affinity_mode} here; use set_threads(cores=[...])")
    set_threads(nthreads or None)


def enabled(target: str) -> bool:
    """Tell whether code for a target can be made here: `llvm` and its options, a preset's name."""
    try:
        Target.parse(target)
    except TargetError:
        return False
    return True


def convert(value: object) -> object:
    """Turn numbers into constants, lists of them into tuples; what is an expression stays."""
    if isinstance(value, (list, tuple)):
        return tuple(convert(part) for part in value)
    return value if isinstance(value, Buffer) else as_expr(value)  # type: ignore[arg-type]


__all__ = [
    "Device", "TVMError", "Threads", "config_threadpool", "context", "convert", "cpu", "device",
    "enabled", "load_module", "set_threads", "threads",
]  # fmt: skip
