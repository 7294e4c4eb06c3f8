"""What the course teaches of expressions, from dtypes to scans and operators on whole tensors."""

from __future__ import annotations

from functools import partial

import numpy as np

from farbench import te, topi

from .lesson import Lesson, Made

N, M = 3, 4


def _matrix() -> tuple[te.Tensor, te.Var, te.Var]:
    n, m = te.var("n"), te.var("m")
    return te.placeholder((n, m), name="a"), n, m


def _plain(*args: te.Tensor | te.Var, of: te.Tensor) -> Made:
    return te.create_schedule(of.op), [*args]


def vector_add_of(dtype: str) -> Made:
    """Add vectors of a dtype."""
    a, b = (te.placeholder((100,), dtype=dtype) for _ in range(2))
    c = te.compute(a.shape, lambda i: a[i] + b[i])
    return _plain(a, b, c, of=c)


def vector_add_cast(dtype: str) -> Made:
    """Add vectors of floats as another dtype."""
    a, b = (te.placeholder((100,)) for _ in range(2))
    c = te.compute(a.shape, lambda i: a[i].astype(dtype) + b[i].astype(dtype))
    return _plain(a, b, c, of=c)


def any_shape() -> Made:
    """Add tensors of four sizes that have no names."""
    a = te.placeholder([te.var() for _ in range(4)])
    b = te.placeholder(a.shape)
    c = te.compute(a.shape, lambda *i: a[i] + b[i])
    return _plain(a, b, c, of=c)


def transpose() -> Made:
    """Turn a matrix round."""
    a, n, m = _matrix()
    b = te.compute((m, n), lambda i, j: a[j, i], "b")
    return _plain(a, b, of=b)


def flatten() -> Made:
    """Lay a matrix out as a vector."""
    a, n, m = _matrix()
    b = te.compute((m * n,), lambda i: a[i // m, i % m], name="b")
    return _plain(a, b, of=b)


def reshape() -> Made:
    """Lay a matrix out with other sizes."""
    a, _, m = _matrix()
    p, q = te.var("p"), te.var("q")
    b = te.compute((p, q), lambda i, j: a[(i * q + j) // m, (i * q + j) % m], name="b")
    return _plain(a, b, of=b)


def slices() -> Made:
    """Take a slice whose beginnings and steps are arguments of the function."""
    a, n, m = _matrix()
    bi, bj, si, sj = (te.var(name) for name in ("bi", "bj", "si", "sj"))
    b = te.compute(((n - bi) // si, (m - bj) // sj), lambda i, j: a[i * si + bi, j * sj + bj])
    return _plain(a, b, bi, si, bj, sj, of=b)


def lower_triangle() -> Made:
    """Keep what lies on the diagonal and below."""
    a, _, _ = _matrix()
    b = te.compute(a.shape, lambda i, j: te.if_then_else(i >= j, a[i, j], 0.0))
    return _plain(a, b, of=b)


def border() -> Made:
    """Put zeros around a matrix."""
    a, n, m = _matrix()
    p = 1
    b = te.compute(
        (n + p * 2, m + p * 2),
        lambda i, j: te.if_then_else(
            te.any(i < p, i >= n + p, j < p, j >= m + p), 0, a[i - p, j - p]
        ),
        name="b",
    )
    return _plain(a, b, of=b)


def inner() -> Made:
    """Keep what no border touches."""
    a, n, m = _matrix()
    b = te.compute(
        a.shape,
        lambda i, j: te.if_then_else(te.all(i > 0, i < n - 1, j > 0, j < m - 1), a[i, j], -1.0),
    )
    return _plain(a, b, of=b)


def sum_of_rows() -> Made:
    """Add up each row."""
    a, n, m = _matrix()
    j = te.reduce_axis((0, m), name="j")
    b = te.compute((n,), lambda i: te.sum(a[i, j], axis=j), name="b")
    return _plain(a, b, of=b)


def sum_of_all() -> Made:
    """Add up everything to a tensor without dimensions."""
    a, n, m = _matrix()
    i, j = te.reduce_axis((0, n), name="i"), te.reduce_axis((0, m), name="j")
    b = te.compute((), lambda: te.sum(a[i, j], axis=(i, j)), name="b")
    return _plain(a, b, of=b)


def product_of_rows() -> Made:
    """Multiply each row by a reduction of one's own."""
    a, n, m = _matrix()
    product = te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype=dtype))
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: product(a[i, k], axis=k), name="b")
    return _plain(a, b, of=b)


def fibonacci() -> Made:
    """Add up the two numbers before, from two ones on."""
    n = te.var("n")
    state = te.placeholder((n,))
    init = te.compute((2,), lambda _: 1.0)
    update = te.compute((n,), lambda i: state[i - 1] + state[i - 2])
    a = te.scan(init, update, state)
    return _plain(a, of=a)


def softmax() -> Made:
    """Give the softmax of rows, stage by stage on whole tensors."""
    x = te.placeholder((6, 10), name="x")
    top = topi.max(x, axis=1, keepdims=True)
    power = topi.exp(x - top)
    y = power / topi.sum(power, axis=1, keepdims=True)
    return _plain(x, y, of=y)


def dense_relu() -> Made:
    """Multiply by weights, add a bias, cut off what is negative."""
    x, w, b = (te.placeholder(s, name=n) for n, s in (("x", (5, 8)), ("w", (6, 8)), ("b", (6,))))
    y = topi.nn.relu(topi.nn.dense(x, w, b))
    s = te.create_schedule(y.op)
    te.schedule.AutoInlineInjective(s)
    return s, [x, w, b, y]


def convolution_bias_pooling() -> Made:
    """Convolve, add a bias and pool, all by operators on whole tensors."""
    x, w, b = (
        te.placeholder(s, name=n)
        for n, s in (("x", (1, 3, 8, 8)), ("w", (4, 3, 3, 3)), ("b", (4, 1, 1)))
    )
    conv = topi.nn.conv2d(x, w, strides=1, padding=1, dilation=1)
    y = topi.nn.pool2d(topi.nn.relu(topi.add(conv, b)), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    s = te.create_schedule(y.op)
    te.schedule.AutoInlineInjective(s)
    s[y].vectorize(y.op.axis[3])
    return s, [x, w, b, y]


def _convolved(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    near = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(near, (3, 3), axis=(2, 3))
    out = np.maximum(np.einsum("nchwij,ocij->nohw", view, w) + b, 0)
    return np.asarray(out.reshape(1, 4, 4, 2, 4, 2).max((3, 5)))


def _softmax(x: np.ndarray) -> np.ndarray:
    power = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(power / power.sum(1, keepdims=True))


_ONE = [(N, M)]
_SIZES = (N, M)
EXPRESSIONS = (
    *(
        Lesson(f"vector add {t}", partial(vector_add_of, t), [(100,)] * 2, np.add, dtype=t)
        for t in ("float16", "float64", "int8", "int16", "int32", "int64")
    ),
    Lesson(
        "vector add cast to int32",
        partial(vector_add_cast, "int32"),
        [(100,)] * 2,
        lambda a, b: a.astype("int32") + b.astype("int32"),
    ),
    Lesson("any shape", any_shape, [(2, 3, 4, 5)] * 2, np.add, (2, 3, 4, 5)),
    Lesson("transpose", transpose, _ONE, lambda a: a.T, _SIZES),
    Lesson("flatten", flatten, _ONE, lambda a: a.reshape(-1), _SIZES),
    Lesson("reshape", reshape, _ONE, lambda a: a.reshape(6, 2), (*_SIZES, 6, 2)),
    Lesson("slice of rows", slices, _ONE, lambda a: a[1::2, 1::1], (*_SIZES, 1, 2, 1, 1)),
    Lesson("slice of columns", slices, _ONE, lambda a: a[2::1, 0::2], (*_SIZES, 2, 1, 0, 2)),
    Lesson("lower triangle", lower_triangle, _ONE, np.tril, _SIZES),
    Lesson("border", border, _ONE, lambda a: np.pad(a, 1), _SIZES),
    Lesson(
        "inner",
        inner,
        _ONE,
        lambda a: np.pad(a[1:-1, 1:-1], 1, constant_values=-1),
        _SIZES,
    ),
    Lesson("sum of rows", sum_of_rows, _ONE, lambda a: a.sum(1), _SIZES),
    Lesson("sum of all", sum_of_all, _ONE, np.sum, _SIZES),
    Lesson("product of rows", product_of_rows, _ONE, lambda a: a.prod(1), _SIZES),
    Lesson(
        "fibonacci",
        fibonacci,
        [],
        lambda: np.array([1, 1, 2, 3, 5, 8, 13, 21, 34, 55], "float32"),
        (10,),
    ),
    Lesson("softmax", softmax, [(6, 10)], _softmax),
    Lesson(
        "dense and relu",
        dense_relu,
        [(5, 8), (6, 8), (6,)],
        lambda x, w, b: np.maximum(x @ w.T + b, 0),
    ),
    Lesson(
        "convolution, bias and pooling",
        convolution_bias_pooling,
        [(1, 3, 8, 8), (4, 3, 3, 3), (4, 1, 1)],
        _convolved,
    ),
)
