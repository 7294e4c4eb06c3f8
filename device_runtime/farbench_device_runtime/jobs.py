"""What a session has its worker do: one job a request, started in order, answered in order.

A job says how to ask the worker (`start`), what its answer means for the client (`finish`), what to
call it when the worker dies of it (`what`), and how long it may take.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from farbench_device_runtime.staging import Window
from farbench_rpc.errors import InvalidArgument, Value
from farbench_rpc.limits import INT64_MAX
from farbench_rpc.messages import (
    Called,
    CallEntry,
    GetChunk,
    Measure,
    Measured,
    Message,
    Ok,
    Samples,
)
from farbench_rpc.server import Incoming
from farbench_rpc.transport.base import Frames

PLAIN_TIMEOUT_S = 60.0
WORKER_WAIT_S = 30.0
MAX_TIMEOUT_S = 7 * 24 * 3600.0
MAX_ARMS = 64
"""Arms of one measurement: what is told of each must fit one answer."""


class Started(enum.Enum):
    """What became of the attempt to start a job."""

    DONE = "done"  # all of it was sent to the worker
    PART = "part"  # some was sent; call again
    BLOCKED = "blocked"  # not now: no slot, no credit, no lock


class Bench(Protocol):
    """What a job works with: the worker's pipe and window, and the way back to the client."""

    @property
    def window(self) -> Window:
        """Give the staging window of the worker."""

    @property
    def execution(self) -> int:
        """Count the workers of this session before this one."""

    def ask(self, job: Job, message: Sequence[Any]) -> bool:
        """Send a message to the worker on behalf of a job; False when it would wait."""

    def reply(self, to: Incoming, message: Message, frames: Frames = ()) -> None:
        """Answer the client."""

    def event(self, of: Incoming, message: Message, frames: Frames = ()) -> None:
        """Send the client an event of its request."""

    def lock_timing(self, job: Job) -> bool:
        """Take the machine's timing lock, or give up waiting for it; False: wait on."""

    def unlock_timing(self) -> float:
        """Give the timing lock back; gives how long it was waited for (s), negative: in vain."""


def check_timeout(timeout_s: float) -> float:
    """Refuse a limit that is no limit."""
    if not 0 < timeout_s <= MAX_TIMEOUT_S or math.isnan(timeout_s):
        raise InvalidArgument(f"timeout_s must be above 0 and finite, got {timeout_s}")
    return timeout_s


def _whole(value: object) -> int:
    """Read a count of a worker, whose process code of users may have written over."""
    if type(value) is not int or not 0 <= value <= INT64_MAX:
        raise ValueError("a worker's count is not a whole number")
    return value


def _raw(value: object) -> bytes:
    """Read bytes of a worker; a number would be made that many bytes."""
    if type(value) is not bytes:
        raise ValueError("a worker's data are not bytes")
    return value


class Job:
    """A request that the worker answers with one message: `reply` goes to the client then."""

    phase = "run"
    nbytes = 0
    """Bytes that it holds while it waits."""

    def __init__(
        self,
        incoming: Incoming,
        request: Sequence[Any],
        what: str,
        reply: Message | None = None,
        limit_s: float = PLAIN_TIMEOUT_S,
    ) -> None:
        self.incoming = incoming
        self.request = request
        self.what = what
        self.limit_s = limit_s
        self.answer = reply
        self.failed = False

    @property
    def begun(self) -> bool:
        """Tell whether part of it lies in the worker's window already."""
        return False

    def start(self, bench: Bench) -> Started:
        """Send the request to the worker."""
        return Started.DONE if bench.ask(self, self.request) else Started.BLOCKED

    def event(self, bench: Bench, message: Sequence[Any]) -> None:
        """Take in what the worker says before its answer."""
        raise ValueError(f"unexpected {message[0]!r} of the worker")

    def finish(self, bench: Bench, values: Sequence[Any]) -> None:
        """Tell the client that it is done."""
        if self.answer is not None:
            bench.reply(self.incoming, self.answer)

    def settle(self, bench: Bench) -> None:
        """Give back what the oldest answer frees, when `finish` is not called for it."""


class StartJob(Job):
    """The start of a worker: no client waits for it."""

    phase = "start"

    def __init__(self) -> None:
        self.what = "start of a worker"
        self.limit_s = WORKER_WAIT_S
        self.answer = None
        self.failed = False


class CallJob(Job):
    """A call of an entry."""

    def __init__(self, incoming: Incoming, message: CallEntry) -> None:
        request = ["call", message.module, message.entry, message.args, message.threads]
        what = f"call of {message.entry}"
        super().__init__(incoming, request, what, limit_s=check_timeout(message.timeout_s))

    def finish(self, bench: Bench, values: Sequence[Any]) -> None:
        """Tell the client how long it ran."""
        bench.reply(self.incoming, Called(_whole(values[0])))


class LoadJob(Job):
    """A load of a library; its manifest goes to the client as a frame."""

    phase = "load"

    def finish(self, bench: Bench, values: Sequence[Any]) -> None:
        """Tell the client the handle, and send what the library says of itself."""
        if self.answer is not None:
            bench.reply(self.incoming, self.answer, [_raw(values[0])])


class PutJob(Job):
    """Bytes for an array, through a slot of the window."""

    def __init__(
        self, incoming: Incoming, array: int, offset: int, data: memoryview, last: bool
    ) -> None:
        super().__init__(incoming, (), f"put into array {array}", Ok() if last else None)
        self.target = (array, offset, len(data))
        self.data: memoryview | None = data
        self.nbytes = len(data)
        self.slot: int | None = None

    @property
    def begun(self) -> bool:
        """Tell whether its bytes lie in a slot."""
        return self.slot is not None

    def start(self, bench: Bench) -> Started:
        """Copy the bytes into a slot and have the worker fetch them."""
        window = bench.window
        if self.slot is None:
            self.slot = window.take()
            if self.slot is None or self.data is None:
                return Started.BLOCKED
            window.slot(self.slot, len(self.data))[:] = self.data
            self.data = None
        sent = bench.ask(self, ["put", *self.target, self.slot])
        return Started.DONE if sent else Started.BLOCKED

    def finish(self, bench: Bench, values: Sequence[Any]) -> None:
        """Give the slot back, and answer the last one."""
        self.settle(bench)
        super().finish(bench, values)

    def settle(self, bench: Bench) -> None:
        """Give the slot back."""
        if self.slot is not None:
            bench.window.give(self.slot)
            self.slot = None


class GetJob(Job):
    """Bytes of an array, slot by slot, as the client's credit allows."""

    def __init__(
        self, incoming: Incoming, span: tuple[int, int, int], chunk_bytes: int, credit: int
    ) -> None:
        self.array, self.offset, nbytes = span
        if self.offset < 0 or nbytes < 0:
            raise InvalidArgument("offset and nbytes must not be negative")
        super().__init__(incoming, (), f"get of array {self.array}")
        self.end = self.offset + nbytes
        self.chunk_bytes = chunk_bytes
        self.credit = credit
        self.asked = False
        self.flying: list[tuple[int, int, int]] = []

    @property
    def begun(self) -> bool:
        """Tell whether the worker was asked for some of it."""
        return self.asked

    def start(self, bench: Bench) -> Started:
        """Have the worker fill one more slot."""
        left = self.end - self.offset
        if left == 0 and self.asked:
            return Started.DONE
        window = bench.window
        if self.credit < 1 and left:
            return Started.BLOCKED
        slot = window.take()
        if slot is None:
            return Started.BLOCKED
        nbytes = min(left, self.chunk_bytes)
        if not bench.ask(self, ["get", self.array, self.offset, nbytes, slot]):
            window.give(slot)
            return Started.BLOCKED
        self.flying.append((self.offset, nbytes, slot))
        self.asked = True
        self.offset += nbytes
        self.credit -= 1
        return Started.DONE if self.offset == self.end else Started.PART

    def finish(self, bench: Bench, values: Sequence[Any]) -> None:
        """Send the oldest slot on; after the last one, say that it is all."""
        offset, nbytes, slot = self.flying.pop(0)
        data = bench.window.lend(slot, nbytes)
        if nbytes:
            bench.event(self.incoming, GetChunk(offset), [data])
        if self.offset == self.end and not self.flying:
            bench.reply(self.incoming, Ok())

    def grant(self, frames: int) -> None:
        """Take credit for more frames."""
        self.credit += frames

    def settle(self, bench: Bench) -> None:
        """Give the oldest slot back, and ask for no more."""
        bench.window.give(self.flying.pop(0)[2])
        self.drop()

    def drop(self) -> None:
        """Ask for no more: nobody waits for it."""
        self.end = self.offset


class MeasureJob(Job):
    """A measurement: alone on the machine, its samples streamed."""

    def __init__(self, incoming: Incoming, message: Measure) -> None:
        if not 0 < len(message.arms) <= MAX_ARMS:
            raise InvalidArgument(
                f"a measurement has 1 to {MAX_ARMS} arms, this one has {len(message.arms)}"
            )
        fields = {
            "arms": [[arm.module, arm.entry, arm.args] for arm in message.arms],
            "stop": asdict(message.stop),
            "order": message.order,
            "mode": message.mode,
            "cache": message.cache,
            "timer": message.timer,
            "timeout_s": check_timeout(message.timeout_s),
            "threads": message.threads,
        }
        self.entries = [arm.entry for arm in message.arms]
        what = f"measurement of {', '.join(self.entries[:4])}"
        super().__init__(incoming, ["measure", fields], what, limit_s=message.timeout_s)

    def start(self, bench: Bench) -> Started:
        """Ask the worker once the machine is ours."""
        if not bench.lock_timing(self):
            return Started.BLOCKED
        return super().start(bench)

    def event(self, bench: Bench, message: Sequence[Any]) -> None:
        """Pass samples on; note where the measurement is."""
        if message[0] == "samples":
            arm, k, data = _whole(message[1]), _whole(message[2]), _raw(message[3])
            samples = Samples(arm, bench.execution, k, len(data) // 8)
            bench.event(self.incoming, samples, [data])
        elif message[0] == "phase":
            self.phase = str(message[1])
            self.what = f"measurement of {self.entries[_whole(message[2])]}"
        else:
            super().event(bench, message)

    def finish(self, bench: Bench, values: Sequence[Any]) -> None:
        """Tell the facts and what disturbed."""
        waited_s = bench.unlock_timing()
        facts: dict[str, Value] = dict(values[0])
        facts["lock_wait_s"] = abs(waited_s)
        flags = {*map(str, values[1]), *(("shared_machine",) if waited_s < 0 else ())}
        bench.reply(self.incoming, Measured(facts, tuple(sorted(flags))))

    def settle(self, bench: Bench) -> None:
        """Give the machine back."""
        bench.unlock_timing()
