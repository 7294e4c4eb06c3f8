"""Packets between processes: whole, with descriptors, and damage told from the end."""

from __future__ import annotations

import os

import pytest

from farbench_device_runtime.pipe import Pipe, PipeClosed, PipeDamaged

pytestmark = pytest.mark.linux


def test_packets_stay_whole_and_in_order() -> None:
    one, other = Pipe.pair()
    one.send(["a", 1, b"x" * 50_000])
    one.send(["b", {"k": [1.5, None]}])
    assert other.receive() == ["a", 1, b"x" * 50_000]
    assert other.receive() == ["b", {"k": [1.5, None]}]
    assert other.receive(block=False) is None
    one.close()
    with pytest.raises(PipeClosed):
        other.receive()
    with pytest.raises(PipeClosed):
        other.send(["x"])
    other.close()


def test_descriptors_travel_beside() -> None:
    one, other = Pipe.pair()
    reader, writer = os.pipe()
    one.send(["fd"], [writer])
    os.close(writer)
    got = other.receive_fds()
    assert got is not None
    (message, fds) = got
    assert message == ["fd"]
    os.write(fds[0], b"hi")
    assert os.read(reader, 2) == b"hi"
    assert other.receive_fds(block=False) is None
    for fd in (reader, *fds):
        os.close(fd)
    one.close()
    other.close()


def test_a_full_pipe_says_so() -> None:
    one, other = Pipe.pair()
    sent = 0
    while one.send(["x", bytes(1000)], block=False):
        sent += 1
        assert sent < 10_000
    assert other.receive() is not None
    one.close()
    other.close()


@pytest.mark.parametrize(
    "data",
    [b"\xc1", b"\x93\x01", b"\x01", b"\x90", b"\x91\x01", b"\xdd\xff\xff\xff\xff", b"\x81\x01"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    one, other = Pipe.pair()
    one.sock.send(data)
    with pytest.raises(PipeDamaged):
        other.receive()
    one.close()
    other.close()
