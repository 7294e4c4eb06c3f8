"""Depthwise convolutions: each channel by kernels of its own."""

from __future__ import annotations

from collections.abc import Mapping

from farbench_compiler.ir.expr import Expr, as_expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import Numbers, check_rank, check_same, refusal
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.nn.convolution import Convolution, OutDtype
from farbench_compiler.topi.nn.window import Padding, windows


def depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers = 1,
    out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, C, H, W] by a filter [C, M, H, W]; channel c * M + m of the output."""
    return _depthwise(Input, Filter, stride, padding, dilation, ("NCHW", "CMHW"), out_dtype)


def depthwise_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers = 1,
    kernel_layout: str = "HWOI", out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, H, W, C] by a filter [H, W, C, M]; channel c * M + m of the output.

    With the kernel layout HWIO the filter is [H, W, M, C].
    """
    if kernel_layout not in ("HWOI", "HWIO"):
        raise refusal(
            "nn.depthwise_conv2d_nhwc", f"kernel_layout {kernel_layout!r}; give HWOI or HWIO"
        )
    kernel = "HWMC" if kernel_layout == "HWIO" else "HWCM"
    return _depthwise(Input, Filter, stride, padding, dilation, ("NHWC", kernel), out_dtype)


def _depthwise(
    data: Tensor, filt: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    layouts: tuple[str, str], out_dtype: OutDtype,
) -> Tensor:  # fmt: skip
    name = f"depthwise_conv2d_{layouts[0].lower()}"
    op = f"nn.{name}"
    check_rank(op, filt, 4)
    layout, kernel = Layout.parse(op, layouts[0], "NCHW", data), Layout(layouts[1])
    sizes, own = layout.named(data.shape), kernel.named(filt.shape)
    check_same(op, "channels of the data and of the filter", sizes["C"], own["C"])
    over = windows(op, [sizes["H"], sizes["W"]], (own["H"], own["W"]), stride, padding, dilation)
    several = own["M"]

    def weight(at: Mapping[str, Expr], _: Expr, taps: tuple[Expr, ...]) -> Expr:
        place = {"C": at["C"] // several, "M": at["C"] % several}
        return kernel.read(filt, place | dict(zip("HW", taps, strict=True)))

    made = Convolution(name, layout, over, sizes["C"] * several, None, sizes["C"], as_expr(1))
    return made.of(data, weight, out_dtype)
