"""From a host name to numeric addresses, within a deadline.

libzmq looks names up itself, but takes only the first address and stops its one input thread
meanwhile; `localhost` that is ::1 first would then miss a server on 127.0.0.1.
"""

from __future__ import annotations

import socket
import threading

from farbench_rpc.address import Address
from farbench_rpc.errors import CannotListen, ConnectError, RemoteTimeout


def resolve(address: Address, timeout_s: float) -> tuple[Address, ...]:
    """Give the numeric addresses of a host in the order to try them.

    Raises ConnectError for an unknown name, RemoteTimeout if the lookup takes too long.
    """
    if address.is_numeric:
        return (address,)
    found: list[tuple[Address, ...] | OSError] = []
    # getaddrinfo has no deadline of its own, so it gets a thread that may outlive the wait.
    thread = threading.Thread(
        target=lambda: found.append(_lookup(address)), name="farbench-resolve", daemon=True
    )
    thread.start()
    thread.join(timeout_s)
    if not found:
        raise RemoteTimeout(
            f"no answer for the name {address.host!r} within {timeout_s:g} s",
            {"limit_s": timeout_s, "elapsed_s": timeout_s, "waited_for": "name lookup"},
        )
    if isinstance(found[0], OSError):
        raise ConnectError(f"host name {address.host!r} is not known ({found[0].strerror})")
    return found[0]


def resolve_to_bind(address: Address, timeout_s: float) -> tuple[Address, ...]:
    """Give the numeric addresses to bind for a host; CannotListen if there are none."""
    try:
        return resolve(address, timeout_s)
    except (ConnectError, RemoteTimeout) as cause:
        raise CannotListen(f"cannot listen on {address}: {cause.message}") from cause


def why_refused(address: Address, timeout_s: float) -> str:
    """Say why no TCP connection can be made, by trying; libzmq does not tell."""
    try:
        with socket.create_connection((address.host, address.port), timeout=timeout_s):
            return "the connection was closed at once; try again"
    except ConnectionRefusedError:
        return "connection refused; nothing listens on that port"
    except OSError as cause:
        return cause.strerror or str(cause) or "no connection"


def _lookup(address: Address) -> tuple[Address, ...] | OSError:
    try:
        rows = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as cause:
        return cause
    except UnicodeError:
        return OSError(0, "not a valid host name")
    return tuple(dict.fromkeys(Address(str(row[4][0]), address.port) for row in rows))
