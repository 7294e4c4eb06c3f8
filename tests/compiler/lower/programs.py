"""Small tensor programs with what numpy says of them, for tests that schedule them at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr

Array = npt.NDArray[np.int64]
Size = int | Expr


@dataclass(frozen=True, repr=False)
class Program:
    """Inputs and one output of int32, and the same in numpy; `shapes` are those of the inputs."""

    inputs: tuple[te.Tensor, ...]
    output: te.Tensor
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Array]

    def __repr__(self) -> str:
        return f"Program({self.output.name} from {self.shapes})"


def _sizes(symbolic: bool, **sizes: int) -> tuple[Size, ...]:
    return tuple(te.var(name) if symbolic else n for name, n in sizes.items())


def chain(n: int, m: int, symbolic: bool) -> Program:
    """Two elementwise stages, the second reading a transpose."""
    a, b = _sizes(symbolic, n=n, m=m)
    x = te.placeholder((a, b), "int32", name="X")
    y = te.compute((a, b), lambda i, j: x[i, j] * 3 + 1, name="Y")
    z = te.compute((b, a), lambda i, j: y[j, i] - x[j, i], name="Z")
    return Program((x,), z, ((n, m),), lambda v: (v * 3 + 1 - v).T)


def stencil(n: int, m: int, symbolic: bool) -> Program:
    """A stage read at three neighbours, over a padded border."""
    a, b = _sizes(symbolic, n=n, m=m)
    x = te.placeholder((a, b), "int32", name="X")
    pad = te.compute(
        (a, b + 2),
        lambda i, j: te.if_then_else(te.all(j >= 1, j < b + 1), x[i, j - 1], 0),
        name="P",
    )
    s = te.compute((a, b), lambda i, j: pad[i, j] + pad[i, j + 1] * 2 + pad[i, j + 2], name="S")

    def reference(v: Array) -> Array:
        p = np.pad(v, ((0, 0), (1, 1)))
        return p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]

    return Program((x,), s, ((n, m),), reference)


def matmul(n: int, m: int, symbolic: bool) -> Program:
    """A product of matrices and an elementwise stage behind it."""
    inner = 5
    a, b, c = _sizes(symbolic, n=n, m=m, k=inner)
    x = te.placeholder((a, c), "int32", name="X")
    y = te.placeholder((c, b), "int32", name="Y")
    k = te.reduce_axis((0, c), name="k")
    p = te.compute((a, b), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name="P")
    z = te.compute((a, b), lambda i, j: p[i, j] + 1, name="Z")
    return Program((x, y), z, ((n, inner), (inner, m)), lambda v, w: v @ w + 1)


def packed(n: int, m: int, symbolic: bool) -> Program:
    """A product that reads its second operand from panels of 4 columns, filled up with zeros."""
    inner = 3
    a, b = _sizes(symbolic, n=n, m=m)
    x = te.placeholder((a, inner), "int32", name="X")
    y = te.placeholder((inner, b), "int32", name="Y")
    panels = te.compute(
        ((b + 3) // 4, inner, 4),
        lambda o, k, i: te.if_then_else(o * 4 + i < b, y[k, o * 4 + i], 0),
        name="B",
    )
    k = te.reduce_axis((0, inner), name="k")
    z = te.compute(
        (a, b), lambda i, j: te.sum(x[i, k] * panels[j // 4, k, j % 4], axis=k), name="Z"
    )
    return Program((x, y), z, ((n, inner), (inner, m)), lambda v, w: v @ w)


def rows(n: int, m: int, symbolic: bool) -> Program:
    """The greatest of each row subtracted, then the sum of squares of each column."""
    a, b = _sizes(symbolic, n=n, m=m)
    x = te.placeholder((a, b), "int32", name="X")
    k, r = te.reduce_axis((0, b), name="k"), te.reduce_axis((0, a), name="r")
    top = te.compute((a,), lambda i: te.max(x[i, k], axis=k), name="T")
    d = te.compute((a, b), lambda i, j: x[i, j] - top[i], name="D")
    z = te.compute((b,), lambda j: te.sum(d[r, j] * d[r, j], axis=r), name="Z")
    return Program(
        (x,), z, ((n, m),), lambda v: ((v - v.max(axis=1, keepdims=True)) ** 2).sum(axis=0)
    )


def strided(n: int, m: int, symbolic: bool) -> Program:
    """A convolution of stride 2 over a padded input, two reduce axes."""
    x = te.placeholder((n, m), "int32", name="X")
    w = te.placeholder((3, 3), "int32", name="W")
    pad = te.compute(
        (n + 2, m + 2),
        lambda i, j: te.if_then_else(
            te.all(i >= 1, i < n + 1, j >= 1, j < m + 1), x[i - 1, j - 1], 0
        ),
        name="P",
    )
    shape = ((n - 1) // 2 + 1, (m - 1) // 2 + 1)
    u, v = te.reduce_axis((0, 3), name="u"), te.reduce_axis((0, 3), name="v")
    z = te.compute(
        shape,
        lambda i, j: te.sum(pad[i * 2 + u, j * 2 + v] * w[u, v], axis=[u, v]),
        name="Z",
    )

    def reference(data: Array, weights: Array) -> Array:
        p = np.pad(data, 1)
        windows = np.lib.stride_tricks.sliding_window_view(p, (3, 3))[::2, ::2]
        return np.asarray(np.einsum("ijuv,uv->ij", windows, weights), np.int64)

    return Program((x, w), z, ((n, m), (3, 3)), reference)


def recurrence(n: int, m: int, symbolic: bool) -> Program:
    """Rows that follow from those before them, through a turned stage, and a stage behind."""
    a, b = _sizes(symbolic, n=n, m=m)
    x = te.placeholder((a, b), "int32", name="X")
    state = te.placeholder((a, b), "int32", name="S")
    first = te.compute((1, b), lambda _, j: x[0, j] + 1, name="first")
    turned = te.compute((a, b), lambda t, j: state[t - 1, b - 1 - j] - x[t, j], name="T")
    row = te.compute((a, b), lambda t, j: turned[t, j] * 2 + turned[t, b - 1 - j], name="R")
    scan = te.scan(first, row, state, name="scan")
    z = te.compute((a, b), lambda i, j: scan[i, j] - x[i, j], name="Z")

    def reference(v: Array) -> Array:
        out = [v[0] + 1] if n else []
        for now in v[1:]:
            t = out[-1][::-1] - now
            out.append(t * 2 + t[::-1])
        return np.reshape(np.asarray(out, np.int32), v.shape) - v

    return Program((x,), z, ((n, m),), reference)


Make = Callable[[int, int, bool], Program]
PROGRAMS: Sequence[Make] = (
    chain, stencil, matmul, packed, rows, strided, recurrence,
)  # fmt: skip
