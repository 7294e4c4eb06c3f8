"""Arrays by handle: alignment, bounds, limit, and what became of a handle."""

from __future__ import annotations

import pytest

from farbench_device_runtime.arrays import Arrays
from farbench_rpc.errors import InvalidArgument, NotFound, OutOfMemory


def test_every_array_is_aligned_and_apart() -> None:
    arrays = Arrays(0, 1, "")
    made = [arrays.make(handle, "float64", (100, 3)) for handle in range(1, 40)]
    assert all(array.facts.address % 64 == 0 for array in made)
    spans = sorted((array.facts.address, array.facts.address + array.nbytes) for array in made)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert arrays.used == 39 * 2400
    for handle in range(1, 40):
        arrays.free(handle)
    assert arrays.used == 0


def test_the_limit_is_kept_and_given_back() -> None:
    arrays = Arrays(1000, 1, "")
    arrays.make(1, "uint8", (900,))
    with pytest.raises(OutOfMemory) as caught:
        arrays.make(2, "uint8", (101,))
    assert caught.value.detail["limit_bytes"] == 1000
    arrays.free(1)
    arrays.make(2, "uint8", (1000,))
    arrays.free(2)


def test_parts_stay_inside() -> None:
    arrays = Arrays(0, 1, "")
    arrays.make(1, "int16", (4,))
    arrays.part(1, 2, 2)[:] = b"ab"
    assert bytes(arrays.part(1, 0, 8)) == b"\0\0ab\0\0\0\0"
    for offset, nbytes in ((0, 9), (8, 1), (-1, 1), (0, -1)):
        with pytest.raises(InvalidArgument):
            arrays.part(1, offset, nbytes)
    arrays.free(1)


def test_a_handle_says_what_became_of_it() -> None:
    arrays = Arrays(0, 5, "KernelCrashed: f")
    with pytest.raises(NotFound, match=r"array 4 was lost.*KernelCrashed"):
        arrays.find(4)
    with pytest.raises(NotFound, match="no array 6"):
        arrays.find(6)
    arrays.free(99)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("complex64", (1,)), ("", (1,)), ("int8", (-1,)), ("int8", (1,) * 33)]
)
def test_what_is_no_array_is_refused(dtype: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Arrays(0, 1, "").make(1, dtype, shape)


def test_no_elements_and_no_dimensions() -> None:
    arrays = Arrays(0, 1, "")
    assert arrays.make(1, "int32", (0, 7)).nbytes == 0
    assert arrays.make(2, "int32", ()).nbytes == 4
    arrays.free(1)
    arrays.free(2)
