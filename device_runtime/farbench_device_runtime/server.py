"""The device server: listens for clients, keeps in touch with the tracker, until told to end."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from farbench_device_runtime import __version__
from farbench_device_runtime.house import build_core
from farbench_device_runtime.identity import load_identity, open_state
from farbench_device_runtime.loop import Loop
from farbench_device_runtime.registration import Offer, Registration
from farbench_device_runtime.settings import Settings
from farbench_device_runtime.supervisor import Supervisor
from farbench_rpc.address import Address
from farbench_rpc.link import Link
from farbench_rpc.server import Endpoint, EndpointSettings

Say = Callable[..., None]
WIND_UP_S = 5.0


@dataclass(frozen=True)
class Plan:
    """What a server is started with, beside its settings."""

    tracker: Address
    listen: Address
    name: str
    labels: dict[str, str]
    insecure: bool = False


class _Stop:
    """SIGTERM and SIGINT as a flag and a readable descriptor."""

    def __init__(self) -> None:
        self.number = 0
        self._in, self._out = socket.socketpair()
        self._in.setblocking(False)
        self._out.setblocking(False)
        signal.set_wakeup_fd(self._out.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def fileno(self) -> int:
        """Give the descriptor that becomes readable."""
        return self._in.fileno()

    def running(self) -> bool:
        """Tell whether no signal came yet."""
        return self.number == 0

    def close(self) -> None:
        """Close the descriptors; a signal that comes later still changes nothing."""
        signal.set_wakeup_fd(-1)
        self._in.close()
        self._out.close()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number


def serve(plan: Plan, settings: Settings, supervisor: Supervisor, say: Say) -> int:
    """Serve until SIGTERM or SIGINT; gives the exit status (130 after SIGINT).

    `say(event, text, **fields)` is told what happens. Raises CannotListen, StateError, ZygoteLost.
    """
    identity = load_identity(open_state(settings.state))
    stop = _Stop()
    try:
        listening = EndpointSettings(insecure=plan.insecure)
        with Endpoint.bind(plan.listen, "device", settings=listening) as endpoint:
            core = build_core(settings, supervisor, endpoint, identity, plan.name)
            address = endpoint.address or plan.listen
            say("listening", f"listening on {address}", address=str(address), pid=os.getpid())
            link = Link.to(plan.tracker, "device", agent=f"farbench-device {__version__}")
            offer = Offer(plan.name, plan.labels, address.port, own_addresses(plan.listen))
            told = _Teller(say, identity.id, plan)
            registration = Registration(link, core, offer, told)
            loop = Loop(core, endpoint, stop.fileno(), registration)
            try:
                loop.run(stop.running)
                _wind_up(loop)
            finally:
                registration.close()
                core.close()
    finally:
        stop.close()
    return 130 if stop.number == signal.SIGINT else 0


def own_addresses(listen: Address) -> tuple[str, ...]:
    """Give the hosts this server believes it can be reached at; empty: as the tracker sees it."""
    if listen.is_loopback:
        return (listen.host,)
    return ()


def _wind_up(loop: Loop) -> None:
    """End what is served, and say so to client and tracker."""
    loop.core.shut_down("the device server ends")
    deadline = time.monotonic() + WIND_UP_S
    while not loop.core.is_idle and time.monotonic() < deadline:
        loop.turn()


class _Teller:
    """Says what becomes of the registration, each change once."""

    def __init__(self, say: Say, device: str, plan: Plan) -> None:
        self.say = say
        self.device = device
        self.plan = plan
        self.last = ("", "")

    def __call__(self, state: str, detail: str) -> None:
        """Say it, unless it was said last."""
        if (state, detail) == self.last:
            return
        self.last = (state, detail)
        where = str(self.plan.tracker)
        if state == "registered":
            text = f"registered with {where} as {self.plan.name!r} (id {self.device})"
            self.say(state, text, id=self.device, name=self.plan.name, tracker=where)
        elif state == "refused":
            self.say(state, f"{where} refused this device: {detail}", tracker=where, reason=detail)
        else:
            text = f"no connection to the tracker {where}: {detail}; trying again"
            self.say(state, text, tracker=where, reason=detail)
