"""The tags that operators put on what they compute, and what they tell a schedule."""

from __future__ import annotations

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Tell whether elements come from those at some of their own indices."""
    return tag in (ELEMWISE, BROADCAST)


def is_injective(tag: str) -> bool:
    """Tell whether each element comes from few others, by itself."""
    return tag in (ELEMWISE, BROADCAST, INJECTIVE)
