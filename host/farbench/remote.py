"""A library loaded in a session's worker: calls and timings go over the session."""

from __future__ import annotations

import sys
import time
from array import array as int_array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from farbench import arguments, nd
from farbench.arguments import CallArgument, Number, Numpy
from farbench.assembly import assemble
from farbench.callables import LoadedModule, OnSample
from farbench.counts import Counts, thread_count
from farbench.devices import Device
from farbench.errors import UsageError
from farbench.nd import DeviceArray, HostArray, NDArray
from farbench.result import Sample, Spent, TimingResult
from farbench_rpc import messages as m
from farbench_rpc.client import Reply
from farbench_rpc.errors import RpcError
from farbench_rpc.manifest import Entry, Manifest, bind, to_wire
from farbench_rpc.transport.base import Buffer, size_of

if TYPE_CHECKING:
    from farbench.session import Session

ANSWER_MARGIN_S = 10.0  # on top of a deadline that the device itself keeps
CALLS_KEPT = 256
THREADS_SINCE = 1  # the minor version of the wire that has them


class Placed:
    """Arguments placed on the device: handles and numbers, and what must come back."""

    def __init__(self, session: Session, entry: Entry, args: Sequence[CallArgument]) -> None:
        self.given = arguments.normal(entry, args)
        bind(entry, [arguments.facts(arg) for arg in self.given])
        arguments.must_lie_apart(entry, self.given)
        self.values: list[int | float] = []
        self._returns: list[tuple[HostArray | Numpy, DeviceArray]] = []
        self._kept: list[DeviceArray] = []
        for index, arg in enumerate(self.given):
            self.values.append(self._place(session, entry, index, arg))

    def _place(
        self, session: Session, entry: Entry, index: int, arg: NDArray | Numpy | Number
    ) -> int | float:
        if isinstance(arg, DeviceArray):
            return arguments.must_live_on(arg, session).handle
        if isinstance(arg, NDArray):
            if not isinstance(arg, HostArray):
                arguments.must_live_on(arg, session)
        elif not isinstance(arg, np.ndarray):
            return to_wire(arg, entry.args[index].dtype)  # the binding has checked the range
        # Plain memory of this process travels there, and back where the entry writes to it.
        copy = nd.array(arg, session.cpu())
        placed = arguments.must_live_on(copy, session)
        self._kept.append(placed)
        if arguments.is_writable(entry, index) and isinstance(arg, (HostArray, np.ndarray)):
            self._returns.append((arg, placed))
        return placed.handle

    def bring_back(self) -> None:
        """Copy outputs into the caller's own arrays."""
        for target, placed in self._returns:
            values = placed.numpy()
            if isinstance(target, HostArray):
                target.copyfrom(values)
            else:
                target[...] = values


class RemoteModule(LoadedModule):
    """A library in the worker of `session`, uploaded as `name`."""

    def __init__(self, session: Session, name: str, handle: int, manifest: Manifest) -> None:
        super().__init__(manifest)
        self.session = session
        self.name = name
        self.handle = handle
        self._known: dict[tuple[object, ...], m.CallEntry] = {}

    @property
    def device(self) -> Device:
        """The session's memory."""
        return self.session.cpu()

    def call(
        self, entry: Entry, args: tuple[CallArgument, ...], timeout_s: float, threads: int
    ) -> None:
        """Run an entry once on the device; typed errors say how a kernel ended badly."""
        key = self._key(entry, args, timeout_s, threads)
        known = self._known.get(key) if key is not None else None
        if known is not None:
            self.session.ask(known, timeout_s=timeout_s + ANSWER_MARGIN_S)
            return
        self._can_choose(threads)
        placed = Placed(self.session, entry, args)
        request = m.CallEntry(self.handle, entry.name, tuple(placed.values), timeout_s, threads)
        self.session.ask(request, timeout_s=timeout_s + ANSWER_MARGIN_S)
        placed.bring_back()
        if key is not None:
            if len(self._known) >= CALLS_KEPT:
                self._known.clear()
            self._known[key] = request

    def _key(
        self, entry: Entry, args: tuple[CallArgument, ...], timeout_s: float, threads: int
    ) -> tuple[object, ...] | None:
        """Name a call whose check would come out the same again; None if it must be made anew.

        A handle is never given twice in a session, and its shape and dtype never change.
        """
        words: list[object] = [entry.name, timeout_s, threads]
        for arg in args:
            kind = type(arg)
            if isinstance(arg, DeviceArray) and arg.session is self.session:
                words.append(arg.handle)
            elif kind is int or kind is float:
                words.append((kind, arg))
            else:
                return None
        return tuple(words)

    def measure(
        self, entry: Entry, args: tuple[CallArgument, ...], counts: Counts, on_sample: OnSample
    ) -> TimingResult:
        """Time an entry on the device; samples come while it runs."""
        threads = thread_count(counts.threads)
        self._can_choose(threads)
        placed = Placed(self.session, entry, args)
        samples: list[Sample] = []

        def take(event: Reply) -> None:
            if isinstance(event.message, m.Samples):
                for sample in read_samples(event.message, event.frames):
                    samples.append(sample)
                    if on_sample is not None:
                        on_sample(sample)

        began = time.perf_counter()
        arm = m.Arm(self.handle, entry.name, tuple(placed.values))
        request = m.Measure(
            (arm,), counts.stop_rule(), cache=counts.cache, timeout_s=counts.timeout_s,
            threads=threads,
        )  # fmt: skip
        reply = self.session.ask(request, (), counts.timeout_s + ANSWER_MARGIN_S, take)
        took_s = time.perf_counter() - began
        if not isinstance(reply.message, m.Measured):
            raise RpcError(f"{self.session.name} answered Measure with {reply.message.KIND!r}")
        placed.bring_back()
        done = reply.message
        spent = Spent(
            device_s=sum(sample.total_ns for sample in samples) / 1e9,
            end_to_end_s=took_s,
            transfer_s=self.session.transfer_s,
            queued_s=self.session.queued_s,
        )
        name = self.session.name
        return assemble(
            entry, name, placed.given, counts.cache, samples, done.facts, done.flags, spent
        )

    def _can_choose(self, threads: int) -> None:
        if threads and self.session.minor < THREADS_SINCE:
            raise UsageError(
                f"farbench on {self.session.name} is too old to choose threads for a call; "
                "update it, or leave threads out"
            )

    def __repr__(self) -> str:
        return f"<RemoteModule {self.name} on {self.session.name}: {', '.join(self.entries)}>"


def read_samples(message: m.Samples, frames: Sequence[Buffer]) -> list[Sample]:
    """Read the int64 little-endian totals behind a Samples event."""
    totals = int_array("q")
    if len(frames) != 1 or size_of(frames[0]) != message.count * totals.itemsize or message.k < 1:
        raise RpcError("a Samples event came with a frame that does not fit its count")
    totals.frombytes(bytes(frames[0]))
    if sys.byteorder == "big":
        totals.byteswap()
    return [Sample(total, message.k, message.execution) for total in totals]
