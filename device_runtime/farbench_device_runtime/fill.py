"""Seeded fills without a library: bit for bit what the runtime in every library writes, but slowly.

The formulas stand in `farbench_compiler/runtime_c/farbench_runtime.h`. A worker that has loaded a
library fills by its native code; this serves arrays that are filled before that.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterator

from farbench_rpc.errors import InvalidArgument
from farbench_rpc.manifest import DTYPES
from farbench_rpc.manifest.slots import bfloat16_bits

KINDS = {"uniform": 0, "constant": 1}
"""The fills there are, with the code of each in the runtime."""
MAX_RANDOM = 1 << 20
"""Random elements made here at the most: a second on a desktop, some seconds on a small board."""

_MASK = 2**64 - 1
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_PART = 1 << 14
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
Random = Iterator[int]


def check_kind(kind: str) -> int:
    """Give the runtime's code of a fill; InvalidArgument lists those that exist."""
    if kind not in KINDS:
        raise InvalidArgument(f"no fill {kind!r}; there are {', '.join(KINDS)}")
    return KINDS[kind]


def misfit(kind: str, dtype: str, low: float, high: float) -> InvalidArgument:
    """Make the error of a range that a dtype cannot hold."""
    return InvalidArgument(f"{kind} over [{low:g}, {high:g}) does not fit {dtype}")


def fill(view: memoryview, dtype: str, seed: int, kind: str, low: float, high: float) -> None:
    """Fill the bytes of an array of `dtype`.

    InvalidArgument where the range does not fit the dtype, or for more than MAX_RANDOM random
    elements, which only the runtime makes in good time.
    """
    check_kind(kind)
    size = DTYPES[dtype]
    count = len(view) // size
    if kind == "constant":
        _repeat(view, _constant(dtype, low, high))
        return
    write = _writer(dtype, low, high)
    if count > MAX_RANDOM:
        raise InvalidArgument(
            f"no library is loaded, and without its runtime {MAX_RANDOM} random elements are the "
            f"most, not {count}; load a library first, or put the values"
        )
    for start in range(0, count, _PART):
        stop = min(start + _PART, count)
        view[start * size : stop * size] = write(_random(seed & _MASK, start, stop))


def _random(seed: int, start: int, stop: int) -> Random:
    """Walk the 64 random bits of each element (splitmix64)."""
    for index in range(start + 1, stop + 1):
        z = seed + index * 0x9E3779B97F4A7C15 & _MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
        yield z ^ z >> 31


def _repeat(view: memoryview, element: bytes) -> None:
    part = element * _PART
    for start in range(0, len(view), len(part)):
        stop = min(start + len(part), len(view))
        view[start:stop] = part[: stop - start]


def _constant(dtype: str, low: float, high: float) -> bytes:
    if dtype == "bool":
        return bytes([low != 0])
    if dtype in _FLOATS:
        return _floats(dtype, iter((low,)))
    first = _first(dtype, low)
    if first is None or first != low:
        raise misfit("constant", dtype, low, high)
    return (first & _MASK).to_bytes(8, "little")[: DTYPES[dtype]]


def _writer(dtype: str, low: float, high: float) -> Callable[[Random], bytes]:
    """Make what turns random bits into the bytes of elements; InvalidArgument for a bad range."""
    if dtype == "bool":
        return lambda random: bytes(r >> 63 for r in random)
    if dtype in _FLOATS:
        width = high - low
        if not low < high or math.isinf(width):
            raise misfit("uniform", dtype, low, high)
        return lambda random: _floats(dtype, (low + (r >> 11) * 2.0**-53 * width for r in random))
    return _integers(dtype, low, high)


def _floats(dtype: str, values: Iterator[float]) -> bytes:
    if dtype == "bfloat16":
        return b"".join(bfloat16_bits(value).to_bytes(2, "little") for value in values)
    if dtype == "float16":
        return b"".join(map(_half, values))
    return array("f" if dtype == "float32" else "d", values).tobytes()


def _half(value: float) -> bytes:
    """Round to half precision: beyond its range is infinity, a NaN keeps the top of its payload."""
    if math.isnan(value):
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return struct.pack("<H", bits >> 48 & 0x8000 | 0x7E00 | bits >> 42 & 0x1FF)
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", math.copysign(math.inf, value))


def _first(dtype: str, low: float) -> int | None:
    """Give the least integer from `low` on; None where the dtype does not hold it."""
    if not math.isfinite(low):
        return None
    first = math.ceil(low)
    least, past = _limits(dtype)
    return first if least <= first < past else None


def _limits(dtype: str) -> tuple[int, int]:
    bits = 8 * DTYPES[dtype]
    return (0, 2**bits) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))


def _integers(dtype: str, low: float, high: float) -> Callable[[Random], bytes]:
    first = _first(dtype, low)
    if first is None or not math.isfinite(high) or math.ceil(high) > _limits(dtype)[1]:
        raise misfit("uniform", dtype, low, high)
    # The difference of two doubles, as the runtime takes it: beyond 2**53 it may be rounded.
    span = int(float(math.ceil(high)) - float(first))
    if span < 1:
        raise misfit("uniform", dtype, low, high)
    size = DTYPES[dtype]
    mask = 2 ** (8 * size) - 1

    def write(random: Random) -> bytes:
        if span <= 2**32:
            scaled = ((r >> 32) * span >> 32 for r in random)
        else:
            scaled = (r % span for r in random)
        return array(_CODES[size], (first + r & mask for r in scaled)).tobytes()

    return write
