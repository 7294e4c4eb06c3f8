"""Arrays that no cache holds: written past the caches, read ahead of their use."""

from __future__ import annotations

from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor

# More than the last cache of most machines: what is written would push out all else, and be gone
# itself before anyone reads it. Every line that is written would be read first, too.
NONTEMPORAL_BYTES = 32 << 20
# A row ahead and the row at hand fit the first cache.
AHEAD_BYTES = 16 << 10


def write_past_caches(stage: Stage, nbytes: int) -> None:
    """Let a stage write its output past the caches where it is larger than they are."""
    if nbytes >= NONTEMPORAL_BYTES:
        stage.pragma(stage.leaf_iter_vars[0], "nontemporal")


def read_next_row(stage: Stage, of: Tensor, columns: int, axis: IterVar, width: int) -> None:
    """Read a row ahead: in the loop `axis` over `width` columns each, what follows a row later."""
    steps = columns // width
    if steps and columns * of.dtype.nbytes <= AHEAD_BYTES:
        stage.prefetch(of, axis, steps)
