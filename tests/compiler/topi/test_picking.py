"""Functions that reshape, join, cut, pick, place and add up, each against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import ops, te, topi
from farbench_compiler.errors import ScheduleError

from .evaluate import Array, check, evaluate, numbers

X, Y, Z = numbers(3, 4, 5), numbers(3, 2, 5, seed=1), numbers(1, 4, 1, seed=2)
POSITIVE = np.abs(X) + np.float32(1)
EDGES = np.array([np.nan, np.inf, -np.inf, -2.5, 0.0, 3.0], np.float32)
ROWS = np.arange(8, dtype=np.int32).reshape(4, 2) % 5
PLACES = np.array([[0, 3, 1], [2, 2, 9]], np.int32)
Case = tuple[Callable[..., te.Tensor], list[Array], Any]

CASES: dict[str, Case] = {
    "squeeze": (topi.squeeze, [X[:1, :, :1]], X[0, :, 0]),
    "squeeze of one": (lambda x: topi.squeeze(x, -1), [X[:1, :, :1]], X[:1, :, 0]),
    "reshape": (lambda x: topi.reshape(x, (5, -1, 2)), [X], X.reshape(5, -1, 2)),
    "reshape to one": (lambda x: topi.reshape(x, [-1]), [X], X.reshape(-1)),
    "broadcast_to": (
        lambda x: topi.broadcast_to(x, (2, 3, 4, 6)), [Z], np.broadcast_to(Z, (2, 3, 4, 6))
    ),
    "flip": (lambda x: topi.flip(x, 1), [X], X[:, ::-1]),
    "tile": (lambda x: topi.tile(x, (2, 1, 2, 3)), [X], np.tile(X, (2, 1, 2, 3))),
    "repeat": (lambda x: topi.repeat(x, 3, -1), [X], np.repeat(X, 3, -1)),
    "shape": (topi.shape, [X], np.array([3, 4, 5], np.int32)),
    "concatenate": (lambda *x: topi.concatenate(x, 1), [X, Y, X], np.concatenate([X, Y, X], 1)),
    "stack": (lambda *x: topi.stack(x, -1), [X, X + 1], np.stack([X, X + 1], -1)),
    "split": (lambda x: topi.split(x, 2, 1)[1], [X], np.split(X, 2, 1)[1]),
    "split at places": (lambda x: topi.split(x, (1, 3), 1)[2], [X], np.split(X, (1, 3), 1)[2]),
    "strided_slice": (
        lambda x: topi.strided_slice(x, (2, -3, 0), (0, 9, 5), (-1, 2, 3)), [X],
        X[2:0:-1, -3:9:2, 0:5:3],
    ),
    "take": (topi.take, [X, PLACES], np.take(X, PLACES, mode="clip")),
    "take of an axis": (
        lambda x, i: topi.take(x, i, 1), [X, PLACES], np.take(X, PLACES, 1, mode="clip")
    ),
    "take around": (
        lambda x, i: topi.take(x, i, 2, mode="wrap"), [X, PLACES - 3],
        np.take(X, PLACES - 3, 2, mode="wrap"),
    ),
    "gather": (
        lambda x, i: topi.gather(x, 1, i), [X[0], ROWS],
        np.take_along_axis(X[0], ROWS, 1),
    ),
    "where": (topi.where, [X > 0, X, Z], np.where(X > 0, X, Z)),
    "where of numbers": (topi.where, [PLACES % 2, PLACES, -PLACES],
                         np.where(PLACES % 2, PLACES, -PLACES)),
    "one_hot": (
        lambda i: topi.one_hot(i, 2.0, -1.0, 4, 1, "float32"), [PLACES],
        np.where(PLACES[:, None, :] == np.arange(4)[None, :, None], 2.0, -1.0),
    ),
    "cumsum": (lambda x: topi.cumsum(x, 1), [X], np.cumsum(X, 1)),
    "cumsum of all": (topi.cumsum, [X], np.cumsum(X)),
    "cumsum without itself": (
        lambda x: topi.cumsum(x, 0, exclusive=True), [X], np.cumsum(X, 0) - X
    ),
    "cumprod": (lambda x: topi.cumprod(x, -1, "float64"), [X], np.cumprod(X, -1, "f8")),
    "argmax": (lambda x: topi.argmax(x, 1), [X], X.argmax(1)),
    "argmax of all": (topi.argmax, [X], X.argmax()),
    "argmax of two": (
        lambda x: topi.argmax(x, (0, 2)), [X], X.transpose(1, 0, 2).reshape(4, -1).argmax(1)
    ),
    "argmax kept": (lambda x: topi.argmax(x, -1, True), [X], X.argmax(-1, keepdims=True)),
    "argmax of equals": (topi.argmax, [PLACES], PLACES.argmax()),
    "the last of equals": (
        lambda x: topi.argmax(x, 1, select_last_index=True), [PLACES % 3 // 2], [2, 1]
    ),
    "argmin": (lambda x: topi.argmin(x, 2), [X], X.argmin(2)),
    "argmax of NaN": (topi.argmax, [EDGES], EDGES.argmax()),
    "argmin of bytes": (
        lambda x: topi.argmin(x, 1), [PLACES.astype(np.uint8)], PLACES.argmin(1)
    ),
    "all": (lambda x: topi.all(x, 1), [X > -0.9], (X > -0.9).all(1)),
    "any": (lambda x: topi.any(x, (0, 2), True), [X > 0.9], (X > 0.9).any((0, 2), keepdims=True)),
    "identity": (topi.identity, [X], X),
    "negative": (topi.negative, [X], -X),
    "logical_not": (topi.logical_not, [X > 0], X <= 0),
    "bitwise_not": (topi.bitwise_not, [PLACES], ~PLACES),
    "sign": (topi.sign, [X], np.sign(X)),
    "sign of edges": (topi.sign, [EDGES], [0, 1, -1, -1, 0, 1]),
    "clip": (lambda x: topi.clip(x, -0.5, 0.25), [X], np.clip(X, -0.5, 0.25)),
    "cast": (lambda x: topi.cast(x, "int32"), [X * 9], (X * 9).astype("int32")),
    "isnan": (topi.isnan, [EDGES], np.isnan(EDGES)),
    "isinf": (topi.isinf, [EDGES], np.isinf(EDGES)),
    "isfinite": (topi.isfinite, [EDGES], np.isfinite(EDGES)),
    "elemwise_sum": (lambda *x: topi.elemwise_sum(x), [X, X, X], X * 3),
    "full_like": (lambda x: topi.full_like(x, 2), [X], np.full_like(X, 2)),
} | {
    name: (getattr(topi, name), [POSITIVE if name in ("log2", "log10", "acosh") else X],
           getattr(np, of)(POSITIVE if name in ("log2", "log10", "acosh") else X))
    for name, of in {
        "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "asin": "arcsin",
        "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
        "atanh": "arctanh", "exp2": "exp2", "log2": "log2", "log10": "log10", "log1p": "log1p",
    }.items()
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_numpy_does(case: Case) -> None:
    function, arrays, wanted = case
    check(function, arrays, wanted)


def test_tensors_of_nothing_but_numbers() -> None:
    np.testing.assert_array_equal(
        evaluate(lambda: topi.full((2, 3), "int32", 7)), np.full((2, 3), 7)
    )
    np.testing.assert_array_equal(evaluate(lambda: topi.arange(1, 8, 2, "int32")), [1, 3, 5, 7])
    np.testing.assert_array_equal(evaluate(lambda: topi.arange(4)), np.arange(4, dtype="f4"))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_the_default_schedule_cumulates_and_places(axis: int) -> None:
    for function, wanted in (
        (topi.cumsum, np.cumsum(X, axis)),
        (topi.argmax, X.argmax(axis)),
        (topi.argmin, X.argmin(axis)),
    ):
        for parallel in (False, True):
            schedule, args = ops.program(function, X.shape, axis=axis, parallel=parallel)
            got = np.zeros(wanted.shape, str(args[-1].dtype))
            fb.build(schedule, args)(X, got)
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(n=st.integers(1, 200), m=st.integers(1, 3))
def test_places_in_rows_of_any_length(n: int, m: int) -> None:
    x = np.random.default_rng(n).integers(-3, 4, (m, n)).astype(np.float32)
    schedule, args = ops.program(topi.argmax, x.shape, axis=1)
    got = np.zeros(m, np.int32)
    fb.build(schedule, args)(x, got)
    np.testing.assert_array_equal(got, x.argmax(1))


A = te.placeholder((3, 4), name="A")
PLACE = te.placeholder((2,), "int32", name="I")
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "squeeze": (lambda: topi.squeeze(A, 0), "topi.squeeze: dimension 0 of A is 3, not 1"),
    "reshape": (lambda: topi.reshape(A, (5, 2)), "topi.reshape: the elements of A .* 12 and 10"),
    "two open": (lambda: topi.reshape(A, (-1, -1)), "topi.reshape: 2 dimensions are -1"),
    "broadcast_to": (lambda: topi.broadcast_to(A, (2, 4)), "topi.broadcast_to: dimension 0 of A"),
    "flip": (lambda: topi.flip(A, 2), "topi.flip: axis 2 is outside of the 2 dimensions of A"),
    "concatenate": (lambda: topi.concatenate([A, PLACE]), "topi.concatenate: I has 1 dimensions"),
    "nothing": (lambda: topi.concatenate([]), "topi.concatenate: there is nothing to join"),
    "split": (lambda: topi.split(A, 5, 1), "topi.split: 5 does not divide the 4 elements"),
    "slice": (lambda: topi.strided_slice(A, (0,), (1, 2)), "topi.strided_slice: 1 begin, 2 end"),
    "take": (lambda: topi.take(A, A), "topi.take: A is float32; indices are integers"),
    "mode": (lambda: topi.take(A, PLACE, mode="no"), "topi.take: mode is 'no'; give 'clip'"),  # type: ignore[arg-type]
    "gather": (lambda: topi.gather(A, 0, PLACE), "topi.gather: I has 1 dimensions, expected 2"),
    "one_hot": (lambda: topi.one_hot(PLACE, 1, 0, 3, 5, "int8"), "topi.one_hot: axis 5 is outside"),
    "argmax": (lambda: topi.argmax(A, 2), "argmax: axis 2 is outside of the 2 dimensions of A"),
    "all": (lambda: topi.all(A), "topi.all: A is float32, not bool"),
    "repeat": (lambda: topi.repeat(A, 0, 0), "topi.repeat: cannot repeat 0 times"),
    "arange": (lambda: topi.arange(0, 3, 0), "topi.arange: start, stop and step must be numbers"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_names_the_operator(wrong: tuple[Callable[[], Any], str]) -> None:
    call, why = wrong
    with pytest.raises(ScheduleError, match=why):
        call()
