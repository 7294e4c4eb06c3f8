"""Normalisations against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi import nn
from tests.compiler.topi.evaluate import Array, check, numbers

X = numbers(3, 6, 4, 5) + 2
# Called with as many tensors as there are arrays.
ANY: Any = nn


def along(x: Array, axes: tuple[int, ...]) -> Array:
    """Give a tensor that lies along axes of X the rank of X."""
    return x.reshape([X.shape[d] if d in axes else 1 for d in range(X.ndim)])


def normalised(x: Array, over: tuple[int, ...], epsilon: float) -> Array:
    wide = x.astype("f8")
    mean, variance = wide.mean(over, keepdims=True), wide.var(over, keepdims=True)
    return np.asarray((wide - mean) / np.sqrt(variance + epsilon))


@pytest.mark.parametrize("axis", [None, 1, -1, 0])
def test_batch_norm(axis: int | None) -> None:
    at = 1 if axis is None else axis % 4
    gamma, beta, mean, variance = (numbers(X.shape[at], seed=i) + 2 for i in range(4))
    wide = (along(p, (at,)) for p in (gamma, beta, mean, variance))
    g, b, m, v = wide
    given = [X, gamma, beta, mean, variance]
    plain = (X - m) / np.sqrt(v + 1e-3)
    check(lambda *a: ANY.batch_norm(*a, axis, 1e-3)[0], given, plain * g + b)
    check(lambda *a: ANY.batch_norm(*a, axis, 1e-3, center=False)[0], given, plain * g)
    check(lambda *a: ANY.batch_norm(*a, axis, 1e-3, scale=False)[0], given, plain + b)
    check(lambda *a: ANY.batch_norm(*a, axis)[1], given, mean)


def test_batch_norm_in_training() -> None:
    given = [X, *(numbers(6, seed=i) + 2 for i in range(4))]
    over = (0, 2, 3)
    wanted = normalised(X, over, 1e-5) * along(given[1], (1,)) + along(given[2], (1,))
    check(lambda *a: ANY.batch_norm(*a, training=True)[0], given, wanted)
    mean = given[3] * 0.7 + X.mean(over) * 0.3
    check(lambda *a: ANY.batch_norm(*a, training=True, momentum=0.3)[1], given, mean)
    variance = given[4] * 0.7 + X.var(over) * 0.3
    check(lambda *a: ANY.batch_norm(*a, training=True, momentum=0.3)[2], given, variance)


@pytest.mark.parametrize("axes", [(3,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_layer_norm(dtype: str, axes: tuple[int, ...]) -> None:
    shape = [X.shape[d] for d in axes]
    x, gamma, beta = (a.astype(dtype) for a in (X, numbers(*shape), numbers(*shape, seed=1)))
    plain = normalised(x, axes, 1e-5) * along(gamma, axes)
    rtol, atol = (2e-3, 2e-3) if dtype == "float16" else (2e-5, 1e-5)
    wanted = plain + along(beta, axes)
    check(lambda *a: ANY.layer_norm(*a, list(axes)), [x, gamma, beta], wanted, rtol, atol)
    check(lambda a, g: nn.layer_norm(a, g, None, axes), [x, gamma], plain, rtol, atol)


def test_instance_norm() -> None:
    gamma, beta = numbers(6), numbers(6, seed=1)
    wanted = normalised(X, (2, 3), 1e-2) * along(gamma, (1,)) + along(beta, (1,))
    check(lambda *a: ANY.instance_norm(*a, 1, [2, 3], 1e-2), [X, gamma, beta], wanted)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups: int) -> None:
    gamma, beta = numbers(6), numbers(6, seed=1)
    parts = X.reshape(3, groups, -1)
    plain = normalised(parts, (2,), 1e-5).reshape(X.shape)
    wanted = plain * along(gamma, (1,)) + along(beta, (1,))
    check(lambda *a: ANY.group_norm(*a, groups, 1, [2, 3]), [X, gamma, beta], wanted)


def test_group_norm_with_channels_last() -> None:
    x, gamma = np.ascontiguousarray(np.moveaxis(X, 1, -1)), numbers(6)
    plain = normalised(X.reshape(3, 2, -1), (2,), 1e-5).reshape(X.shape)
    wanted = np.moveaxis(plain, 1, -1) * gamma
    check(lambda a, g: nn.group_norm(a, g, None, 2, -1, (1, 2)), [x, gamma], wanted)


@pytest.mark.parametrize("axes", [(3,), (1, 3)])
def test_rms_norm(axes: tuple[int, ...]) -> None:
    shape = [X.shape[d] for d in axes]
    weight, bias = numbers(*shape), numbers(*shape, seed=1)
    root = np.sqrt((X.astype("f8") ** 2).mean(axes, keepdims=True) + 1e-5)
    wanted = X / root * along(weight, axes)
    check(lambda a, w: nn.rms_norm(a, w, None, axes), [X, weight], wanted)
    check(lambda *a: ANY.rms_norm(*a, axes), [X, weight, bias], wanted + along(bias, axes))


def test_l2_normalize() -> None:
    for axes in (1, (2, 3), None):
        total = (X.astype("f8") ** 2).sum(axes, keepdims=axes is not None)
        check(lambda a, d=axes: nn.l2_normalize(a, 0.5, d), [X], X / np.sqrt(total))
    small = X * 1e-3
    check(lambda a: nn.l2_normalize(a, 4.0, 1), [small], small / 2)


@pytest.mark.parametrize(("axis", "size"), [(1, 3), (1, 5), (3, 3), (1, 1)])
def test_lrn(axis: int, size: int) -> None:
    squares = np.moveaxis(X.astype("f8") ** 2, axis, -1)
    near = np.pad(squares, [(0, 0)] * 3 + [(size // 2,) * 2])
    sums = np.lib.stride_tricks.sliding_window_view(near, size, -1).sum(-1)
    wanted = X / (1.5 + 0.1 / size * np.moveaxis(sums, -1, axis)) ** 0.6
    check(lambda a: nn.lrn(a, size, axis, 0.1, 0.6, 1.5), [X], wanted)


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("layer_norm", ((6,), (6,), 3), "must agree, got 5 and 6"),
        ("layer_norm", ((5,), (5,), (3, 3)), "each once"),
        ("instance_norm", ((6,), (6,), 1, (1, 2)), "hold the channel axis 1"),
        ("group_norm", ((6,), (6,), 4, 1, (2, 3)), "4 does not divide the 6 channels"),
        ("batch_norm", ((6,), (6,), (6,), (5,)), "must agree, got 6 and 5"),
        ("batch_norm", ((6,), (6,), (6,), (6,), 7), "axis 7 is outside"),
        ("rms_norm", ((5,), None, 4), "axis 4 is outside"),
    ],
)
def test_what_cannot_be(name: str, arguments: tuple[Any, ...], what: str) -> None:
    x = te.placeholder((3, 6, 4, 5))
    given = [
        te.placeholder(a) if i < 4 and isinstance(a, tuple) and i < _tensors(name) else a
        for i, a in enumerate(arguments)
    ]
    with pytest.raises(ScheduleError, match=rf"topi\.nn\.{name}: .*{what}"):
        getattr(nn, name)(x, *given)


def _tensors(name: str) -> int:
    return 4 if name == "batch_norm" else 2


def test_what_must_be_floats_or_odd() -> None:
    with pytest.raises(ScheduleError, match=r"topi\.nn\.l2_normalize: .*not a float"):
        nn.l2_normalize(te.placeholder((3, 4), "int32"), 1.0)
    with pytest.raises(ScheduleError, match=r"topi\.nn\.lrn: size is 4, must be odd"):
        nn.lrn(te.placeholder((3, 4)), 4)
