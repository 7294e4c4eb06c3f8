"""Convolution of data whose channels lie in blocks: [N, channel block, H, W, channel]."""

from __future__ import annotations

from collections.abc import Mapping

from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import (
    Numbers,
    check_divides,
    check_rank,
    check_same,
    known,
    refusal,
)
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.nn.convolution import Convolution, OutDtype
from farbench_compiler.topi.nn.window import Padding, windows


def conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    stride: Numbers,
    padding: Padding,
    dilation: Numbers = 1,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: OutDtype = "float32",
) -> Tensor:
    """Convolve by a kernel [O block, I block, H, W, I, O]; the output's blocks are the kernel's.

    A kernel of fewer input channels than the data have means groups. `layout` and `out_layout`
    say the same again, as NCHW16c does.
    """
    op = "nn.conv2d_NCHWc"
    check_rank(op, kernel, 6)
    axes = Layout.parse(op, layout, "NHW", data)
    if axes.letters != "NCHWc" or Layout.parse(op, out_layout, "NHW") != axes:
        raise refusal(op, f"layouts {layout!r} and {out_layout!r}; only NCHW with a block c fits")
    blocks, inner_blocks, height, width, inner, block = kernel.shape
    sizes = axes.named(data.shape)
    check_same(op, "channels of a block of the data and of the kernel", sizes["c"], inner)
    have, take = known(sizes["C"]), known(inner_blocks)
    groups = sizes["C"] // inner_blocks
    if have is not None and take is not None:
        check_divides(op, "channel blocks of the data", sizes["C"], take)
        check_divides(op, "channel blocks of the output", blocks, have // take)
    over = windows(op, [sizes["H"], sizes["W"]], (height, width), stride, padding, dilation)

    def weight(at: Mapping[str, Expr], c: Expr, taps: tuple[Expr, ...]) -> Expr:
        return kernel(at["C"], c // inner, *taps, c % inner, at["c"])

    made = Convolution("conv2d_NCHWc", axes, over, blocks, inner_blocks * inner, groups, block)
    return made.of(data, weight, out_dtype)
