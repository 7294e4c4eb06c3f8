"""The loop IR of each primitive, as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farbench_compiler import te
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower

Build = Callable[[], tuple[te.Schedule, list[te.Tensor]]]


def _add(n: int | None = None) -> tuple[te.Schedule, list[te.Tensor], te.Tensor]:
    size = te.var("n") if n is None else n
    a = te.placeholder((size,), name="A")
    b = te.placeholder((size,), name="B")
    c = te.compute((size,), lambda i: a[i] + b[i], name="C")
    return te.create_schedule(c.op), [a, b, c], c


def _scale(n: int = 12, m: int = 10) -> tuple[te.Schedule, list[te.Tensor], te.Tensor]:
    a = te.placeholder((n, m), name="A")
    c = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="C")
    return te.create_schedule(c.op), [a, c], c


def _two_stages() -> tuple[te.Schedule, list[te.Tensor], te.Tensor, te.Tensor]:
    a = te.placeholder((16, 18), name="A")
    b = te.compute((16, 18), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((16, 16), lambda i, j: b[i, j] + b[i, j + 2], name="C")
    return te.create_schedule(c.op), [a, c], b, c


def _matmul(m: int, n: int, k: int) -> tuple[te.Schedule, list[te.Tensor], te.Tensor, te.IterVar]:
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_schedule(c.op), [a, b, c], c, r


def default() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, _, _ = _matmul(4, 6, 5)
    return sch, args


def split_dividing() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _add(64)
    sch[c].split(c.op.axis[0], factor=16)
    return sch, args


def split_with_a_tail() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _add(70)
    sch[c].split(c.op.axis[0], factor=16)
    return sch, args


def split_nparts() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _add(70)
    sch[c].split(c.op.axis[0], nparts=4)
    return sch, args


def split_symbolic() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _add()
    sch[c].split(c.op.axis[0], factor=16)
    return sch, args


def tile() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _scale()
    sch[c].tile(c.op.axis[0], c.op.axis[1], 4, 5)
    return sch, args


def tile_with_tails() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _scale()
    sch[c].tile(c.op.axis[0], c.op.axis[1], 5, 4)
    return sch, args


def fuse() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _scale()
    sch[c].fuse(*c.op.axis)
    return sch, args


def fuse_of_tiles() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _scale()
    xo, yo, _, _ = sch[c].tile(c.op.axis[0], c.op.axis[1], 5, 4)
    sch[c].parallel(sch[c].fuse(xo, yo))
    return sch, args


def reorder() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c, k = _matmul(4, 6, 5)
    i, j = c.op.axis
    sch[c].reorder(i, k, j)
    return sch, args


def vectorize() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _add()
    xo, xi = sch[c].split(c.op.axis[0], factor=8)
    sch[c].parallel(xo)
    sch[c].vectorize(xi)
    return sch, args


def unroll() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c = _add(10)
    _, xi = sch[c].split(c.op.axis[0], factor=4)
    sch[c].unroll(xi)
    return sch, args


def compute_at() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, b, c = _two_stages()
    xo, _ = sch[c].split(c.op.axis[0], factor=4)
    sch[b].compute_at(sch[c], xo)
    return sch, args


def compute_inline() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, b, _ = _two_stages()
    sch[b].compute_inline()
    return sch, args


def cache_write() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c, k = _matmul(60, 70, 8)
    cached = sch.cache_write(c, "local")
    _, yo, xi, yi = sch[c].tile(c.op.axis[0], c.op.axis[1], 14, 32)
    sch[c].unroll(xi)
    sch[c].vectorize(yi)
    sch[cached].compute_at(sch[c], yo)
    xc, yc = sch[cached].op.axis
    ko, ki = sch[cached].split(k, factor=4)
    sch[cached].reorder(ko, ki, xc, yc)
    for axis in (ki, xc):
        sch[cached].unroll(axis)
    sch[cached].vectorize(yc)
    return sch, args


def cache_read() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c, k = _matmul(16, 8, 5)
    panel = sch.cache_read(args[0], "global", [c])
    xo, _ = sch[c].split(c.op.axis[0], factor=4)
    sch[panel].compute_at(sch[c], xo)
    return sch, args


def rfactor() -> tuple[te.Schedule, list[te.Tensor]]:
    sch, args, c, k = _matmul(4, 6, 10)
    _, inner = sch[c].split(k, factor=4)
    partial = sch.rfactor(c, inner)
    assert isinstance(partial, te.Tensor)
    sch[partial].compute_at(sch[c], c.op.axis[0])
    return sch, args


def vectorize_reduce() -> tuple[te.Schedule, list[te.Tensor]]:
    x = te.placeholder((4, 30), name="X")
    k = te.reduce_axis((0, 30), name="k")
    y = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="Y")
    sch = te.create_schedule(y.op)
    sch[y].vectorize(sch[y].split(k, factor=8)[1])
    return sch, [x, y]


def padded_convolution() -> tuple[te.Schedule, list[te.Tensor]]:
    x = te.placeholder((4, 14, 14), name="X")
    w = te.placeholder((2, 4, 3, 3, 8), name="W")
    p = te.compute(
        (4, 16, 16),
        lambda c, h, v: te.if_then_else(
            te.all(h >= 1, h < 15, v >= 1, v < 15), x[c, h - 1, v - 1], 0.0
        ),
        name="P",
    )
    ci = te.reduce_axis((0, 4), name="ci")
    kh, kw = te.reduce_axis((0, 3), name="kh"), te.reduce_axis((0, 3), name="kw")
    y = te.compute(
        (16, 14, 14),
        lambda c, h, v: te.sum(
            p[ci, h + kh, v + kw] * w[c // 8, ci, kh, kw, c % 8], axis=[ci, kh, kw]
        ),
        name="Y",
    )
    sch = te.create_schedule(y.op)
    tile = sch.cache_write(y, "local")
    c, h, v = y.op.axis
    co, cc = sch[y].split(c, factor=8)
    vo, vi = sch[y].split(v, factor=7)
    sch[y].reorder(co, h, vo, vi, cc)
    sch[y].parallel(co)
    sch[tile].compute_at(sch[y], vo)
    tc, th, tv = sch[tile].op.axis
    sch[tile].reorder(ci, kh, kw, th, tv, tc)
    sch[tile].unroll(tv)
    sch[tile].vectorize(tc)
    sch[p].compute_at(sch[y], h)
    return sch, [x, w, y]


CASES: tuple[Build, ...] = (
    default, split_dividing, split_with_a_tail, split_nparts, split_symbolic, tile, tile_with_tails,
    fuse, fuse_of_tiles, reorder, vectorize, unroll, compute_at, compute_inline, cache_write,
    cache_read, rfactor, vectorize_reduce, padded_convolution,
)  # fmt: skip


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_primitive(build: Build, golden: Callable[[str, str], None]) -> None:
    sch, args = build()
    fn = lower(sch, args, name=build.__name__)
    verify(fn, "lowered")
    golden(build.__name__, to_text(fn) + "\n")
