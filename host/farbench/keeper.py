"""The keeper: renews the leases of one tracker connection, in the one thread that it owns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from farbench.lease import Lease
from farbench_rpc.errors import RpcError
from farbench_rpc.messages import LeaseRenew, LeaseRenewed

JOIN_S = 2.0

Renew = Callable[[LeaseRenew, float], LeaseRenewed]


class Keeper:
    """Renews every lease it holds each `renew_s`, and tells a lease why it ended.

    `renew` asks the tracker, within a limit in seconds. The thread starts with the first lease
    and ends at `close`, or a moment after `abandon`.
    """

    def __init__(self, renew: Renew, renew_s: float, ttl_s: float) -> None:
        self._renew = renew
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

    def round(self, now: Callable[[], float] = time.monotonic) -> None:
        """Renew everything once; leases that ended, or were not renewed within the TTL, end."""
        leases = self.held()
        if not leases:
            return
        try:
            answer = self._renew(LeaseRenew(tuple(lease.id for lease in leases)), self._renew_s)
        except RpcError as error:
            for lease in leases:
                self._unheard(lease, error, now())
            return
        for lease in leases:
            if lease.id in answer.ended:
                self._end(lease, answer.ended[lease.id])
            elif lease.id in answer.alive:
                with self._lock:
                    if lease.id in self._held:
                        self._heard_at[lease.id] = now()

    def _run(self) -> None:
        while not self._stop.wait(self._renew_s) and not self._abandoned:
            self.round()

    def _unheard(self, lease: Lease, error: RpcError, now: float) -> None:
        silent_s = now - self._heard_at.get(lease.id, now)
        if silent_s > self._ttl_s:
            self._end(lease, f"the tracker was not reached for {silent_s:.1f} s ({error.message})")

    def _end(self, lease: Lease, reason: str) -> None:
        self.drop(lease)
        lease.end(reason)
