"""What waits in a session is bounded by what waits now, not by what ever came."""

from __future__ import annotations

import pytest

from farbench_device_runtime.jobs import Job, PutJob
from farbench_device_runtime.shared import Waiting
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.messages import Free, Put
from farbench_rpc.server import Incoming, Peer

pytestmark = pytest.mark.linux
PEER = Peer(b"p", "client", 0, "", "")


def put(nbytes: int) -> Job:
    return PutJob(Incoming(PEER, 1, Put(1, 0, True), []), 1, 0, memoryview(bytes(nbytes)), True)


def test_bytes_that_left_make_room() -> None:
    waiting = Waiting()
    half = Waiting.MOST_BYTES // 2
    for _ in range(10):
        waiting.admit(put(half))
        waiting.admit(put(half))
        with pytest.raises(InvalidArgument, match="too many requests"):
            waiting.admit(put(1))
        waiting.popleft()
        waiting.admit(put(half))
        waiting.popleft()
        waiting.popleft()


def test_requests_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waiting, "MOST", 2)
    waiting = Waiting()
    free = Job(Incoming(PEER, 1, Free(()), []), ["free", ()], "free")
    waiting.admit(free)
    waiting.admit(free)
    with pytest.raises(InvalidArgument, match="wait for answers"):
        waiting.admit(free)
