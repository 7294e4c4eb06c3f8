"""A device's one session: who holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench_rpc.client import Client
from farbench_rpc.errors import Refused
from farbench_rpc.messages import Alloc, Allocated, Free, Get
from tests.support.direct import Direct, LocalSession

pytestmark = pytest.mark.linux


def test_whoever_shows_the_token_next_takes_the_session_over(
    session: LocalSession, library: Path
) -> None:
    made = session.ask(Alloc("uint8", (64 << 20,)))
    assert isinstance(made, Allocated)
    # It stops for want of credit, and must not hold up who comes next.
    stuck = session.client.begin(Get(made.array, 0, 64 << 20))
    with Client(session.device.dial, "client") as other:
        heir = Direct(other, session.device.opening)
        heir.call(heir.load(library), "nothing")
        with pytest.raises(Refused):
            session.ask(Free((made.array,)))
        stuck.close()
        heir.ask(Free((made.array,)))
