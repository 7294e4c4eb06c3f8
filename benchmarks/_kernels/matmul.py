"""matmul against numpy: row-major run-time operands, `out=`, packing inside the timing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from _common import Peer
from _kernels.kernel import Kernel, uniform
from _kernels.pair import Pair, Seconds, asked
from farbench_compiler import ops

# (m, n, k): C [m, n] = A [m, k] B [k, n].
SQUARES = (128, 256, 384, 512, 768, 1024, 1536, 2048)
ODD = (
    (1000, 37, 513),
    (1, 4096, 4096),
    (4096, 1, 4096),
    (4096, 4096, 1),
    (127, 129, 131),
    (333, 777, 555),
    (64, 4096, 64),
    (17, 1000, 2048),
    (2048, 16, 2048),
)
SHAPES = (*((n, n, n) for n in SQUARES), *ODD)


def name_of(m: int, n: int, k: int) -> str:
    """Name a shape: `1024` for a square one, else `m x n x k`."""
    return str(m) if m == n == k else f"{m}x{n}x{k}"


def kernel(m: int, n: int, k: int, dtype: str = "float32", threads: int = 1) -> Kernel:
    """Build our matmul of one shape and check it against numpy."""
    a, b = uniform((m, k), dtype), uniform((k, n), dtype, 1)
    # Products of two factors in [-1, 1): the error of a sum of k is a walk of k steps.
    tolerance = float(np.finfo(dtype).eps) * max(k, 8)
    program = partial(ops.matmul, m, n, k, dtype, "native", parallel=threads > 1)
    return Kernel.of(f"matmul {m}x{n}x{k}", program, (a, b), np.matmul(a, b), tolerance)


def numpys(peer: Peer, m: int, n: int, k: int) -> Seconds:
    """Ask numpy for samples of one shape."""
    return asked(peer, measure="matmul", m=m, n=n, k=k)


def pairs(numpy: Peer, threads: int = 1) -> Iterator[Pair]:
    """Build every shape, each just before it is measured."""
    for m, n, k in SHAPES:
        made = kernel(m, n, k, threads=threads)
        yield Pair(name_of(m, n, k), made.seconds, numpys(numpy, m, n, k))
