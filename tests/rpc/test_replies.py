"""Errors as messages: whatever one holds, it can be told."""

from __future__ import annotations

import pytest

from farbench_rpc.codec import decode, encode
from farbench_rpc.errors import NotFound, RpcError
from farbench_rpc.limits import MAX_HEADER
from farbench_rpc.replies import error_reply, to_error


def told(error: RpcError) -> RpcError:
    header = encode(error_reply(error), 1)
    assert len(header) <= MAX_HEADER
    return to_error(decode(header).message)  # type: ignore[arg-type]


def test_an_error_is_raised_again_as_its_class() -> None:
    found = told(NotFound("no such thing", {"what": "x", "limit": 3, "share": 0.5, "own": True}))
    assert type(found) is NotFound
    assert found.message == "no such thing"
    assert found.detail == {"what": "x", "limit": 3, "share": 0.5, "own": True}


@pytest.mark.parametrize(
    "error",
    [
        RpcError(
            "\U0001f600" * 100_000,
            {"\U0001f600" * 500 + str(i): "\U0001f600" * 5000 for i in range(99)},
        ),
        RpcError("\udcff", {"\udcff": "\udcff"}),
        RpcError("x", {"large": 2**64, "small": -(2**63) - 1}),
        RpcError("x", {"odd": [1]}),  # type: ignore[dict-item]
    ],
)
def test_whatever_an_error_holds_it_can_be_told(error: RpcError) -> None:
    assert type(told(error)) is RpcError
