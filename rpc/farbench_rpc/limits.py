"""Every cap of the wire, in one place: sizes in bytes, times in seconds.

A frame, a header or a message beyond its cap is refused before anything is built from it, so that
whatever a peer sends, what it costs here is bounded.
"""

from __future__ import annotations

from typing import Final

MAX_HEADER: Final = 64 * 1024
"""Bytes of a header frame; decoding one stays under 8 MiB whatever it holds."""

MAX_ITEMS: Final = 512
"""Elements of an array or map in a header; longer tables travel as pages."""

MAX_DEPTH: Final = 16
"""How deep containers nest in a header."""

CHUNK: Final = 1024 * 1024
"""Payload bytes of one transfer frame."""

MAX_FRAME: Final = CHUNK + CHUNK // 4
"""Bytes of one frame on the wire (ZMQ_MAXMSGSIZE)."""

MAX_FRAMES: Final = 8
"""Payload frames of one message."""

MAX_MESSAGE: Final = 4 * CHUNK
"""Bytes of one message, header and payload frames together."""

HIGH_WATER: Final = 64
"""Messages queued for or from one peer before its sender must wait."""

WINDOW: Final = 16
"""Transfer frames under way before a credit or an answer is due."""

MAX_PEERS: Final = 16384
"""Peers an endpoint remembers."""

MAX_BACKLOG: Final = 256
"""Messages an endpoint keeps for a peer that does not read; one more and the peer is cut."""

LINGER_S: Final = 1.0
"""How long a closed socket may still try to deliver."""

HEARTBEAT_S: Final = 1.0
"""How often an idle connection is probed."""

HEARTBEAT_TIMEOUT_S: Final = 3.0
"""A connection without any byte for so long is closed."""

HANDSHAKE_S: Final = 5.0
"""A connection that has not finished its handshake in so long is closed."""

CONNECT_TIMEOUT_S: Final = 5.0
"""Default limit to connect and exchange Hello and Welcome."""

ASK_TIMEOUT_S: Final = 30.0
"""Default limit of a request."""

MAX_THREADS: Final = 1024
"""The most threads that a call may ask for."""

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
