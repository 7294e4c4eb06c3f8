"""Convolutions of bytes and bfloat16: exact or within the rounding of float32, on every machine."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from farbench_compiler import ops
from farbench_compiler.build import build
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.bfloat import BFLOAT16
from farbench_compiler.lower import lower
from tests.compiler.llvm.jit import aligned, run

from .programs import Array, Place

NATIVE = Place("native", partial(run, target="native"))
DTYPES = ("int8", "uint8", "bfloat16")


def operands(dtype: str, shape: tuple[int, ...], weights: tuple[int, ...]) -> tuple[Array, Array]:
    rng = np.random.default_rng(sum(shape))
    if dtype == "bfloat16":
        x, w = (rng.standard_normal(s).astype(BFLOAT16) for s in (shape, weights))
        return x, w
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)
    return x, rng.integers(-128, 127, weights, endpoint=True, dtype="int8")


def reference(x: Array, w: Array, stride: int, padding: int, dilation: int) -> Array:
    """Convolve NCHW by OIHW in double precision, which is exact for bytes."""
    padded = np.pad(x.astype("f8"), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    high, broad = ((k - 1) * dilation + 1 for k in w.shape[2:])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (high, broad), (2, 3))
    taken = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    wanted: Array = np.einsum("nchwij,ocij->nohw", taken, w.astype("f8"))
    return wanted


def check(
    place: Place,
    dtype: str,
    size: tuple[int, int, int, int],
    kernel: int = 3,
    stride: int = 1,
    padding: int = 1,
    dilation: int = 1,
    *,
    held: bool = False,
    parallel: bool = False,
) -> None:
    """Compare a convolution with numpy's; `size` is cin, cout, height, width."""
    cin, cout, height, width = size
    x, w = operands(dtype, (2, cin, height, width), (cout, cin, kernel, kernel))
    schedule, args = ops.conv2d(
        2, height, width, cin, cout, kernel, stride, padding, dtype, place.target,
        dilation=dilation, weight=w if held else None, parallel=parallel,
    )  # fmt: skip
    wanted = reference(x, w, stride, padding, dilation)
    of = "float32" if dtype == "bfloat16" else "int32"
    got = aligned(np.full(wanted.shape, 77, of))
    inputs = [aligned(x)] if held else [aligned(x), aligned(w)]
    assert place.run(lower(schedule, args), [*inputs, got]) == 0
    if of == "int32":
        np.testing.assert_array_equal(got, wanted)
        return
    most = reference(np.abs(x), np.abs(w), stride, padding, dilation).max()
    limit = (cin * kernel * kernel + 2) * 2.0**-24 * float(most)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=limit)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_dtype_on_any_machine(dtype: str, held: bool, place: Place) -> None:
    check(place, dtype, (6, 19, 7, 9), held=held)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 40), st.integers(5, 9), st.integers(5, 20)),
    st.sampled_from([1, 3]), st.sampled_from([1, 2]), st.integers(0, 2), st.sampled_from([1, 2]),
    st.sampled_from(DTYPES), st.booleans(), st.booleans(),
)  # fmt: skip
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_any_geometry_here(
    size: tuple[int, int, int, int], kernel: int, stride: int, padding: int, dilation: int,
    dtype: str, held: bool, parallel: bool,
) -> None:  # fmt: skip
    check(NATIVE, dtype, size, kernel, stride, padding, dilation, held=held, parallel=parallel)


@pytest.mark.parametrize(
    ("target", "dtype", "instruction"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=icelake-server", "int8", "vpdpbusd"),
        ("graviton2", "int8", "sdot"),
        ("graviton3", "bfloat16", "bfdot"),
    ],
)
def test_the_instruction_of_the_target(target: str, dtype: str, instruction: str) -> None:
    schedule, args = ops.conv2d(1, 14, 14, 64, 64, 3, 1, 1, dtype, target)
    lines = build(schedule, args, target).get_source("asm").splitlines()
    assert sum(instruction in line.split()[:2] for line in lines) >= 12


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(ScheduleError, match=r"expected int8\[4, 3, 3, 3\]"):
        ops.conv2d(1, 8, 8, 3, 4, 3, dtype="int8", weight=np.zeros((4, 3, 1, 1), "int8"))
