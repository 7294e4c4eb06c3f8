"""Why a worker ended: a wait status, what was seen of its memory and what we did, as an error."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from farbench_rpc.errors import (
    Cancelled,
    KernelAborted,
    KernelCrashed,
    KernelError,
    KernelExited,
    KernelTimeout,
    OutOfMemory,
    RpcError,
    Value,
)

# How near to its limit a process that faulted must have been to have died of it: an allocation
# that fails is often as large as a tenth of what is allowed.
_NEAR = 0.85
ORPHANED = "orphaned"


@dataclass(frozen=True)
class Intent:
    """Why the server ended a worker itself: `timeout`, `cancelled`, or `damaged` (it is mute)."""

    cause: str
    limit_s: float = 0.0
    elapsed_s: float = 0.0
    phase: str = ""


@dataclass(frozen=True)
class Exit:
    """How a worker ended, as its parent saw it; sizes in bytes, 0 = not known.

    `cause` is empty when it died by itself, `oom` when the memory watch ended it, `ended` when the
    server asked, ORPHANED when it went down with the zygote. `emptied` tells whether every process
    it left behind is gone too. Peaks and limits count from where the worker was taken.
    """

    pid: int
    status: int
    peak_resident: int = 0
    peak_address: int = 0
    memory_limit: int = 0
    address_limit: int = 0
    cause: str = ""
    orphans: int = 0
    emptied: bool = True


def signal_name(number: int) -> str:
    """Give the name of a signal, `SIG<number>` for one without."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def ran_out_of_memory(ended: Exit) -> bool:
    """Tell whether the worker died of its memory: watched, at its limit, or the kernel's choice."""
    if ended.cause == "oom":
        return True
    if not os.WIFSIGNALED(ended.status):
        return False
    number = os.WTERMSIG(ended.status)
    if number == signal.SIGKILL:
        # Nobody of ours sent it, and the worker is the kernel's first choice (oom_score_adj).
        return ended.cause == ""
    if number not in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
        return False
    resident = ended.memory_limit and ended.peak_resident >= _NEAR * ended.memory_limit
    address = ended.address_limit and ended.peak_address >= _NEAR * ended.address_limit
    return bool(resident or address)


def classify(ended: Exit, last_call: str, intent: Intent | None = None) -> RpcError:
    """Make the typed error of a worker's end; the message names the last call."""
    during = f" in {last_call}" if last_call else " between calls"
    detail: dict[str, Value] = {"last_call": last_call}
    if intent is not None:
        return _intended(intent, during, detail)
    if ended.cause == ORPHANED:
        detail["signal"], detail["signal_name"] = int(signal.SIGKILL), "SIGKILL"
        return KernelCrashed(f"the process that makes workers was killed{during}", detail)
    if ran_out_of_memory(ended):
        detail["limit_bytes"] = ended.memory_limit
        detail["peak_bytes"] = ended.peak_resident
        mib = ended.memory_limit >> 20
        return OutOfMemory(f"the worker ran out of memory{during} (limit {mib} MiB)", detail)
    if os.WIFEXITED(ended.status):
        status = os.WEXITSTATUS(ended.status)
        detail["status"] = status
        return KernelExited(f"the kernel ended its process with status {status}{during}", detail)
    return _signalled(os.WTERMSIG(ended.status), during, detail)


def _signalled(number: int, during: str, detail: dict[str, Value]) -> RpcError:
    name = signal_name(number)
    detail["signal"] = number
    detail["signal_name"] = name
    if number == signal.SIGABRT:
        return KernelAborted(f"the kernel called abort(){during}", detail)
    if number == signal.SIGXCPU:
        detail["phase"] = "cpu"
        return KernelTimeout(f"the worker used up its processor time{during}", detail)
    return KernelCrashed(f"the worker died of {name}{during}", detail)


def _intended(intent: Intent, during: str, detail: dict[str, Value]) -> RpcError:
    if intent.cause == "timeout":
        detail["limit_s"] = intent.limit_s
        detail["elapsed_s"] = round(intent.elapsed_s, 3)
        detail["phase"] = intent.phase
        return KernelTimeout(
            f"stopped at its limit of {intent.limit_s:g} s (phase {intent.phase}){during}", detail
        )
    if intent.cause == "damaged":
        return KernelError(f"the worker stopped speaking to its server{during}", detail)
    return Cancelled(f"the worker was ended ({intent.cause}){during}", detail)
