"""Builds libraries ahead in a process of its own, while devices measure the ones before.

Jobs and answers are plain data. The process ignores Ctrl-C; its owner ends it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from farbench.errors import HostError, is_ours

JOIN_S = 2.0


@dataclass(frozen=True)
class Job:
    """One library to build: a workload of a named set, for a target."""

    set_name: str
    workload: str
    target: str


@dataclass(frozen=True)
class Built:
    """A library, and how long it took in seconds."""

    path: Path
    seconds: float


class BuildFailed(HostError):
    """A workload could not be built; the message is the compiler's."""


class Builder:
    """One building process; jobs are done in the order given."""

    def __init__(self, folder: Path, cores: tuple[int, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, str(folder), cores), name="farbench-builder", daemon=True
        )
        self._waiting: list[Future[Built]] = []
        self._lock = threading.Lock()
        self._process.start()
        theirs.close()
        self._reader = threading.Thread(target=self._read, name="farbench-builds", daemon=True)
        self._reader.start()

    def submit(self, job: Job) -> Future[Built]:
        """Ask for a library; BuildFailed is set where it cannot be built."""
        future: Future[Built] = Future()
        with self._lock:
            self._waiting.append(future)
            self._ours.send((job.set_name, job.workload, job.target))
        return future

    def close(self) -> None:
        """End the process, also in the middle of a job, and wait for it."""
        self._process.terminate()
        self._process.join(JOIN_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(JOIN_S)
        self._reader.join(JOIN_S)
        self._ours.close()

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _read(self) -> None:
        while True:
            try:
                path, seconds, failure = self._ours.recv()
            except (EOFError, OSError):
                break
            with self._lock:
                future = self._waiting.pop(0)
            if not future.set_running_or_notify_cancel():
                continue
            if failure:
                future.set_exception(BuildFailed(failure))
            else:
                future.set_result(Built(Path(path), seconds))
        with self._lock:
            left, self._waiting = self._waiting, []
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(BuildFailed("the building process ended"))


def _serve(jobs: Connection, folder: str, cores: tuple[int, ...]) -> None:
    """Build what is asked for until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    while True:
        try:
            set_name, workload, target = jobs.recv()
        except EOFError:
            return
        began = time.perf_counter()
        try:
            path, failure = _build(Path(folder), Job(set_name, workload, target)), ""
        except Exception as error:
            # It must reach the owner whatever it is: a future without an answer waits for ever.
            said = str(error) if is_ours(error) else f"{type(error).__name__}: {error}"
            path, failure = Path(), " ".join(said.split()) or type(error).__name__
        jobs.send((str(path), time.perf_counter() - began, failure))


def _build(folder: Path, job: Job) -> Path:
    from farbench.compiling import build
    from farbench.workloads import named_set
    from farbench_compiler.target import Target

    target = Target.parse(job.target)
    workload = next(w for w in named_set(job.set_name) if w.name == job.workload)
    schedule, args = workload.program(target)
    path = folder / f"{job.workload}-{target.arch}.so"
    build(schedule, args, target=target, name=job.workload).export_library(path)
    return path
