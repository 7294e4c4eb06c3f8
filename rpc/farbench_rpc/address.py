"""Network addresses as people type them: `host:port`, `[::1]:9190`, names.

>>> parse_address("[::1]:9190")
Address(host='::1', port=9190)
>>> parse_address("board.lan", default_port=9190).zmq
'tcp://board.lan:9190'
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from farbench_rpc.errors import AddressError

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9_.])?\Z")


@dataclass(frozen=True)
class Address:
    """A host (name, IPv4 or IPv6 without brackets) and a TCP port; port 0 lets the system pick."""

    host: str
    port: int

    def __str__(self) -> str:
        """Write it as it is typed, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def zmq(self) -> str:
        """Give the endpoint text that libzmq understands."""
        return f"tcp://{self}"

    @property
    def is_numeric(self) -> bool:
        """Tell whether the host needs no name lookup."""
        return _numeric(self.host) is not None

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine can reach it (127.0.0.0/8, ::1, localhost)."""
        found = _numeric(self.host)
        if found is None:
            return self.host.rstrip(".").lower() == "localhost"
        mapped = getattr(found, "ipv4_mapped", None)
        return (mapped or found).is_loopback

    def with_port(self, port: int) -> Address:
        """Give the same host with another port."""
        return Address(self.host, port)


def parse_address(text: str, default_port: int | None = None) -> Address:
    """Read `host:port`, `[v6]:port`, and without a port where `default_port` is given.

    `*` and an empty host mean every interface. Raises AddressError that quotes the text.
    """
    host, port_text = _split(text.strip(), text)
    if not port_text:
        if default_port is None:
            raise AddressError(f"address {text!r} has no port; write HOST:PORT")
        port = default_port
    elif port_text.isascii() and port_text.isdigit() and int(port_text[:6]) <= 65535:
        port = int(port_text[:6])
    else:
        raise AddressError(f"address {text!r}: port {port_text!r} is not a number from 0 to 65535")
    return Address(_host(host, text), port)


def _split(text: str, original: str) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise AddressError(f"address {original!r}: write IPv6 as [ADDRESS]:PORT")
        return host, rest[1:]
    if text.count(":") > 1:
        if _numeric(text) is not None:
            return text, ""
        raise AddressError(f"address {original!r}: write IPv6 as [ADDRESS]:PORT")
    host, _, port = text.partition(":")
    return host, port


def _host(host: str, original: str) -> str:
    if host in ("", "*"):
        return "0.0.0.0"  # noqa: S104 - whether it may be bound is decided at the bind
    if _numeric(host) is not None:
        return host
    if not _NAME.match(host) or re.fullmatch(r"[0-9.]+", host):
        raise AddressError(f"address {original!r}: {host!r} is neither a host name nor an address")
    return host


def _numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
