"""The one poll loop of a device: clients, tracker, worker and zygote, never waiting for one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import zmq

from farbench_device_runtime.core import DeviceCore
from farbench_device_runtime.registration import Registration
from farbench_rpc.moment import Moment
from farbench_rpc.server import Endpoint
from farbench_rpc.transport.base import Pollable

_IN_A_ROW = 64
LONGEST_MS = 1000
LOOK_S = 0.0002


class Loop:
    """Turns of the loop; `wake` is a descriptor whose readiness only ends the wait."""

    def __init__(
        self,
        core: DeviceCore,
        endpoint: Endpoint,
        wake: int,
        registration: Registration | None = None,
    ) -> None:
        self.core = core
        self.endpoint = endpoint
        self.registration = registration
        self._wake = wake
        self._moment = Moment(LOOK_S)
        self._called_at = 0.0
        self._poller = zmq.Poller()
        self._clients = endpoint.pollables
        self._tracker: tuple[Pollable, ...] = ()
        self._watched: tuple[int | None, int, tuple[Pollable, ...]] | None = None

    def run(self, running: Callable[[], bool]) -> None:
        """Turn until `running` says no; ZygoteLost when workers can no longer be made."""
        while running():
            self.turn()

    def turn(self) -> None:
        """Wait for something to do, and do it."""
        worker = self.core.pollable()
        zygote = self.core.house.supervisor.fileno()
        self._watch(worker, zygote)
        ready = dict(self._poller.poll(self._patience_ms()))
        if self._wake in ready:
            os.read(self._wake, 64)
        if worker is not None and worker in ready:
            self._answered()
        if self._clients_wait(ready):
            self._serve_clients()
        if zygote in ready:
            self.core.zygote_spoke()
        if self.registration is not None:
            self._serve_tracker(self.registration, ready)
        self.core.tick()

    def _clients_wait(self, ready: dict[Pollable, int]) -> bool:
        """Tell whether the endpoint has something to do: messages, ended peers, a backlog."""
        for item in self._clients:
            if item in ready:
                return True
        return self.endpoint.patience_ms(LONGEST_MS) < LONGEST_MS

    def _serve_clients(self) -> None:
        for _ in range(_IN_A_ROW):
            incoming = self.endpoint.receive()
            if incoming is None:
                break
            self.core.handle(incoming)
            if self.core.worker_is_calling:
                self._await_short_call()
        for peer in self.endpoint.take_gone():
            self.core.peer_gone(peer)

    def _await_short_call(self) -> None:
        """Look for the worker's answer for a moment: a short call then costs no sleep here."""
        self._called_at = time.perf_counter()
        self._moment.brings(self._answered, LOOK_S)

    def _answered(self) -> bool:
        """Take in what the worker said; tell whether it owes no answer to a call any more."""
        self.core.worker_spoke()
        if self.core.worker_is_calling:
            return False
        if self._called_at:
            self._moment.waited(time.perf_counter() - self._called_at)
            self._called_at = 0.0
        return True

    def _serve_tracker(self, registration: Registration, ready: dict[Pollable, int]) -> None:
        link = registration.link
        if not link.is_up or any(item in ready for item in self._tracker):
            registration.receive()
        registration.tick()

    def _watch(self, worker: int | None, zygote: int) -> None:
        """Poll what there is to poll now: sockets come and go."""
        if self.registration is not None:
            self._tracker = self.registration.link.pollables
        if self._watched == (worker, zygote, self._tracker):
            return
        # A closed descriptor's number may have come back as another's: all anew.
        self._poller = zmq.Poller()
        for item in {*self._clients, *self._tracker, zygote, self._wake, worker} - {None}:
            self._poller.register(item, zmq.POLLIN)
        self._watched = (worker, zygote, self._tracker)

    def _patience_ms(self) -> int:
        wake_s = self.core.next_wake()
        if self.registration is not None:
            wake_s = min(wake_s, self.registration.next_wake())
        # Rounded up: a wait that ends a moment early would turn the loop for nothing.
        longest = min(LONGEST_MS, int(wake_s * 1000) + 1 if wake_s > 0 else 0)
        patience = self.endpoint.patience_ms(longest)
        if self.registration is not None:
            patience = self.registration.link.patience_ms(patience)
        return patience
