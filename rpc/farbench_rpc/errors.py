"""Errors of the wire and of remote work, each with its code.

An error raised by a server travels as ErrorReply(code, message, detail) and is raised again at the
client as the class of that code. `detail` holds plain values (a signal, a limit, the last call).
"""

from __future__ import annotations

from typing import ClassVar

Value = str | int | float | bool


class RpcError(Exception):
    """Something went wrong between two machines or on the far one; one line says what."""

    code: ClassVar[str] = "infra"

    def __init__(self, message: str, detail: dict[str, Value] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail: dict[str, Value] = dict(detail or {})


class ProtocolError(RpcError):
    """The peer sent something that is not a message of ours."""

    code = "protocol"


class VersionMismatch(RpcError):
    """The peer speaks another major version; detail: ours, theirs."""

    code = "version"


class ConnectError(RpcError):
    """No connection: refused, name not found, or not our protocol; the message says which."""

    code = "connect"


class AddressError(RpcError):
    """An address cannot be read; the message quotes it."""

    code = "address"


class CannotListen(RpcError):
    """An address cannot be listened on, as when its port is in use; the message names it."""

    code = "listen"


class RemoteTimeout(RpcError):
    """A wait ended without an answer; detail: limit_s, elapsed_s, waited_for."""

    code = "timeout"


class InvalidArgument(RpcError):
    """An argument does not fit (shape, dtype, count, alignment, name); nothing was run."""

    code = "invalid"


class NotFound(RpcError):
    """No such module, array, entry, file, lease or device."""

    code = "not_found"


class Refused(RpcError):
    """The far side will not do it: wrong token, wrong state, name outside the session."""

    code = "denied"


class QuotaExceeded(RpcError):
    """A cap was reached (upload size, disk, arrays); detail: limit."""

    code = "quota"


class LoadRefused(RpcError):
    """The library does not fit the device: ELF, libc, CPU features, manifest."""

    code = "load_refused"


class KernelError(RpcError):
    """The user's code ended badly; detail: last_call, and what the class adds."""

    code = "nonzero"


class KernelCrashed(KernelError):
    """The worker died of a fault; detail: signal, signal_name, last_call."""

    code = "signal"


class KernelAborted(KernelError):
    """The kernel called abort(); detail: signal, last_call."""

    code = "abort"


class KernelExited(KernelError):
    """The kernel ended its process; detail: status, last_call."""

    code = "exit"


class KernelTimeout(KernelError, RemoteTimeout):
    """The kernel was stopped at its limit; detail: limit_s, elapsed_s, phase, last_call."""

    code = "kernel_timeout"


class OutOfMemory(KernelError):
    """The kernel or the session ran out of memory; detail: limit_bytes, last_call."""

    code = "oom"


class LeaseLost(RpcError):
    """The lease ended under the session; detail: reason, epoch."""

    code = "lease_lost"


class DeviceLost(RpcError):
    """The device went silent; detail: device."""

    code = "device_lost"


class NoMatch(RpcError):
    """No device can ever satisfy the requirement; the message says what comes nearest."""

    code = "no_match"


class Busy(RpcError):
    """Devices match but none came free in the time given; detail: waited_s."""

    code = "busy"


class Cancelled(RpcError):
    """The request was withdrawn or the session closed while it ran."""

    code = "cancelled"


def _all(base: type[RpcError]) -> dict[str, type[RpcError]]:
    found = {base.code: base}
    for sub in base.__subclasses__():
        # A class of another wing that shares its base's code is not what the wire means.
        found = _all(sub) | found
    return found


def by_code(code: str) -> type[RpcError]:
    """Give the class of a code; an unknown code (a newer peer) is a plain RpcError."""
    return _all(RpcError).get(code, RpcError)
