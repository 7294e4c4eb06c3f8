"""Debug builds: a call that would leave an array stops with an error, here and on every board."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import farbench as fb
from farbench import te
from farbench.tracker import Tracker
from farbench_rpc.errors import KernelError

TARGETS = {"native": "native", "aarch64": "pi4", "armv7": "armv7"}


def gather(target: str, *, debug: bool) -> fb.Module:
    """Take elements by index, in parallel and in vectors, through memory of the function's own."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n,), name="A")
    at = te.placeholder((m,), "int32", name="I")
    taken = te.compute((m,), lambda i: a[at[i]], name="T")
    c = te.compute((m,), lambda i: taken[m - 1 - i] * 2.0, name="C")
    sch = te.create_schedule(c.op)
    for tensor in (taken, c):
        outer, inner = sch[tensor].split(tensor.op.axis[0], factor=8)
        sch[tensor].parallel(outer)
        sch[tensor].vectorize(inner)
    return fb.build(sch, [a, at, c], target=target, name="gather", debug=debug)


def test_the_manifest_says_it_and_ordinary_builds_differ() -> None:
    plain, debug = (gather("native", debug=on) for on in (False, True))
    assert [m.manifest.entry("gather").debug for m in (plain, debug)] == [False, True]
    assert "fbk.number" in debug.get_source()
    assert "fbk.number" not in plain.get_source()
    assert gather("native", debug=True).manifest.entry("gather").debug  # from the cache


@pytest.mark.parametrize("index", [-(2**31), -1, 10, 2**31 - 1])
def test_an_index_outside_stops_the_call_everywhere(
    each_arch: str, index: int, tracker_of: Callable[[str], Tracker], tmp_path: Path
) -> None:
    path = tmp_path / "gather.so"
    gather(TARGETS[each_arch], debug=True).export_library(path)
    with tracker_of(each_arch).request(f"name={each_arch}", timeout=60) as remote:
        remote.upload(path)
        f = remote.load_module("gather.so")
        values, good = np.arange(10, dtype="float32"), np.arange(10, dtype="int32")[::-1].copy()
        a, out = fb.nd.array(values, remote.cpu()), fb.nd.empty(10, "float32", remote.cpu())
        f(a, fb.nd.array(good, remote.cpu()), out)
        assert out.numpy().tolist() == [2.0 * x for x in range(10)]
        bad = good.copy()
        bad[4] = index
        said = rf"gather: load from A, dimension 0: index {index} is outside of \[0, 10\)"
        with pytest.raises(KernelError, match=said):
            f(a, fb.nd.array(bad, remote.cpu()), out)
        f(a, fb.nd.array(good, remote.cpu()), out)  # its memory was given back


def test_threads_that_fail_at_once_each_get_their_own_error() -> None:
    def failing(k: int) -> fb.Module:
        a = te.placeholder((8,), "int32", name="A")
        c = te.compute((8,), lambda i: a[te.if_then_else(a[i] >= 0, a[i], 0)], name="C")
        return fb.build(te.create_schedule(c.op), [a, c], debug=True, name=f"f{k}")

    def call(k: int) -> set[str]:
        a, c = np.full(8, 100 + k, np.int32), np.zeros(8, np.int32)
        said = set()
        for _ in range(200):
            with pytest.raises(KernelError) as caught:
                modules[k](a, c)
            said.add(str(caught.value))
        return said

    modules = [failing(k) for k in range(3)]
    with ThreadPoolExecutor(3) as threads:
        for k, said in enumerate(threads.map(call, range(3))):
            assert len(said) == 1
            assert f"f{k}: load from A, dimension 0: index {100 + k} is outside" in said.pop()
