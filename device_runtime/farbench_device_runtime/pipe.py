"""Messages between processes of one device: msgpack over a Unix socket pair that keeps packets.

A packet is one msgpack array, at most `LIMIT` bytes; descriptors travel beside it. Nothing but
plain values is unpacked, with caps, since a worker runs code of users.
"""

from __future__ import annotations

import array
import contextlib
import socket
from collections.abc import Sequence
from typing import Any

import msgpack

LIMIT = 120 * 1024
_FD_SIZE = array.array("i").itemsize


class PipeClosed(ConnectionError):
    """The process at the other end is gone."""


class PipeDamaged(ValueError):
    """The process at the other end sent something that is not a message."""


class Pipe:
    """One end of a socket pair; owns the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    @staticmethod
    def pair() -> tuple[Pipe, Pipe]:
        """Make two connected ends."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return Pipe(one), Pipe(other)

    def fileno(self) -> int:
        """Give the descriptor to poll."""
        return self.sock.fileno()

    def send(self, message: Sequence[Any], fds: Sequence[int] = (), block: bool = True) -> bool:
        """Send a message; False when it would block and `block` is off; PipeClosed at the end."""
        data = msgpack.packb(message)
        flags = 0 if block else socket.MSG_DONTWAIT
        try:
            if fds:
                socket.send_fds(self.sock, [data], fds, flags)
            else:
                self.sock.send(data, flags)
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionResetError, OSError) as cause:
            raise PipeClosed("the other process is gone") from cause
        return True

    def receive(self, block: bool = True) -> list[Any] | None:
        """Give the next message; None when there is none and `block` is off."""
        flags = 0 if block else socket.MSG_DONTWAIT
        try:
            data = self.sock.recv(LIMIT, flags)
        except BlockingIOError:
            return None
        except OSError as cause:
            raise PipeClosed("the other process is gone") from cause
        return _unpack(data)

    def receive_fds(self, block: bool = True) -> tuple[list[Any], list[int]] | None:
        """Give the next message and the descriptors that came with it (at most 4)."""
        flags = 0 if block else socket.MSG_DONTWAIT
        space = socket.CMSG_LEN(4 * _FD_SIZE)
        try:
            data, extra, _, _ = self.sock.recvmsg(LIMIT, space, flags | socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        except OSError as cause:
            raise PipeClosed("the other process is gone") from cause
        fds = array.array("i")
        for level, kind, payload in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) - len(payload) % _FD_SIZE])
        return _unpack(data), list(fds)

    def close(self) -> None:
        """Close the socket; the other end sees it."""
        with contextlib.suppress(OSError):
            self.sock.close()


def _unpack(data: bytes) -> list[Any]:
    if not data:
        raise PipeClosed("the other process is gone")
    try:
        message = msgpack.unpackb(data, max_array_len=4096, max_map_len=1024, strict_map_key=True)
    except (ValueError, msgpack.UnpackException) as cause:
        raise PipeDamaged("not a message") from cause
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise PipeDamaged("not a message")
    return message
