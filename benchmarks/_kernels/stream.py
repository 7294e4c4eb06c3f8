"""Elementwise operators as a share of the memory bandwidth that copy and triad in C reach."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import farbench as fb
from _common import ROOT, Peer, PeerMissing, in_turns, note
from farbench_compiler import ops
from farbench_compiler.errors import LinkError
from farbench_compiler.toolchain.zig import locate

ARRAY_BYTES = 1 << 30  # of either side: no cache holds a part that counts
ROUNDS = 5
DTYPES = ("float32", "float64", "float16")


def start() -> Peer:
    """Start the C loops."""
    try:
        zig = str(locate().path)
    except LinkError as cause:
        raise PeerMissing(f"the C loops: {cause}") from cause
    script = str(ROOT / "benchmarks/peers/stream.py")
    return Peer("stream", [sys.executable, script, zig], os.environ)


def _bandwidth(peer: Peer, loop: str) -> float:
    """Give the best rate of one loop in a turn, in bytes a second."""
    answer = peer.ask(measure="run", loop=loop, nbytes=ARRAY_BYTES, samples=2)
    seconds, moved = answer["seconds"], answer["bytes"]
    assert isinstance(seconds, list)
    assert isinstance(moved, int)
    return moved / min(float(s) for s in seconds)


class Adder:
    """One addition over arrays that no cache holds."""

    def __init__(self, dtype: str) -> None:
        count = ARRAY_BYTES // int(dtype[5:]) * 8
        self.bytes = 3 * ARRAY_BYTES
        self._module = fb.build(*ops.vector_add(count, dtype), target="native")
        self._arrays = [fb.nd.random((count,), dtype, seed=i) for i in range(2)]
        self._arrays.append(fb.nd.zeros((count,), dtype))
        self._module(*self._arrays)

    def rate(self) -> float:
        """Give the best rate of a turn, in bytes a second."""
        timer = self._module.time_evaluator("main", number=1, repeat=3, exact=True)
        return self.bytes / min(timer(*self._arrays).results)


def shares() -> Mapping[str, float]:
    """Measure each operator's rate in turns with the C loops'; give it as a share of the best."""
    with start() as peer:
        adders = {f"add_{dtype}": Adder(dtype) for dtype in DTYPES}
        turns = {name: lambda a=adder: [a.rate()] for name, adder in adders.items()}
        for loop in ("copy", "triad"):
            turns[loop] = lambda loop=loop: [_bandwidth(peer, loop)]
        rates = {name: max(found) for name, found in in_turns(turns, ROUNDS).items()}
    best = max(rates["copy"], rates["triad"])
    note(f"  the C loops reach {best / 1e9:.1f} GB/s")
    return {name: rates[name] / best for name in adders}
