"""Fills before any library: the same bits as the runtime in a library, and errors alike."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_device_runtime import fill as plain
from farbench_device_runtime.library import Context, Library
from farbench_rpc.errors import InvalidArgument
from farbench_rpc.manifest import DTYPES, ArrayFacts

pytestmark = pytest.mark.linux
COUNT = 64
EDGES = st.sampled_from(
    [0.0, -0.0, 1.0, -1.5, 65519.9, 65520.0, 1e39, 2.0**31, 2.0**63, -(2.0**63)]
)
LIMITS = EDGES | st.integers(-300, 300).map(float) | st.floats()


@pytest.fixture(scope="module")
def context(library: Path) -> Iterator[Context]:
    with Library.load(library).context(1) as made:
        yield made


@given(
    dtype=st.sampled_from(list(DTYPES)),
    kind=st.sampled_from(list(plain.KINDS)),
    seed=st.integers(-(2**63), 2**63 - 1),
    low=LIMITS,
    high=LIMITS,
)
def test_m3_writes_the_bits_of_the_runtime(
    context: Context, dtype: str, kind: str, seed: int, low: float, high: float
) -> None:
    here, native = bytearray(COUNT * DTYPES[dtype]), bytearray(COUNT * DTYPES[dtype])
    anchor = ctypes.c_char.from_buffer(native)
    facts = ArrayFacts(dtype, (COUNT,), ctypes.addressof(anchor))
    refusals = ["", ""]
    try:
        context.fill(facts, seed, kind, low, high)
    except InvalidArgument as error:
        refusals[0] = str(error)
    try:
        plain.fill(memoryview(here), dtype, seed, kind, low, high)
    except InvalidArgument as error:
        refusals[1] = str(error)
    assert refusals[0] == refusals[1]
    assert here == native


def test_many_parts_are_one_sequence() -> None:
    long = bytearray(3 * plain._PART + 7)
    plain.fill(memoryview(long), "uint8", 5, "uniform", 0, 256)
    assert long[:3] == bytes(r >> 56 for r in plain._random(5, 0, 3))
    assert long[-1] == next(plain._random(5, len(long) - 1, len(long))) >> 56
    plain.fill(memoryview(long), "uint8", 5, "constant", 9, 0)
    assert set(long) == {9}


def test_too_many_random_elements_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "MAX_RANDOM", 10)
    with pytest.raises(InvalidArgument, match="load a library first"):
        plain.fill(memoryview(bytearray(88)), "float64", 0, "uniform", 0, 1)
    data = bytearray(88)
    plain.fill(memoryview(data), "float64", 0, "constant", math.pi, 0)
    assert struct.unpack("<11d", data) == (math.pi,) * 11


def test_unknown_fills_are_named() -> None:
    with pytest.raises(InvalidArgument, match="uniform, constant"):
        plain.fill(memoryview(bytearray(8)), "float64", 0, "normal", 0, 1)
