"""Addresses as typed: read, written, refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_rpc.address import Address, parse_address
from farbench_rpc.errors import AddressError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9190", "127.0.0.1", 9190),
        ("[::1]:9190", "::1", 9190),
        ("board.lan:0", "board.lan", 0),
        ("my_board-2:65535", "my_board-2", 65535),
        (" host:1 ", "host", 1),
        ("*:9190", "0.0.0.0", 9190),
        (":9190", "0.0.0.0", 9190),
        ("[fe80::1]:7", "fe80::1", 7),
    ],
)
def test_reads_addresses(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host, port)


@pytest.mark.parametrize("text", ["host", "127.0.0.1", "[::1]", "::1"])
def test_takes_the_default_port(text: str) -> None:
    assert parse_address(text, 9190).port == 9190
    assert parse_address(text, 9190).host == text.strip("[]")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host:",
        "host:x",
        "host:-1",
        "host:65536",
        "host:99999999999999999999",
        "host:٣",
        "::1:9190x",
        "[::1",
        "[::1]9190",
        "a b:1",
        "-a:1",
        "a/b:1",
        "1.2.3:4",
        "1.2.3.4.5:6",
        "tcp://host:1",
        "häuser:1",
    ],
)
def test_refuses_and_quotes(text: str) -> None:
    with pytest.raises(AddressError, match="address") as caught:
        parse_address(text)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("board.lan", False),
    ],
)
def test_knows_who_can_reach_it(host: str, loopback: bool) -> None:
    assert Address(host, 1).is_loopback == loopback


def test_writes_ipv6_in_brackets() -> None:
    assert str(Address("::1", 9)) == "[::1]:9"
    assert Address("::1", 9).zmq == "tcp://[::1]:9"
    assert Address("host", 9).with_port(7).zmq == "tcp://host:7"


@given(st.text(max_size=40))
def test_only_address_errors_escape(text: str) -> None:
    try:
        address = parse_address(text, 1)
    except AddressError:
        return
    assert parse_address(str(address)) == address


@given(st.ip_addresses(), st.integers(0, 65535))
def test_round_trip(ip: object, port: int) -> None:
    address = Address(str(ip), port)
    assert parse_address(str(address)) == address
    assert address.is_numeric
