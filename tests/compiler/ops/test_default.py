"""The default schedule: right for every kind of program, and in vectors where it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import farbench as fb
from farbench_compiler import ops, te, topi
from farbench_compiler.build import build
from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.tensor import Tensor

from .programs import Array, Place, numbers


@dataclass(frozen=True)
class Case:
    """A computation of tensors of some shapes, and the same in numpy."""

    compute: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    numpy: Callable[..., Array]
    options: dict[str, Any] = field(default_factory=dict)


def windows(x: Array, taps: int, stride: int) -> Array:
    return sliding_window_view(x, (taps, taps), (2, 3))[:, :, ::stride, ::stride]


def softmax(x: Array) -> Array:
    power = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(power / power.sum(1, keepdims=True))


def batch_norm(x: Array, gamma: Array, beta: Array, mean: Array, var: Array) -> Array:
    gamma, beta, mean, var = (v[:, None, None] for v in (gamma, beta, mean, var))
    return np.asarray((x - mean) / np.sqrt(var + 1e-5) * gamma + beta)


def normal(x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    positive = topi.multiply(var, var)
    return topi.nn.batch_norm(x, gamma, beta, mean, positive)[0]


CASES = {
    "elements": Case(topi.nn.relu, ((5, 33, 3),), lambda x: np.maximum(x, 0)),
    "chain": Case(lambda x: topi.exp(topi.add(x, 1.0)), ((77,),), lambda x: np.exp(x + 1)),
    "broadcast": Case(topi.add, ((5, 10, 33), (10, 1)), lambda a, b: a + b),
    "transpose": Case(topi.transpose, ((37, 50),), lambda x: x.T),
    "transpose of three": Case(
        topi.transpose, ((3, 20, 35),), lambda x: x.transpose(0, 2, 1), {"axes": (0, 2, 1)}
    ),
    "sum of rows": Case(topi.sum, ((9, 77),), lambda x: x.sum(1), {"axis": 1}),
    "sum of columns": Case(topi.sum, ((50, 77),), lambda x: x.sum(0), {"axis": 0}),
    "sum of the middle": Case(topi.sum, ((4, 50, 30),), lambda x: x.sum(1), {"axis": 1}),
    "sum of both ends": Case(topi.sum, ((4, 5, 30),), lambda x: x.sum((0, 2)), {"axis": (0, 2)}),
    "sum of all": Case(topi.sum, ((70, 77),), lambda x: np.asarray(x.sum())),
    "largest": Case(topi.max, ((9, 77),), lambda x: x.max(1), {"axis": 1}),
    "mean": Case(topi.mean, ((3, 4, 7, 7),), lambda x: x.mean((2, 3)), {"axis": (2, 3)}),
    "softmax": Case(topi.nn.softmax, ((5, 77),), softmax),
    "matmul": Case(topi.nn.matmul, ((20, 30), (30, 25)), lambda a, b: a @ b),
    "dense": Case(topi.nn.dense, ((20, 30), (25, 30)), lambda a, b: a @ b.T),
    "pooling": Case(
        topi.nn.pool2d, ((1, 5, 13, 13),), lambda x: windows(x, 3, 2).max((4, 5)),
        {"kernel": (3, 3), "stride": (2, 2), "dilation": (1, 1), "padding": (0, 0, 0, 0),
         "pool_type": "max"},
    ),
    "batch_norm": Case(
        normal, ((2, 5, 6, 7), *((5,),) * 4), lambda x, g, b, m, v: batch_norm(x, g, b, m, v * v)
    ),
    "conv2d": Case(
        topi.nn.conv2d_nchw, ((1, 5, 9, 9), (4, 5, 3, 3)),
        lambda x, w: np.einsum("nchwij,ocij->nohw", windows(x, 3, 1), w),
        {"stride": 1, "padding": 0, "dilation": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("parallel", [False, True], ids=["alone", "parallel"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_any_program_gives_what_numpy_gives(case: Case, parallel: bool, place: Place) -> None:
    inputs = [numbers(shape, "float32", seed) for seed, shape in enumerate(case.shapes)]
    wanted = case.numpy(*(x.astype(np.float64) for x in inputs))
    made = ops.program(
        case.compute, *case.shapes, target=place.target, parallel=parallel, **case.options
    )
    got = place.compute(made, inputs, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    axes=st.sets(st.integers(0, 3)),
    parallel=st.booleans(),
    dtype=st.sampled_from(["int32", "int64", "uint8"]),
)
def test_sums_over_any_axes(shape: list[int], axes: set[int], parallel: bool, dtype: str) -> None:
    over = tuple(sorted(axis for axis in axes if axis < len(shape)))
    schedule, args = ops.program(topi.sum, shape, dtype=dtype, parallel=parallel, axis=over)
    x = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    wanted = x.sum(over, dtype=dtype)
    got = np.full(wanted.shape, 7, dtype)
    fb.build(schedule, args)(x, got)
    np.testing.assert_array_equal(got, wanted)


def test_one_library_serves_every_size() -> None:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    c = topi.sum(topi.exp(a), axis=1)
    module = fb.build(ops.default_schedule(c), [a, c])
    for shape in ((3, 5), (70, 33), (1, 1000)):
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        got = np.zeros(shape[0], np.float32)
        module(x, got)
        np.testing.assert_allclose(got, np.exp(x).sum(1), rtol=1e-4)


@pytest.mark.parametrize(
    ("compute", "options"),
    [(topi.nn.relu, {}), (topi.sum, {"axis": 1}), (topi.sum, {"axis": 0}), (topi.sum, {})],
    ids=["elements", "rows", "columns", "all"],
)
def test_loops_are_in_vectors(compute: Callable[..., Tensor], options: dict[str, Any]) -> None:
    program = ops.program(compute, (64, 128), target="x86-64-v4", **options)
    assert "zmm" in build(*program, target="x86-64-v4").get_source("asm")


def test_costly_elements_are_computed_once() -> None:
    a = te.placeholder((8, 64), name="A")
    power = topi.exp(a)
    c = topi.divide(power, topi.sum(power, axis=1, keepdims=True))
    text = build(ops.default_schedule(c), [a, c]).get_source("ll")
    names = [line for line in text.splitlines() if line.startswith("define") and "exp" in line]
    assert len(names) <= 1  # LLVM inlines what is called once


def test_a_program_that_computes_nothing_is_refused() -> None:
    with pytest.raises(ScheduleError, match="gives its arguments back; nothing to compute"):
        ops.program(lambda a: a, (3,))
    with pytest.raises(ScheduleError, match="2 dtypes for 1 shapes; give each one"):
        ops.program(topi.exp, (3,), dtype=["float32", "float64"])
