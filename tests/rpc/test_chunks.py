"""Chunks: spans cover the bytes, what is held is what was added, in any order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_rpc.chunks import Chunks, HeldChunks

SIZES = st.tuples(st.integers(0, 500), st.integers(1, 60))


@given(SIZES)
def test_spans_cover_the_bytes_once(sizes: tuple[int, int]) -> None:
    cut = Chunks(*sizes)
    spans = list(cut.spans())
    assert spans == [cut.span(i) for i in range(cut.count)]
    assert [b for start, stop in spans for b in range(start, stop)] == list(range(sizes[0]))


@given(SIZES, st.data())
def test_held_is_what_was_added(sizes: tuple[int, int], data: st.DataObject) -> None:
    held = HeldChunks(*sizes)
    count = held.cut.count
    order = data.draw(st.permutations(range(count)))
    added: set[int] = set()
    for index in order[: data.draw(st.integers(0, count))]:
        assert held.add(index)
        assert not held.add(index)
        added.add(index)
    missing = {i for first, last in held.missing(1000) for i in range(first, last)}
    assert missing == set(range(count)) - added
    assert held.complete == (not missing)
    assert all((i in held) == (i in added) for i in range(count))
    assert sum(b - a for a, b in map(held.cut.span, added)) <= held.nbytes <= sizes[0]
    assert (held.nbytes == 0) == (not added)


def test_ranges_are_joined_and_cut() -> None:
    held = HeldChunks(10, 1)
    for index in (2, 5, 6):
        held.add(index)
    assert held.missing() == ((0, 2), (3, 5), (7, 10))
    assert held.missing(2) == ((0, 2), (3, 5))
    assert repr(held) == "HeldChunks(3/10, missing=((0, 2), (3, 5), (7, 10)))"


@pytest.mark.parametrize("index", [-1, 3])
def test_no_such_chunk(index: int) -> None:
    held = HeldChunks(25, 10)
    assert held.cut.span(2) == (20, 25)
    with pytest.raises(IndexError):
        held.add(index)


def test_bad_sizes() -> None:
    with pytest.raises(ValueError, match="chunks of 0"):
        Chunks(5, 0)
    with pytest.raises(ValueError, match="-1 bytes"):
        Chunks(-1)
