"""Arrays of this process: alignment, copies, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import farbench as fb
from farbench import fill, nd
from farbench.errors import UsageError


@pytest.mark.parametrize("dtype", fill.DTYPES)
def test_arrays_of_every_dtype_are_aligned_and_hold_their_values(dtype: str) -> None:
    values = np.arange(12).reshape(3, 4).astype(dtype)
    made = nd.array(values, fb.cpu())
    assert isinstance(made, nd.HostArray)
    assert made.data.ctypes.data % 64 == 0
    assert (made.shape, made.dtype, made.nbytes) == ((3, 4), dtype, values.nbytes)
    assert (made.asnumpy() == values).all()
    assert made.numpy() is not made.data


def test_a_copy_shares_nothing() -> None:
    values = np.ones(4, dtype=np.float32)
    made = nd.array(values)
    values[0] = 5
    assert made.numpy()[0] == 1
    other = nd.empty(4).copyfrom(made)
    assert (other.numpy() == 1).all()


def test_arrays_that_are_not_contiguous_are_taken() -> None:
    values = np.arange(16, dtype=np.int32).reshape(4, 4).T
    assert (nd.array(values).numpy() == values).all()


def test_lists_of_floats_become_float32() -> None:
    assert nd.array([1.0, 2.0]).dtype == "float32"
    assert nd.array([1, 2]).dtype == "int64"


def test_random_equals_the_reference_and_says_its_source() -> None:
    made = nd.random((5, 7), "float16", fb.cpu(), seed=3)
    assert (made.numpy() == fill.reference(3, "uniform", 0, 1, "float16", (5, 7))).all()
    assert made.source == "seed 3, uniform [0, 1)"
    assert nd.empty(3).source == "uninitialised"
    assert nd.array([1.0]).source == "host"
    assert (nd.zeros((2, 2), "int8").numpy() == 0).all()


def test_sizes_and_empty_arrays() -> None:
    assert nd.empty((0, 3)).numpy().shape == (0, 3)
    assert nd.empty(()).size == 1
    assert len(nd.empty((4, 2))) == 4
    assert "float32[4, 2]" in repr(nd.empty((4, 2)))


@pytest.mark.parametrize(("shape", "dtype"), [((2, 2), "float32"), (4, "int32")])
def test_copyfrom_refuses_another_shape_or_dtype(shape: tuple[int, ...] | int, dtype: str) -> None:
    with pytest.raises(UsageError, match="must be equal"):
        nd.empty(4).copyfrom(np.zeros(shape, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "float8", "uint128", "<U3"])
def test_unknown_dtypes_are_refused_with_the_known(dtype: str) -> None:
    with pytest.raises(UsageError, match="float32"):
        nd.empty(4, dtype)


@pytest.mark.parametrize("shape", [(-1,), (2.5,), (True,)])
def test_shapes_are_whole_numbers(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="shape"):
        nd.empty(shape)


def test_the_only_cpu_of_this_process_is_0() -> None:
    assert fb.cpu() == fb.cpu(0)
    with pytest.raises(UsageError, match=r"cpu\(1\)"):
        fb.cpu(1)


def test_the_order_of_bytes_of_a_source_does_not_matter() -> None:
    values = np.arange(5, dtype=">f4")
    assert nd.array(values).numpy().tolist() == values.tolist()
    assert nd.empty(5).copyfrom(values).numpy().tolist() == values.tolist()


@pytest.mark.parametrize(
    "shape", [None, 1.5, "ab", (None,), True, -1, (2**62,), (2**70,), (1,) * 33, (1,) * 600]
)
def test_a_shape_that_cannot_be_is_refused(shape: object) -> None:
    with pytest.raises(UsageError):
        nd.empty(shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2**32, 2**32), (2**31, 2**31, 4), (2**50,), (0, 2**61)])
def test_a_shape_beyond_this_machine_is_refused_with_its_size(shape: tuple[int, ...]) -> None:
    try:
        assert nd.empty(shape, "int8").size == 0
    except UsageError as error:
        assert "no memory here" in str(error) or "dimension" in str(error)  # noqa: PT017


@pytest.mark.parametrize("source", [[[1], [2, 3]], "x", [2**70], [None], {}, object()])
def test_what_is_no_array_is_refused(source: object) -> None:
    with pytest.raises(UsageError):
        nd.array(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"seed": "x"}, {"seed": 0.5}, {"low": "a"}, {"high": []}])
def test_a_fill_of_no_numbers_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        nd.random(4, **given)  # type: ignore[arg-type]


def test_numpy_takes_the_elements() -> None:
    made = nd.array(np.arange(3, dtype=np.int16))
    assert isinstance(made, nd.HostArray)
    np.testing.assert_array_equal(made, [0, 1, 2])
    assert np.asarray(made, dtype=np.float64).dtype == np.float64
    assert np.asarray(made) is not made.data
