"""Pools by size: the usual one stays, another is kept while it is the last or in use."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

import pytest

from farbench_device_runtime.library import Call, Library
from farbench_device_runtime.pools import Pools
from farbench_rpc.errors import InvalidArgument

pytestmark = pytest.mark.linux


def running() -> int:
    return len(os.listdir("/proc/self/task"))


def test_each_size_is_a_pool_of_so_many_threads(library: Path) -> None:
    before = running()
    pools = Pools(Library.load(library).runtime, 2)
    assert pools.of(0) is pools.of(2) is pools.usual
    assert running() == before + 1  # the caller is one of them
    three = pools.of(3)
    assert three is pools.of(3)
    assert three.facts() == {"threads": 3, "threads_pinned": 0}
    assert running() == before + 3
    del three
    assert pools.of(1).threads == 1
    assert running() == before + 1
    del pools
    assert running() == before


def test_a_call_keeps_its_pool(library: Path) -> None:
    loaded = Library.load(library)
    pools = Pools(loaded.runtime, 1)
    call = Call(pools.of(3), loaded.entry("nothing"), [], [])
    pools.of(2)
    call.run()
    kept = weakref.ref(call.context)
    del call
    assert kept() is None


@pytest.mark.parametrize("threads", [-1, 1025, 2**40])
def test_a_size_that_cannot_be_is_refused(library: Path, threads: int) -> None:
    with pytest.raises(InvalidArgument, match="a pool has 1 to 1024 threads"):
        Pools(Library.load(library).runtime, 1).of(threads)
