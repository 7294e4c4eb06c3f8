"""Two threads against one: the same kernel, the same operands."""

from __future__ import annotations

from collections.abc import Iterator

from _kernels import conv, matmul
from _kernels.pair import Pair

SIZE = 2048
LAYER = "C2"


def pairs() -> Iterator[Pair]:
    """Put two threads beside one for a large matmul and a convolution."""
    two, one = (matmul.kernel(SIZE, SIZE, SIZE, threads=threads) for threads in (2, 1))
    yield Pair(f"matmul_{SIZE}", two.seconds, one.seconds)
    two, one = (conv.kernel(LAYER, conv.LAYERS[LAYER], threads) for threads in (2, 1))
    yield Pair(LAYER, two.seconds, one.seconds)
