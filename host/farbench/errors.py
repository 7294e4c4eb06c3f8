"""Errors of the host wing, and the families of the other wings that a caller may meet.

Every class says in one line what happened, where, and what to try. `exit_status` is what the
command line ends with: 1 the run failed, 2 the command was used wrongly.
"""

from __future__ import annotations

from typing import ClassVar

from farbench_rpc.errors import (
    AddressError,
    Busy,
    Cancelled,
    CannotListen,
    ConnectError,
    DeviceLost,
    InvalidArgument,
    KernelAborted,
    KernelCrashed,
    KernelError,
    KernelExited,
    KernelTimeout,
    LeaseLost,
    LoadRefused,
    NoMatch,
    NotFound,
    OutOfMemory,
    ProtocolError,
    QuotaExceeded,
    Refused,
    RemoteTimeout,
    RpcError,
    VersionMismatch,
)

OUR_PACKAGES = frozenset(
    {"farbench", "farbench_compiler", "farbench_device_runtime", "farbench_rpc", "farbench_tracker"}
)


class HostError(Exception):
    """Something the host could not do; one line says what, where and what to try."""

    exit_status: ClassVar[int] = 1


class Terminated(SystemExit):
    """SIGTERM came: everything that is open unwinds, as at Ctrl-C."""


def is_ours(error: BaseException) -> bool:
    """Tell whether an error says by itself what happened: a class of any wing, or the system's."""
    package = type(error).__module__.partition(".")[0]
    return package in OUR_PACKAGES or isinstance(error, OSError)


class MissingExtra(HostError, ImportError):
    """A library that only the host extra brings is not installed."""


class UsageError(HostError, ValueError):
    """A count, name, path or option that cannot be used; nothing was started."""

    exit_status = 2


class SettingsError(UsageError):
    """The configuration file or an environment variable cannot be read; the message names it."""


class SessionClosed(HostError):
    """A session, array or module was used after its session had ended."""


class ValidationFailed(HostError):
    """An output differs from the reference; the message gives the largest error and where."""


__all__ = [
    "AddressError",
    "Busy",
    "Cancelled",
    "CannotListen",
    "ConnectError",
    "DeviceLost",
    "HostError",
    "InvalidArgument",
    "KernelAborted",
    "KernelCrashed",
    "KernelError",
    "KernelExited",
    "KernelTimeout",
    "LeaseLost",
    "LoadRefused",
    "MissingExtra",
    "NoMatch",
    "NotFound",
    "OutOfMemory",
    "ProtocolError",
    "QuotaExceeded",
    "Refused",
    "RemoteTimeout",
    "RpcError",
    "SessionClosed",
    "SettingsError",
    "Terminated",
    "UsageError",
    "ValidationFailed",
    "VersionMismatch",
    "is_ours",
]
