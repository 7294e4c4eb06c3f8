"""Transfers against a small device of this test: what travels, resumes, and fails."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from farbench_rpc import transfer
from farbench_rpc.chunks import HeldChunks
from farbench_rpc.errors import (
    InvalidArgument,
    NotFound,
    ProtocolError,
    QuotaExceeded,
    RemoteTimeout,
)
from farbench_rpc.messages import (
    Credit,
    Get,
    GetChunk,
    Ok,
    Put,
    Upload,
    UploadChunk,
    UploadEnd,
    UploadWanted,
)
from farbench_rpc.server import Endpoint, Incoming
from farbench_rpc.source import Hashing
from farbench_rpc.transfer import get, put, upload
from tests.rpc.conftest import Serve

CHUNK = 1000
WINDOW = 4


class Device:
    """Holds files by digest and one array; counts what is under way."""

    def __init__(self, array_bytes: int = 0, quota: int = 1 << 30) -> None:
        self.array = bytearray(array_bytes)
        self.files: dict[str, bytes] = {}
        self.quota = quota
        self.ranges_a_time = 512
        self.lose = 0
        self.passing = 0
        self.chunks_seen: list[int] = []
        self.most_unanswered = 0
        self._partial: dict[str, tuple[bytearray, HeldChunks]] = {}
        self._gets: dict[int, list[int]] = {}
        self._unanswered = 0

    def __call__(self, endpoint: Endpoint, incoming: Incoming) -> None:
        handlers: dict[type, Callable[[Endpoint, Incoming], None]] = {
            Upload: self._upload,
            UploadChunk: self._chunk,
            UploadEnd: self._end,
            Put: self._put,
            Get: self._get,
            Credit: self._credit,
        }
        handlers[type(incoming.message)](endpoint, incoming)

    def _upload(self, endpoint: Endpoint, incoming: Incoming) -> None:
        message = incoming.message
        assert isinstance(message, Upload)
        if message.nbytes > self.quota:
            raise QuotaExceeded("too large", {"limit": self.quota})
        passing = self._partial.pop(message.instead, None)
        self.passing += message.sha256 not in self.files and passing is not None
        if message.sha256 in self.files:
            endpoint.reply(incoming, UploadWanted(()))
            return
        if passing is not None:
            self._partial.setdefault(message.sha256, passing)
        fresh = (bytearray(message.nbytes), HeldChunks(message.nbytes, CHUNK))
        _, held = self._partial.setdefault(message.sha256, fresh)
        if held.complete:
            self._finish(message.sha256)
        endpoint.reply(incoming, UploadWanted(held.missing(self.ranges_a_time)))

    def _chunk(self, endpoint: Endpoint, incoming: Incoming) -> None:
        message = incoming.message
        assert isinstance(message, UploadChunk)
        data, held = self._partial[message.sha256]
        self.chunks_seen.append(message.index)
        if self.lose == len(self.chunks_seen):
            raise QuotaExceeded("disk full")
        start, stop = held.cut.span(message.index)
        data[start:stop] = incoming.frames[0]
        held.add(message.index)

    def _end(self, endpoint: Endpoint, incoming: Incoming) -> None:
        message = incoming.message
        assert isinstance(message, UploadEnd)
        data, held = self._partial[message.sha256]
        if not held.complete:
            endpoint.reply(incoming, UploadWanted(held.missing(self.ranges_a_time)))
            return
        self._finish(message.sha256)
        endpoint.reply(incoming, Ok())

    def _finish(self, sha256: str) -> None:
        data, _ = self._partial.pop(sha256)
        assert hashlib.sha256(data).hexdigest() == sha256
        self.files[sha256] = bytes(data)

    def _put(self, endpoint: Endpoint, incoming: Incoming) -> None:
        message = incoming.message
        assert isinstance(message, Put)
        if message.array != 1:
            raise NotFound("no such array")
        frame = incoming.frames[0]
        self.array[message.offset : message.offset + len(frame)] = frame
        self._unanswered += 1
        self.most_unanswered = max(self.most_unanswered, self._unanswered)
        if message.last:
            self._unanswered = 0
            endpoint.reply(incoming, Ok())

    def _get(self, endpoint: Endpoint, incoming: Incoming) -> None:
        message = incoming.message
        assert isinstance(message, Get)
        self._gets[incoming.request_id] = [message.offset, message.offset + message.nbytes, WINDOW]
        self._pump(endpoint, incoming, incoming.request_id)

    def _credit(self, endpoint: Endpoint, incoming: Incoming) -> None:
        message = incoming.message
        assert isinstance(message, Credit)
        if message.request in self._gets:
            self._gets[message.request][2] += message.frames
            assert self._gets[message.request][2] <= WINDOW
            self._pump(endpoint, incoming, message.request)

    def _pump(self, endpoint: Endpoint, incoming: Incoming, request: int) -> None:
        state = self._gets[request]
        of = incoming._replace(request_id=request)
        while state[0] < state[1] and state[2]:
            stop = min(state[0] + CHUNK, state[1])
            endpoint.event(of, GetChunk(state[0]), [bytes(self.array[state[0] : stop])])
            state[0] = stop
            state[2] -= 1
        if state[0] == state[1]:
            del self._gets[request]
            endpoint.reply(of, Ok())


def pattern(nbytes: int) -> bytes:
    """Give bytes that are nowhere alike."""
    return b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(nbytes // 32 + 1))[:nbytes]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "x.so"
    path.write_bytes(pattern(10_500))
    return path


def test_a_file_travels_once(serve: Serve, place: str, source: Path) -> None:
    device = Device()
    progress: list[tuple[int, int]] = []
    with serve(place, device).client() as client:
        first = upload(
            client, source, "x.so", chunk_bytes=CHUNK, on_progress=lambda *p: progress.append(p)
        )
        assert device.files[first.sha256] == source.read_bytes()
        assert (first.nbytes, first.sent_bytes) == (10_500, 10_500)
        assert progress[0] == (1000, 10_500)
        assert progress[-1] == (10_500, 10_500)
        again = upload(client, source, "y.so", chunk_bytes=CHUNK)
        assert (again.sha256, again.sent_bytes) == (first.sha256, 0)
        assert device.chunks_seen == list(range(11))


def test_bytes_travel_as_a_file_does(serve: Serve) -> None:
    device = Device()
    with serve("memory", device).client() as client:
        sent = upload(client, pattern(2500), "b", chunk_bytes=CHUNK)
        assert device.files[sent.sha256] == pattern(2500)


def test_a_cut_upload_goes_on_where_it_stopped(serve: Serve, place: str, source: Path) -> None:
    device = Device()
    device.lose = 5
    with serve(place, device).client() as client:
        with pytest.raises(QuotaExceeded, match="disk full"):
            upload(client, source, "x.so", chunk_bytes=CHUNK)
        device.chunks_seen.clear()
        device.lose = 0
        sent = upload(client, source, "x.so", chunk_bytes=CHUNK)
        assert device.files[sent.sha256] == source.read_bytes()
        assert sent.sent_bytes < 10_500


def test_a_long_list_of_holes_is_asked_for_in_parts(serve: Serve, source: Path) -> None:
    device = Device()
    device.ranges_a_time = 2
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    held = HeldChunks(10_500, CHUNK)
    partial = bytearray(10_500)
    for index in (1, 3, 5, 7):
        start, stop = held.cut.span(index)
        partial[start:stop] = source.read_bytes()[start:stop]
        held.add(index)
    device._partial[digest] = (partial, held)
    with serve("127.0.0.1:0", device).client() as client:
        upload(client, source, "x.so", chunk_bytes=CHUNK)
    assert device.files[digest] == source.read_bytes()
    assert device.chunks_seen == [0, 2, 4, 6, 8, 9, 10]


@pytest.mark.parametrize("hashed_after", [0, 4, 11])
def test_chunks_travel_while_the_file_is_hashed(
    serve: Serve, source: Path, monkeypatch: pytest.MonkeyPatch, hashed_after: int
) -> None:
    device = Device()
    done = threading.Event()

    class Slow(Hashing):
        @property
        def done(self) -> bool:
            return done.is_set()

    def watch(sent: int, total: int) -> None:
        if sent >= 1000 * hashed_after:
            done.set()

    if not hashed_after:
        done.set()  # known before the first chunk
    monkeypatch.setattr(transfer, "AHEAD_FROM", 0)
    monkeypatch.setattr(transfer, "Hashing", Slow)
    with serve("127.0.0.1:0", device).client() as client:
        sent = upload(client, source, "x.so", chunk_bytes=CHUNK, on_progress=watch)
        assert device.files == {sent.sha256: source.read_bytes()}
        assert device.chunks_seen == list(range(11))
        assert sent.sent_bytes == 10_500
        assert device.passing == 1
        # Known already: what was sent ahead is dropped, and the hash found to be there.
        again = upload(client, source, "y.so", chunk_bytes=CHUNK, on_progress=watch)
        assert again.sha256 == sent.sha256
        assert not device._partial


def test_a_refused_upload(serve: Serve, source: Path) -> None:
    with (
        serve("127.0.0.1:0", Device(quota=100)).client() as client,
        pytest.raises(QuotaExceeded) as caught,
    ):
        upload(client, source, "x.so")
    assert caught.value.detail == {"limit": 100}


def test_a_file_that_cannot_be_read(serve: Serve, tmp_path: Path) -> None:
    with (
        serve("memory", Device()).client() as client,
        pytest.raises(InvalidArgument, match="No such file"),
    ):
        upload(client, tmp_path / "none", "none")


def test_a_file_cut_short_meanwhile(serve: Serve, source: Path) -> None:
    device = Device()

    def truncate(done: int, total: int) -> None:
        if done == 3000:
            source.write_bytes(b"short")

    with (
        serve("memory", device).client() as client,
        pytest.raises(InvalidArgument, match="changed while it was uploaded"),
    ):
        upload(client, source, "x.so", chunk_bytes=CHUNK, on_progress=truncate)


@pytest.mark.parametrize("nbytes", [0, 1, CHUNK, CHUNK + 1, 25 * CHUNK, 25 * CHUNK - 7])
def test_an_array_there_and_back(serve: Serve, place: str, nbytes: int) -> None:
    device = Device(nbytes)
    data, back = bytearray(pattern(nbytes)), bytearray(nbytes)
    with serve(place, device).client() as client:
        put(client, 1, memoryview(data), chunk_bytes=CHUNK, window=WINDOW)
        assert device.array == data
        get(client, 1, memoryview(back), window=WINDOW)
        assert back == data
    assert device.most_unanswered <= WINDOW // 2


def test_a_part_of_an_array(serve: Serve) -> None:
    device = Device(5000)
    back = bytearray(1500)
    with serve("127.0.0.1:0", device).client() as client:
        put(client, 1, memoryview(pattern(1500)), offset=2000, chunk_bytes=CHUNK, window=WINDOW)
        get(client, 1, memoryview(back), offset=2000, window=WINDOW)
    assert back == pattern(1500)
    assert device.array == bytes(2000) + pattern(1500) + bytes(1500)


def test_a_put_that_fails_is_told_once(serve: Serve, place: str) -> None:
    with serve(place, Device()).client() as client:
        with pytest.raises(NotFound):
            put(client, 2, memoryview(pattern(90_000)), chunk_bytes=CHUNK, window=WINDOW)
        assert client._pending == {}


def test_a_transfer_has_a_limit(serve: Serve) -> None:
    def silent(endpoint: Endpoint, incoming: Incoming) -> None:
        """Answer nothing."""

    with serve("127.0.0.1:0", silent).client() as client:
        with pytest.raises(RemoteTimeout):
            put(client, 1, memoryview(pattern(5000)), 0.05, chunk_bytes=CHUNK)
        with pytest.raises(RemoteTimeout):
            get(client, 1, memoryview(bytearray(5000)), 0.05)
        assert client._pending == {}


def test_bytes_out_of_place_are_refused(serve: Serve) -> None:
    def wrong(endpoint: Endpoint, incoming: Incoming) -> None:
        endpoint.event(incoming, GetChunk(500), [bytes(CHUNK)])

    with (
        serve("127.0.0.1:0", wrong).client() as client,
        pytest.raises(ProtocolError, match="brought bytes from 500"),
    ):
        get(client, 1, memoryview(bytearray(5000)), 5)
