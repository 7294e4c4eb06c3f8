"""Transposed convolutions: every element of the data adds its multiple of the kernel.

They are convolutions of the data, spread by the stride, by the kernel turned round.
"""

from __future__ import annotations

from collections.abc import Mapping

from farbench_compiler.ir.expr import Expr, as_expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import (
    Numbers,
    check_divides,
    check_same,
    per_axis,
    refusal,
)
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.nn.convolution import Convolution, OutDtype
from farbench_compiler.topi.nn.padding import spread
from farbench_compiler.topi.nn.window import Padding, padding_edges, windows


def conv1d_transpose_ncw(
    data: Tensor, kernel: Tensor, stride: Numbers, padding: Padding,
    out_dtype: OutDtype = None, output_padding: Numbers = 0,
) -> Tensor:  # fmt: skip
    """Give [N, O, (W - 1) * stride - padding + kernel + output_padding] of a kernel [I, O, W]."""
    return _transposed("NCW", data, kernel, stride, padding, out_dtype, output_padding, 1)


def group_conv1d_transpose_ncw(
    data: Tensor, kernel: Tensor, stride: Numbers, padding: Padding, out_dtype: OutDtype,
    output_padding: Numbers, groups: int,
) -> Tensor:  # fmt: skip
    """Do as `conv1d_transpose_ncw` does, group by group; the kernel is [I, O / groups, W]."""
    return _transposed("NCW", data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv2d_transpose_nchw(
    Input: Tensor, Filter: Tensor, strides: Numbers, padding: Padding,
    out_dtype: OutDtype = None, output_padding: Numbers = 0,
) -> Tensor:  # fmt: skip
    """Give what a convolution by `Filter` [I, O, H, W] with these strides would come from."""
    return _transposed("NCHW", Input, Filter, strides, padding, out_dtype, output_padding, 1)


def group_conv2d_transpose_nchw(
    data: Tensor, kernel: Tensor, stride: Numbers, padding: Padding, out_dtype: OutDtype,
    output_padding: Numbers, groups: int,
) -> Tensor:  # fmt: skip
    """Do as `conv2d_transpose_nchw` does, group by group; the kernel is [I, O / groups, H, W]."""
    return _transposed("NCHW", data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv3d_transpose_ncdhw(
    Input: Tensor, Filter: Tensor, strides: Numbers, padding: Padding,
    out_dtype: OutDtype = None, output_padding: Numbers = 0,
) -> Tensor:  # fmt: skip
    """Give what a convolution by `Filter` [I, O, D, H, W] with these strides would come from."""
    return _transposed("NCDHW", Input, Filter, strides, padding, out_dtype, output_padding, 1)


def _transposed(
    letters: str, data: Tensor, kernel: Tensor, stride: Numbers, padding: Padding,
    out_dtype: OutDtype, output_padding: Numbers, groups: int,
) -> Tensor:  # fmt: skip
    count = len(letters) - 2
    name = f"{'group_' if groups > 1 else ''}conv{count}d_transpose_{letters.lower()}"
    op = f"nn.{name}"
    layout = Layout.parse(op, letters, letters, data)
    Layout.parse(op, letters, letters, kernel)
    depth, filters, *spans = kernel.shape
    check_divides(op, "channels of the data", data.shape[1], groups)
    check_same(op, "channels of the data and of the kernel", data.shape[1], depth)
    steps = per_axis(op, "stride", stride, count)
    more = per_axis(op, "output_padding", output_padding, count, least=0)
    if any(extra >= step for extra, step in zip(more, steps, strict=True)):
        raise refusal(op, f"output_padding is {list(more)}, must be less than stride {list(steps)}")
    edges = padding_edges(op, padding, spans)
    none = [as_expr(0)] * 2
    before = [k - 1 - first for k, (first, _) in zip(spans, edges, strict=True)]
    after = [k - 1 - last + e for k, (_, last), e in zip(spans, edges, more, strict=True)]
    near = spread(data, [*none, *before], [*none, *after], [1, 1, *steps], 0, "data_pad")
    over = windows(op, near.shape[2:], spans, 1, 0)
    part = data.shape[1] // groups

    def weight(at: Mapping[str, Expr], c: Expr, taps: tuple[Expr, ...]) -> Expr:
        turned = [k - 1 - t for k, t in zip(spans, taps, strict=True)]
        if groups == 1:
            return kernel(c, at["C"], *turned)
        return kernel(at["C"] // filters * part + c, at["C"] % filters, *turned)

    made = Convolution(name, layout, over, filters * groups, part, as_expr(groups), as_expr(1))
    return made.of(near, weight, out_dtype)
