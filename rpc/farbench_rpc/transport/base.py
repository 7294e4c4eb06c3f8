"""What the layers above ask of a transport: whole messages of frames, deadlines, who is gone.

A Channel is the end that dials, a Listener the end that many channels reach. Neither knows what a
message means. `send` of a channel waits (until a deadline) for a slow peer; `send` of a listener
never waits, since one slow peer must not hold up the others.
"""

from __future__ import annotations

import enum
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from farbench_rpc.address import Address
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.limits import MAX_FRAME, MAX_FRAMES, MAX_MESSAGE

Buffer = bytes | bytearray | memoryview
Frames = Sequence[Buffer]
Pollable = Any
"""What zmq.Poller.register takes: a zmq socket or a file descriptor."""


class Sent(enum.Enum):
    """What became of a message that a listener was to send."""

    DONE = "done"
    FULL = "full"
    GONE = "gone"


class Arrival(NamedTuple):
    """A message of some peer: header first, then payload frames."""

    peer: bytes
    frames: list[Buffer]


class Channel(Protocol):
    """A connection to one listener; used by one thread at a time, but for `wake`."""

    peer: str
    """Where it leads to, for people."""

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give what to poll for input before `receive` is called."""

    def is_open(self) -> bool:
        """Tell whether frames can travel; ConnectError says why they never will."""

    def stage(self) -> str:
        """Say what an opening connection waits for, for people."""

    def send(self, frames: Frames, deadline: float) -> None:
        """Send a message; waits for room until `deadline` (time.monotonic).

        Large frames are not copied: they must keep their content until the peer has answered.
        Raises RemoteTimeout, ConnectError.
        """

    def receive(self) -> list[Buffer] | None:
        """Give the next message, None if there is none; ConnectError when it is over."""

    def wait(self, timeout_s: float) -> None:
        """Return when something may be received, on `wake`, or after `timeout_s`."""

    def wake(self) -> None:
        """Make a `wait` of another thread return."""

    def abandon(self) -> None:
        """Make a `send` or `wait` of another thread end soon: nobody needs it any more."""

    def close(self) -> None:
        """Close it; may be called twice."""


class Listener(Protocol):
    """The end that channels reach; used by one thread."""

    address: Address | None
    """Where it is bound, None where it has no address."""

    @property
    def pollables(self) -> tuple[Pollable, ...]:
        """Give what to poll for input before `receive` is called."""

    def receive(self) -> Arrival | None:
        """Give the next message of any peer, None if there is none."""

    def send(self, peer: bytes, frames: Frames) -> Sent:
        """Send a message without waiting; large frames are not copied."""

    def origin(self, peer: bytes) -> str:
        """Give the host a peer was last heard from, empty if it is not known."""

    def take_gone(self) -> list[bytes]:
        """Give the peers whose connections ended since the last call."""

    def close(self) -> None:
        """Close it; may be called twice."""


Dial = Callable[[float], Channel]
"""Start a connection; gets the deadline (time.monotonic)."""


class Bell:
    """A file descriptor that becomes readable when any thread rings."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._lock = threading.Lock()
        self._rung = False

    def fileno(self) -> int:
        """Give the descriptor to poll."""
        return self._read.fileno()

    def ring(self) -> None:
        """Make it readable; nothing happens after close."""
        with self._lock:
            if not self._rung and self._write.fileno() >= 0:
                self._rung = True
                self._write.send(b"\0")

    def clear(self) -> None:
        """Make it silent; look at what it announced only after this."""
        with self._lock:
            if self._rung and self._read.fileno() >= 0:
                self._rung = False
                self._read.recv(16)

    def close(self) -> None:
        """Close both ends; may be called twice."""
        with self._lock:
            self._read.close()
            self._write.close()


def check_caps(payload: Frames) -> None:
    """Refuse payload frames that the far side would drop; InvalidArgument says which cap."""
    if len(payload) > MAX_FRAMES:
        raise InvalidArgument(f"{len(payload)} frames in a message, the limit is {MAX_FRAMES}")
    sizes = [size_of(frame) for frame in payload]
    if max(sizes, default=0) > MAX_FRAME or sum(sizes) > MAX_MESSAGE:
        raise InvalidArgument(
            f"frames of {sizes} bytes, the limit is {MAX_FRAME} each and {MAX_MESSAGE} together"
        )


def size_of(frame: Buffer) -> int:
    """Count the bytes of a frame."""
    return frame.nbytes if isinstance(frame, memoryview) else len(frame)
