"""Elementwise operators and reductions against the bandwidth of copy and triad in C."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial

import farbench as fb
from _common import ROOT, Peer, PeerMissing, in_turns, note
from _kernels.kernel import Program
from farbench_compiler import ops, te, topi
from farbench_compiler.errors import LinkError
from farbench_compiler.te import Tensor
from farbench_compiler.toolchain.zig import locate

ARRAY_BYTES = 1 << 30  # of either side: no cache holds a part that counts
ROUNDS = 3
COLUMNS = 1024
DTYPES = {"float32": 4, "float64": 8, "float16": 2}


def start() -> Peer:
    """Start the C loops."""
    try:
        zig = str(locate().path)
    except LinkError as cause:
        raise PeerMissing(f"the C loops: {cause}") from cause
    script = str(ROOT / "benchmarks/peers/stream.py")
    return Peer("stream", [sys.executable, script, zig], os.environ)


def _bandwidths(peer: Peer, loop: str) -> list[float]:
    """Give the best rate of one loop in a turn, in bytes a second."""
    answer = peer.ask(measure="run", loop=loop, nbytes=ARRAY_BYTES, samples=2)
    seconds, moved = answer["seconds"], answer["bytes"]
    assert isinstance(seconds, list)
    assert isinstance(moved, int)
    return [moved / min(float(s) for s in seconds)]


def _scaled(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] * scale[j] + shift[j], name="scaled")


def _programs() -> Mapping[str, Program]:
    """Give the programs, each over arrays of the size that the C loops work on."""
    of = {name: ARRAY_BYTES // nbytes for name, nbytes in DTYPES.items()}
    flat, matrix = (of["float32"],), (of["float32"] // COLUMNS, COLUMNS)
    row = (COLUMNS,)
    found: dict[str, Program] = {
        f"add_{name}": partial(ops.vector_add, count, name) for name, count in of.items()
    }
    found |= {
        "multiply": partial(ops.program, topi.multiply, flat, flat),
        "relu": partial(ops.program, topi.nn.relu, matrix),
        "scale_shift": partial(ops.program, _scaled, matrix, row, row),
    }
    for name, axis in (("last", 1), ("first", 0), ("all", None)):
        found[f"sum_{name}"] = partial(ops.program, topi.sum, matrix, axis=axis)
    found["max_last"] = partial(ops.program, topi.max, matrix, axis=1)
    return found


class Operator:
    """A program over arrays that no cache holds."""

    def __init__(self, program: Program) -> None:
        schedule, args = program()
        self._module = fb.build(schedule, args, target="native")
        shapes = [tuple(extent.value for extent in arg.shape) for arg in args]
        kinds = [str(arg.dtype) for arg in args]
        self._arrays = [
            fb.nd.random(shape, kind, seed=i)
            for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
        ]
        self.bytes = sum(array.nbytes for array in self._arrays)
        self._module(*self._arrays)

    def rates(self) -> list[float]:
        """Give the best rate of a turn, in bytes a second."""
        timer = self._module.time_evaluator("main", number=1, repeat=3, exact=True)
        return [self.bytes / min(timer(*self._arrays).results)]


def shares() -> Mapping[str, float]:
    """Measure each operator's rate in turns with the C loops'; give it as a share of the best."""
    found = {}
    with start() as peer:
        for name, program in _programs().items():
            operator = Operator(program)
            turns: dict[str, Callable[[], list[float]]] = {
                "copy": partial(_bandwidths, peer, "copy"),
                "triad": partial(_bandwidths, peer, "triad"),
                name: operator.rates,
            }
            rates = {what: max(rate) for what, rate in in_turns(turns, ROUNDS).items()}
            best = max(rates["copy"], rates["triad"])
            found[name] = rates[name] / best
            note(f"  {name}: {rates[name] / 1e9:.1f} of {best / 1e9:.1f} GB/s, {found[name]:.2f}")
    return found
