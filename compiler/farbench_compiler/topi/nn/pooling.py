"""Pooling: the greatest or the mean of each window, of whole images, or of parts of them."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir import expr as ir
from farbench_compiler.ir.expr import Expr, as_expr, cast
from farbench_compiler.te import IterVar, Tensor
from farbench_compiler.topi.arguments import Numbers, known, per_axis, refusal
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.nn.window import Padding, Window, padded, windows
from farbench_compiler.topi.tag import ELEMWISE

_AXES = "DHW"


def pool(
    data: Tensor, kernel: Numbers, stride: Numbers, padding: Padding, pool_type: str,
    ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Do as `pool2d` does without dilation, under the name until 2021."""
    return _pool(2, data, kernel, stride, 1, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def pool1d(
    data: Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Padding,
    pool_type: str, ceil_mode: bool = False, layout: str = "NCW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Pool along W; see `pool2d`."""
    return _pool(1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def pool2d(
    data: Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Padding,
    pool_type: str, ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Give the `max` or `avg` of each window along H and W; `padding` (top, left, bottom, right).

    `ceil_mode` lets a last window reach beyond the padding. A mean counts padding, unless
    `count_include_pad` is False, and never what lies beyond it.
    """
    return _pool(2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def pool3d(
    data: Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers, padding: Padding,
    pool_type: str, ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Pool along D, H and W; see `pool2d`."""
    return _pool(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad)  # fmt: skip


def _pool(
    count: int, data: Tensor, kernel: Numbers, stride: Numbers, dilation: Numbers,
    padding: Padding, pool_type: str, ceil_mode: bool, layout: str, count_include_pad: bool,
) -> Tensor:  # fmt: skip
    op, letters = f"nn.pool{count}d", _AXES[-count:]
    axes = Layout.parse(op, layout, letters, data)
    largest = _is_max(op, pool_type)
    sizes = axes.named(data.shape)
    taps = per_axis(op, "kernel", kernel, count)
    over = windows(
        op, [sizes[a] for a in letters], taps, stride, padding, dilation, ceil_mode=ceil_mode
    )
    near = padded(data, axes, over, te.min_value(data.dtype) if largest else 0, letters)
    steps = tuple(
        te.reduce_axis((0, k), name=f"k{a.lower()}") for k, a in zip(taps, letters, strict=True)
    )
    shape = axes.ordered(sizes | {a: w.out for a, w in zip(letters, over, strict=True)})

    def element(*position: Expr) -> Expr:
        at = axes.named(position)
        for a, w, k in zip(letters, over, steps, strict=True):
            at[a] = w.at(at[a], k)
        value = axes.read(near, at)
        return te.max(value, axis=steps) if largest else te.sum(value, axis=steps)

    pooled = te.compute(
        shape, element, name="pool_max" if largest else "pool_sum",
        tag="pool_max" if largest else "pool_sum",
    )  # fmt: skip
    if largest:
        return pooled

    def mean(*position: Expr) -> Expr:
        at = axes.named(position)
        counts = [
            _counted(w, at[a], ceil_mode, count_include_pad)
            for a, w in zip(letters, over, strict=True)
        ]
        return _shared(pooled(*position), counts)

    return te.compute(shape, mean, name="pool_avg", tag=ELEMWISE)


def _counted(w: Window, position: Expr, ceil_mode: bool, count_include_pad: bool) -> Expr:
    """Count the taps of a window that a mean counts."""
    beyond = w.stride - 1 if ceil_mode else 0
    bare = known(w.before) == 0 and known(w.after - beyond) == 0
    if not beyond and (count_include_pad or bare):
        return w.kernel
    first = position * w.stride - w.before
    last = first + w.span - 1
    if count_include_pad:
        return (te.min(last, w.size + w.after - beyond - 1) - first) // w.dilation + 1
    # The first tap inside, counted from a tap before the data in steps of the dilation.
    skipped = (te.max(-first, 0) + w.dilation - 1) // w.dilation
    begin = first + skipped * w.dilation
    return te.max((te.min(last, w.size - 1) - begin) // w.dilation + 1, 1)


def _shared(total: Expr, counts: Sequence[Expr]) -> Expr:
    """Divide a sum by a product of counts, which is one of floats where the sum is."""
    number = cast(total.dtype, counts[0])
    for count in counts[1:]:
        number = number * cast(total.dtype, count)
    return ir.divide(total, number)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Give the `max` or `avg` over all of H and W, whose sizes become 1."""
    return _adaptive("nn.global_pool", data, (1, 1), pool_type, layout)


def adaptive_pool(
    data: Tensor, output_size: Sequence[int], pool_type: str, layout: str = "NCHW"
) -> Tensor:
    """Part H and W in as many pieces as the output has; give the `max` or `avg` of each."""
    return _adaptive("nn.adaptive_pool", data, output_size, pool_type, layout)


def adaptive_pool1d(
    data: Tensor, output_size: Sequence[int], pool_type: str, layout: str = "NCW"
) -> Tensor:
    """Do as `adaptive_pool` does along W."""
    return _adaptive("nn.adaptive_pool1d", data, output_size, pool_type, layout)


def adaptive_pool3d(
    data: Tensor, output_size: Sequence[int], pool_type: str, layout: str = "NCDHW"
) -> Tensor:
    """Do as `adaptive_pool` does along D, H and W."""
    return _adaptive("nn.adaptive_pool3d", data, output_size, pool_type, layout)


def _adaptive(
    op: str, data: Tensor, output_size: Sequence[int], pool_type: str, layout: str
) -> Tensor:
    count = {"nn.adaptive_pool1d": 1, "nn.adaptive_pool3d": 3}.get(op, 2)
    letters = _AXES[-count:]
    axes = Layout.parse(op, layout, letters, data)
    largest = _is_max(op, pool_type)
    sizes = axes.named(data.shape)
    outs = per_axis(op, "output_size", output_size, count)
    pieces = [_Piece(sizes[a], out) for a, out in zip(letters, outs, strict=True)]
    steps = tuple(
        te.reduce_axis((0, p.longest), name=f"k{a.lower()}")
        for p, a in zip(pieces, letters, strict=True)
    )
    shape = axes.ordered(sizes | dict(zip(letters, map(as_expr, outs), strict=True)))

    def element(*position: Expr) -> Expr:
        at = axes.named(position)
        where = [p.holds(at[a], k) for a, p, k in zip(letters, pieces, steps, strict=True)]
        for a, p, k in zip(letters, pieces, steps, strict=True):
            at[a] = p.begin(at[a]) + k
        inside = [w for w in where if w is not None]
        value = axes.read(data, at)
        neutral = te.min_value(data.dtype) if largest else te.const(0, data.dtype)
        if inside:
            value = te.if_then_else(te.all(*inside), value, neutral)
        return te.max(value, axis=steps) if largest else te.sum(value, axis=steps)

    tag = "adaptive_pool_max" if largest else "adaptive_pool_sum"
    pooled = te.compute(shape, element, name=tag, tag=tag)
    if largest:
        return pooled

    def mean(*position: Expr) -> Expr:
        at = axes.named(position)
        counts = [p.length(at[a]) for a, p in zip(letters, pieces, strict=True)]
        return _shared(pooled(*position), counts)

    return te.compute(shape, mean, name="adaptive_pool_avg", tag=ELEMWISE)


class _Piece:
    """The pieces of one axis: from floor(i * size / out) to ceil((i + 1) * size / out)."""

    def __init__(self, size: Expr, out: int) -> None:
        self.size, self.out = size, out
        n = known(size)
        # Pieces are of one size where that is known to be so.
        self.even = out == 1 or (n is not None and n % out == 0)
        self.longest = size // out if self.even else (size + out - 1) // out + 1
        if n is not None and not self.even:
            self.longest = as_expr(max(self._end(i, n) - i * n // out for i in range(out)))

    def _end(self, i: int, n: int) -> int:
        return -(-(i + 1) * n // self.out)

    def begin(self, i: Expr) -> Expr:
        """Give the first element of piece i."""
        if self.out == 1:
            return as_expr(0)
        return i * self.longest if self.even else i * self.size // self.out

    def length(self, i: Expr) -> Expr:
        """Count the elements of piece i."""
        if self.even:
            return self.longest
        return ((i + 1) * self.size + self.out - 1) // self.out - self.begin(i)

    def holds(self, i: Expr, step: IterVar) -> Expr | None:
        """Tell whether a step is in piece i; None where all of them always are."""
        return None if self.even else step < self.length(i)


def _is_max(op: str, pool_type: str) -> bool:
    if pool_type not in ("max", "avg"):
        raise refusal(op, f"pool_type {pool_type!r} is unknown; give max or avg")
    return pool_type == "max"
