"""One session: its client, its worker, and the requests between them.

Requests are started in order and answered in order. A worker that dies costs the request it died
of; the next request gets a fresh one. Nothing here waits: what cannot go on is tried again when
something arrives or the clock has moved.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from farbench_device_runtime.exits import Exit, Intent, classify
from farbench_device_runtime.jobs import (
    WORKER_WAIT_S,
    CallJob,
    GetJob,
    Job,
    MeasureJob,
    Started,
    StartJob,
)
from farbench_device_runtime.output import last_line
from farbench_device_runtime.pipe import PipeClosed, PipeDamaged
from farbench_device_runtime.shared import House, Run, Waiting
from farbench_device_runtime.staging import Window
from farbench_device_runtime.timing_lock import TimingLock
from farbench_device_runtime.worker import Start
from farbench_rpc.errors import Cancelled, RpcError, by_code
from farbench_rpc.messages import Message
from farbench_rpc.server import Incoming, Peer
from farbench_rpc.transport.base import Frames

MAX_PENDING = 48
LOCK_POLL_S = 0.02
SLOT_POLL_S = 0.002
MUTE_S = 1.0
_IN_A_ROW = 64
# What reading the words of a process may end in that code of users has written over.
_UNREADABLE = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, MemoryError)


class Session:
    """Requests of one client, in order, to one worker at a time."""

    def __init__(self, house: House, peer: Peer, folder: Path, cpu_s: int) -> None:
        self.house = house
        self.peer: Peer | None = peer
        self.folder = folder
        self.cpu_s = cpu_s
        self.names: dict[str, str] = {}
        self.execution = -1
        self.closed = False
        self._run: Run | None = None
        self._waiting = Waiting()
        self._wanted_since = 0.0
        self._handles = 0
        self._lost = ""
        self._first_handle = 1
        self._unreported: RpcError | None = None
        self._lock = TimingLock(house.settings.lock_path)
        self._lock_since = 0.0
        self._lock_waited_s = 0.0
        folder.mkdir(mode=0o700, parents=True)
        self._ensure_worker()

    @property
    def chunk_bytes(self) -> int:
        """Give the payload of one transfer frame."""
        return self.house.settings.chunk_bytes

    @property
    def window_frames(self) -> int:
        """Count the transfer frames that may be under way."""
        return self.house.settings.window

    # --- what the core asks --------------------------------------------------------------------

    def new_handle(self) -> int:
        """Give a handle never used in this session."""
        self._handles += 1
        return self._handles

    def submit(self, job: Job) -> None:
        """Take a request; RpcError when there are too many, or to report an earlier end."""
        if self._unreported is not None:
            error, self._unreported = self._unreported, None
            raise error
        self._waiting.admit(job)
        self.pump()

    def credit(self, peer: Peer, request_id: int, frames: int) -> None:
        """Let a get send more frames."""
        for job in self._waiting:
            incoming = job.incoming
            if isinstance(job, GetJob) and incoming.request_id == request_id:
                if incoming.peer is peer and self._run is not None:
                    job.grant(max(0, min(frames, MAX_PENDING)))
                break
        self.pump()

    def detach(self) -> None:
        """Note that the client's connection ended: what it asked for and is not begun is dropped.

        A get that it would have to give credit for would hold up the next client for ever.
        """
        self.peer = None
        if self._run is not None and self._waiting and isinstance(self._waiting[0], GetJob):
            self._waiting[0].failed = True
            self._waiting[0].drop()
        self._waiting.clear()

    def pump(self) -> None:
        """Start what can be started."""
        while self._waiting and not self.closed:
            if self._run is None and not self._ensure_worker():
                return
            run = self._run
            if run is None or run.ending or len(run.pending) >= MAX_PENDING:
                return
            started = self._waiting[0].start(self)
            if started is Started.BLOCKED:
                return
            if started is Started.DONE:
                self._waiting.popleft()

    @property
    def is_calling(self) -> bool:
        """Tell whether the worker owes the answer to one call, and nothing else."""
        run = self._run
        return run is not None and len(run.pending) == 1 and type(run.pending[0]) is CallJob

    def pollable(self) -> int | None:
        """Give the worker's descriptor to poll; None while there is no worker to hear."""
        run = self._run
        return None if run is None or run.ending else run.worker.pipe.fileno()

    def next_wake(self, now: float) -> float:
        """Say in how many seconds `tick` must be called, at most a minute."""
        wake = 60.0
        run = self._run
        if run is not None and run.ending and run.intent is None:
            wake = run.since + MUTE_S - now
        elif run is not None and run.pending and not run.ending:
            wake = run.since + run.pending[0].limit_s - now
        elif run is None and self._waiting:
            wake = self._wanted_since + WORKER_WAIT_S - now
        if self._lock_since and not self._lock.held:
            wake = min(wake, LOCK_POLL_S)
        if self._waiting and run is not None and not run.window.free:
            wake = min(wake, SLOT_POLL_S)  # Who lets go of a lent slot says nothing.
        return max(0.0, min(wake, 60.0))

    def tick(self, now: float) -> None:
        """Watch the clock: the oldest request's limit, the wait for a worker or for the lock."""
        run = self._run
        if run is not None and run.ending and run.intent is None:
            if now >= run.since + MUTE_S:
                self._end_worker(Intent("damaged"), 0.0)
        elif run is not None and run.pending and not run.ending:
            job = run.pending[0]
            elapsed = now - run.since
            if elapsed >= job.limit_s:
                intent = Intent("timeout", job.limit_s, elapsed, job.phase)
                self._lost_worker(Exit(run.worker.pid, 0), intent)
                self._end_worker(intent, self.house.settings.term_grace_s)
        elif run is None and self._waiting and now - self._wanted_since > WORKER_WAIT_S:
            error = RpcError(f"no worker became ready within {WORKER_WAIT_S:g} s on the device")
            self._refuse_waiting(error)
        self.pump()

    def receive(self) -> None:
        """Take in what the worker says."""
        run = self._run
        # What floods this pipe must not keep the server from its other work.
        for _ in range(_IN_A_ROW):
            if run is None or run.ending:
                break
            try:
                message = run.worker.pipe.receive(block=False)
                if message is None:
                    break
                self._answered(run, message)
                if not run.pending:
                    break
            except PipeClosed:
                # The zygote tells how it ended, unless it only closed its end.
                run.ending = True
                run.since = self.house.clock()
            except (RpcError, *_UNREADABLE):
                # Code of users may have written over anything in its process.
                self._end_worker(Intent("damaged"), 0.0)
        self.pump()

    def ended(self, ended: Exit) -> bool:
        """Take in the end of a worker; False if it was not of this session."""
        run = self._run
        if run is None or run.worker.pid != ended.pid:
            return False
        if not self.closed:
            self._lost_worker(ended, run.intent)
        self._run = None
        run.close()
        self.house.sweeper.remove(run.folder)
        if not self.closed:
            self.house.supervisor.prepare()
            self.pump()
        return True

    def close(self, error: RpcError) -> None:
        """Refuse all requests with an error and end the worker; `is_over` tells when it is gone."""
        if self.closed:
            return
        if self._run is not None:
            for job in self._run.pending:
                self._fail(job, error)
            self._run.pending.clear()
        self._refuse_waiting(error)
        self.closed = True
        self.unlock_timing()
        if self._run is not None:
            self._end_worker(Intent("cancelled"), 0.0)

    @property
    def is_over(self) -> bool:
        """Tell whether it was closed and its worker's processes are gone."""
        return self.closed and self._run is None

    def abandon(self) -> None:
        """Let go of everything: the device ends, and its worker with it."""
        self.closed = True
        self.unlock_timing()
        if self._run is not None:
            self._run.close()
            self._run = None

    def wipe(self) -> None:
        """Remove the private directory."""
        self.house.sweeper.remove(self.folder)

    # --- what jobs ask (jobs.Bench) ------------------------------------------------------------

    @property
    def window(self) -> Window:
        """Give the window of the worker at work."""
        if self._run is None:
            raise Cancelled("the worker has ended")
        return self._run.window

    def ask(self, job: Job, message: Sequence[Any]) -> bool:
        """Send a message to the worker on behalf of a job; False when it would wait."""
        run = self._run
        if run is None or len(run.pending) >= MAX_PENDING:
            return False
        try:
            if not run.worker.pipe.send(message, block=False):
                return False
        except PipeClosed:
            return False  # Its end is on the way, and asked again after that.
        if not run.pending:
            run.since = self.house.clock()
        run.pending.append(job)
        return True

    def reply(self, to: Incoming, message: Message, frames: Frames = ()) -> None:
        """Answer the client."""
        self.house.endpoint.reply(to, message, frames)

    def event(self, of: Incoming, message: Message, frames: Frames = ()) -> None:
        """Send the client an event of its request."""
        self.house.endpoint.event(of, message, frames)

    def lock_timing(self, job: Job) -> bool:
        """Take the machine's timing lock; True also when waiting longer is in vain."""
        now = self.house.clock()
        self._lock_since = self._lock_since or now
        waited_s = now - self._lock_since
        if self._lock.acquire():
            self._lock_waited_s = waited_s
            return True
        self._lock_waited_s = -waited_s
        return waited_s >= self.house.settings.lock_wait_s

    def unlock_timing(self) -> float:
        """Give the lock back; gives how long it was waited for (s), negative: in vain."""
        waited_s, self._lock_waited_s = self._lock_waited_s, 0.0
        self._lock_since = 0.0
        self._lock.release()
        return waited_s

    # --- the worker ----------------------------------------------------------------------------

    def _ensure_worker(self) -> bool:
        """Take the warm worker and start it; False when none is ready yet."""
        house, settings = self.house, self.house.settings
        if not self._wanted_since:
            self._wanted_since = house.clock()
        memory_limit = house.memory_limit()
        worker = house.supervisor.take(memory_limit)
        if worker is None:
            house.supervisor.prepare()
            return False
        self.execution += 1
        self._wanted_since = 0.0
        try:
            # A directory for each worker: what one left there must not hinder the next.
            folder = self.folder / str(self.execution)
            folder.mkdir(mode=0o700, parents=True)
            window = Window.create(settings.window, settings.chunk_bytes)
        except OSError as cause:
            worker.pipe.close()
            house.supervisor.end(worker.pid, 0.0)
            self._refuse_waiting(RpcError(f"no worker can be started here: {cause.strerror}"))
            return False
        run = self._run = Run(worker, window, folder, since=house.clock())
        start = Start(
            str(run.folder),
            settings.window,
            settings.chunk_bytes,
            self._first_handle,
            self._lost,
            (house.machine.arch, house.machine.features, house.machine.glibc),
            memory_limit,
            settings.file_limit,
            self.cpu_s,
            settings.cores,
            settings.emulated,
        )
        with contextlib.suppress(PipeClosed):  # Its end is told by the zygote, too.
            worker.pipe.send(["start", asdict(start)], [window.fd])
        self._run.pending.append(StartJob())
        return True

    def _end_worker(self, intent: Intent, grace_s: float) -> None:
        run = self._run
        if run is not None:
            run.intent = run.intent or intent
            run.ending = True
            self.house.supervisor.end(run.worker.pid, grace_s)

    def _answered(self, run: Run, message: list[Any]) -> None:
        kind, *values = message
        if not run.pending:
            raise PipeDamaged("an answer to nothing")
        job = run.pending[0]
        if kind not in ("ok", "error"):
            job.event(self, message)
            return
        if kind == "ok" and not job.failed:
            job.finish(self, values)
        else:
            job.settle(self)
            if not job.failed:
                code, text, detail = values
                self._fail(job, by_code(str(code))(str(text), dict(detail)))
        run.pending.popleft()
        run.since = self.house.clock()

    def _lost_worker(self, ended: Exit, intent: Intent | None) -> None:
        """Tell the requests under way that their worker is gone, the first one why."""
        run = self._run
        if run is None:
            return
        job = run.pending[0] if run.pending else None
        if job is None and intent is not None:
            return  # Told already.
        error = classify(ended, job.what if job is not None else "", intent)
        printed = last_line(run.folder)
        if printed:
            error.detail["output"] = printed
        self._lost = f"{type(error).__name__}: {error.message}"[:300]
        self._first_handle = self._handles + 1
        if job is None or isinstance(job, StartJob):
            self._unreported = error
        else:
            self._fail(job, error)
        gone = Cancelled(f"the worker ended before this ran ({error.message})", error.detail)
        if self._waiting and self._waiting[0].begun:
            self._fail(self._waiting[0], gone)  # What it has begun lies in the old window.
        for later in list(run.pending)[1:]:
            self._fail(later, gone)
        run.pending.clear()
        self.unlock_timing()

    def _fail(self, job: Job, error: RpcError) -> None:
        """Refuse a request, once."""
        if isinstance(job, MeasureJob):
            self.unlock_timing()
        if self._waiting and self._waiting[0] is job:
            self._waiting.popleft()
        if not job.failed and not isinstance(job, StartJob):
            job.failed = True
            self.house.endpoint.error(job.incoming, error)

    def _refuse_waiting(self, error: RpcError) -> None:
        while self._waiting:
            self._fail(self._waiting[0], error)
