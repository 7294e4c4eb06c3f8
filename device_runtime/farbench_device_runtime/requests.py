"""What a client may ask of its session: each message as an answer, or as a job of the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farbench_device_runtime.jobs import CallJob, GetJob, Job, LoadJob, MeasureJob, PutJob
from farbench_device_runtime.session import Session
from farbench_device_runtime.store import Store
from farbench_rpc.errors import InvalidArgument, NotFound
from farbench_rpc.messages import (
    Alloc,
    Allocated,
    CallEntry,
    Credit,
    Fill,
    Free,
    Get,
    Load,
    Loaded,
    Measure,
    Message,
    Ok,
    Put,
    Upload,
    UploadChunk,
    UploadEnd,
    UploadWanted,
)
from farbench_rpc.server import Incoming

MAX_NAME = 255


class Requests:
    """The verbs of a session, by class of message; `held` are the files it keeps in the store."""

    def __init__(self, session: Session, store: Store, load_timeout_s: float) -> None:
        self.session = session
        self.store = store
        self.load_timeout_s = load_timeout_s
        self.held: list[str] = []
        self._verbs: dict[type[Message], Callable[[Incoming, Any], None]] = {
            CallEntry: self._call,
            Put: self._put,
            Get: self._get,
            Credit: self._credit,
            Alloc: self._alloc,
            Free: self._free,
            Fill: self._fill,
            Load: self._load,
            Measure: self._measure,
            Upload: self._upload,
            UploadChunk: self._chunk,
            UploadEnd: self._upload_end,
        }

    def handle(self, incoming: Incoming) -> bool:
        """Serve a message; False if it is none of a session's; RpcError to be told the client."""
        verb = self._verbs.get(type(incoming.message))
        if verb is None:
            return False
        verb(incoming, incoming.message)
        return True

    def release(self) -> None:
        """Let go of the files in the store."""
        held, self.held = self.held, []
        self.store.release(held)

    def _call(self, incoming: Incoming, message: CallEntry) -> None:
        self.session.submit(CallJob(incoming, message))

    def _measure(self, incoming: Incoming, message: Measure) -> None:
        self.session.submit(MeasureJob(incoming, message))

    def _put(self, incoming: Incoming, message: Put) -> None:
        data = memoryview(_frame(incoming)).cast("B")
        if len(data) > self.session.chunk_bytes:
            raise InvalidArgument(f"a frame holds {self.session.chunk_bytes} bytes at most")
        job = PutJob(incoming, message.array, message.offset, data, message.last)
        self.session.submit(job)

    def _get(self, incoming: Incoming, message: Get) -> None:
        span = (message.array, message.offset, message.nbytes)
        window = self.session.window_frames
        self.session.submit(GetJob(incoming, span, self.session.chunk_bytes, window))

    def _credit(self, incoming: Incoming, message: Credit) -> None:
        self.session.credit(incoming.peer, message.request, message.frames)

    def _alloc(self, incoming: Incoming, message: Alloc) -> None:
        handle = self.session.new_handle()
        request = ["alloc", handle, message.dtype, message.shape]
        self.session.submit(Job(incoming, request, "alloc of an array", Allocated(handle)))

    def _free(self, incoming: Incoming, message: Free) -> None:
        self.session.submit(Job(incoming, ["free", message.arrays], "free of arrays", Ok()))

    def _fill(self, incoming: Incoming, message: Fill) -> None:
        fields = (message.array, message.seed, message.kind, message.low, message.high)
        what = f"fill of array {message.array}"
        self.session.submit(Job(incoming, ["fill", *fields], what, Ok()))

    def _load(self, incoming: Incoming, message: Load) -> None:
        digest = self.session.names.get(message.name)
        if digest is None:
            raise NotFound(f"no file {message.name!r} in this session; upload it first")
        handle = self.session.new_handle()
        request = ["load", handle, self.store.path(digest)]
        what = f"load of {message.name!r}"
        self.session.submit(LoadJob(incoming, request, what, Loaded(handle), self.load_timeout_s))

    def _upload(self, incoming: Incoming, message: Upload) -> None:
        if not 0 < len(message.name) <= MAX_NAME or "\0" in message.name:
            raise InvalidArgument(f"a name has 1 to {MAX_NAME} characters")
        missing = self.store.announce(message.sha256, message.nbytes, message.instead)
        # The name is a label of this session; where the file lies follows from its digest alone.
        self.session.names[message.name] = message.sha256
        if not missing:
            self._hold(message.sha256)
        self.session.reply(incoming, UploadWanted(missing))

    def _chunk(self, incoming: Incoming, message: UploadChunk) -> None:
        self.store.write(message.sha256, message.index, _frame(incoming))

    def _upload_end(self, incoming: Incoming, message: UploadEnd) -> None:
        missing = self.store.finish(message.sha256)
        if missing:
            self.session.reply(incoming, UploadWanted(missing))
            return
        self._hold(message.sha256)
        self.store.trim()
        self.session.reply(incoming, Ok())

    def _hold(self, digest: str) -> None:
        if digest not in self.held:
            self.store.hold(digest)
            self.held.append(digest)


def _frame(incoming: Incoming) -> memoryview:
    if len(incoming.frames) != 1:
        raise InvalidArgument(f"{incoming.message.KIND} has one frame, got {len(incoming.frames)}")
    return memoryview(incoming.frames[0])
