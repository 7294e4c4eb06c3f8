"""The keeper: renews the leases of one tracker connection, in the one thread that it owns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from farbench.lease import Lease
from farbench.session import Wire
from farbench_rpc.errors import RpcError
from farbench_rpc.messages import LeaseRenew, LeaseRenewed

JOIN_S = 2.0


class Keeper:
    """Renews every lease it holds each `renew_s`, and notes why one ended.

    The thread starts with the first lease and has a connection of its own, so that a request that
    waits does not hold renewals up. It ends at `close`, or a moment after `abandon`.
    """

    def __init__(self, connect: Callable[[], Wire], renew_s: float, ttl_s: float) -> None:
        self._connect = connect
        self._renew_s = renew_s
        self._ttl_s = ttl_s
        self._held: dict[str, Lease] = {}
        self._heard_at: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._abandoned = False
        self._thread: threading.Thread | None = None

    def hold(self, lease: Lease) -> None:
        """Renew this lease from now on."""
        with self._lock:
            self._held[lease.id] = lease
            self._heard_at[lease.id] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="farbench-keeper", daemon=True
                )
                self._thread.start()

    def drop(self, lease: Lease) -> None:
        """Renew this lease no longer."""
        with self._lock:
            self._held.pop(lease.id, None)
            self._heard_at.pop(lease.id, None)

    def held(self) -> tuple[Lease, ...]:
        """List the leases that are renewed."""
        with self._lock:
            return tuple(self._held.values())

    def abandon(self) -> None:
        """Let the thread end by itself; takes no lock, so that a finaliser may call it."""
        self._abandoned = True

    def close(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        wire: Wire | None = None
        try:
            while not self._stop.wait(self._renew_s) and not self._abandoned:
                wire = self._round(wire)
        finally:
            if wire is not None:
                wire.close()

    def _round(self, wire: Wire | None) -> Wire | None:
        """Renew once; gives the connection to use next time (None: make a new one)."""
        leases = self.held()
        if not leases:
            return wire
        try:
            if wire is None:
                wire = self._connect()
            asked = LeaseRenew(tuple(lease.id for lease in leases))
            answer = wire.ask(asked, (), self._renew_s, None).message
        except RpcError as error:
            if wire is not None:
                wire.close()
            self._unheard(leases, str(error), time.monotonic())
            return None
        if isinstance(answer, LeaseRenewed):
            self._heard(leases, answer, time.monotonic())
        return wire

    def _heard(self, leases: tuple[Lease, ...], answer: LeaseRenewed, now: float) -> None:
        for lease in leases:
            if lease.id in answer.ended:
                self._end(lease, answer.ended[lease.id])
            elif lease.id in answer.alive:
                with self._lock:
                    if lease.id in self._held:
                        self._heard_at[lease.id] = now

    def _unheard(self, leases: tuple[Lease, ...], why: str, now: float) -> None:
        for lease in leases:
            silent_s = now - self._heard_at.get(lease.id, now)
            if silent_s > self._ttl_s:
                self._end(lease, f"the tracker was not reached for {silent_s:.1f} s ({why})")

    def _end(self, lease: Lease, reason: str) -> None:
        lease.ended = reason or "the tracker gave no reason"
        self.drop(lease)
