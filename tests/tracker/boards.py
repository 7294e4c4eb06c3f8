"""A device that speaks the real wire to a tracker, without anything behind it."""

from __future__ import annotations

import queue
import threading
import time
from typing import TypeVar

import zmq

from farbench_rpc.address import Address
from farbench_rpc.link import Link
from farbench_rpc.messages import (
    Beat,
    ErrorReply,
    Grant,
    Message,
    Ok,
    Register,
    Registered,
    Revoke,
    Welcome,
)

M = TypeVar("M", bound=Message)
WAIT_S = 20.0


class FakeBoard:
    """Registers, beats, confirms grants and ends revoked leases, in a thread of its own.

    What it hears comes out of `await_heard`. `confirms` off: it takes grants in silence; `beats`
    off: it sends no sign of life.
    """

    def __init__(
        self,
        tracker: Address,
        id_: str,
        *,
        labels: dict[str, str] | None = None,
        confirms: bool = True,
        beats: bool = True,
        lease: str = "",
        epoch: int = 0,
    ) -> None:
        self.id = id_
        self.labels = dict(labels or {})
        self.confirms = confirms
        self.beats = beats
        self.lease = lease
        self.epoch = epoch
        self._heard: queue.Queue[Message] = queue.Queue()
        self._link = Link.to(tracker, "device")
        self._every_s = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"board-{id_}", daemon=True)
        self._thread.start()

    def await_heard(self, kind: type[M]) -> M:
        """Wait for a message of a kind; those before it are skipped."""
        while True:
            message = self._heard.get(timeout=WAIT_S)
            if isinstance(message, kind):
                return message

    def close(self) -> None:
        """Close the connection, as the death of the process would."""
        self._stopping.set()
        self._thread.join(WAIT_S)

    def __enter__(self) -> FakeBoard:
        self.await_heard(Registered)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        next_beat_s = time.monotonic()
        while not self._stopping.is_set():
            poller = zmq.Poller()
            for item in self._link.pollables:
                poller.register(item, zmq.POLLIN)
            poller.poll(self._link.patience_ms(20))
            while (push := self._link.receive()) is not None:
                self._take(push.request_id, push.message)
            if self._every_s and self.beats and time.monotonic() >= next_beat_s:
                next_beat_s = time.monotonic() + self._every_s
                if self._link.is_up:
                    self._link.ask(Beat(self.lease, self.epoch))
        self._link.close()

    def _take(self, request_id: int, message: Message) -> None:
        match message:
            case Welcome():
                self._link.ask(
                    Register(self.id, self.id, self.labels, {}, 4711, (), self.epoch, self.lease)
                )
            case Registered():
                self._every_s = message.renew_s
            case ErrorReply(code="connect"):
                self._every_s = 0.0
            case Grant() if self.confirms:
                self.lease, self.epoch = message.lease, message.epoch
                self._link.answer(request_id, Ok())
            case Revoke():
                self.lease = ""
                self._link.answer(request_id, Ok())
        self._heard.put(message)
