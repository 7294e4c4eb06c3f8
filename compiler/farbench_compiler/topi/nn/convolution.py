"""Convolutions: windows of data times weights, summed over taps and the channels of a group.

One computation serves every layout and number of axes; what differs is where a layout puts the
channels, and how weights are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farbench_compiler import te
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Expr, as_expr
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
from farbench_compiler.topi.nn.window import Padding, Window, padded, windows

# Reads the weight of an output (its place by letter), a channel of the group, and taps.
Weight = Callable[[Mapping[str, Expr], Expr, tuple[Expr, ...]], Expr]
OutDtype = str | DType | None
_TAPS = ("rz", "ry", "rx")


@dataclass(frozen=True, slots=True)
class Convolution:
    """What is summed: `depth` channels of each group (None: that of the output) over windows.

    `channels` and `block` are the output's size along C and c (1 where channels are in one piece).
    """

    name: str
    layout: Layout
    over: tuple[Window, ...]
    channels: Expr
    depth: Expr | None
    groups: Expr
    block: Expr

    def of(self, data: Tensor, weight: Weight, out_dtype: OutDtype) -> Tensor:
        """Give the output, whose layout is that of the data."""
        layout, wide = self.layout, out_dtype or data.dtype
        near = padded(data, layout, self.over, 0, layout.spatial)
        sizes = layout.named(data.shape)
        inner = sizes.get("c", as_expr(1))
        each, across = self.channels // self.groups, sizes["C"] // self.groups
        grouped = known(self.groups) != 1
        names = _TAPS[len(_TAPS) - len(self.over) :]
        taps = tuple(
            te.reduce_axis((0, w.kernel), name=name)
            for w, name in zip(self.over, names, strict=True)
        )
        channel = None if self.depth is None else te.reduce_axis((0, self.depth), name="rc")

        def element(*position: Expr) -> Expr:
            at = layout.named(position)
            place = dict(at)
            first = at["C"] // each * across if grouped else as_expr(0)
            c = as_expr(0) if channel is None else channel
            place["C"] = first + c // inner
            if "c" in place:
                place["c"] = c % inner
            for letter, w, tap in zip(layout.spatial, self.over, taps, strict=True):
                place[letter] = w.at(at[letter], tap)
            value = layout.read(near, place).astype(wide) * weight(at, c, taps).astype(wide)
            return te.sum(value, axis=taps if channel is None else (channel, *taps))

        sizes |= {"C": self.channels, "c": self.block}
        sizes |= {a: w.out for a, w in zip(layout.spatial, self.over, strict=True)}
        return te.compute(layout.ordered(sizes), element, name=self.name, tag=self.name)


def conv(
    inp: Tensor,
    filt: Tensor,
    stride: Numbers,
    padding: Padding,
    dilation: Numbers,
    groups: int,
    data_layout: str,
    kernel_layout: str = "",
    out_dtype: OutDtype = None,
) -> Tensor:
    """Convolve data of any layout with N, C and spatial axes by a filter with O, I and the same.

    Without `kernel_layout` the filter is OI and taps where the data have channels first, taps and
    IO otherwise. `out_dtype` is what is summed in; None is the data's own.
    """
    rank = inp.ndim - 2
    op = f"nn.conv{rank}d"
    layout = Layout.parse(op, data_layout, "NC", inp)
    if "c" in layout.letters:
        raise refusal(op, f"layout {data_layout!r} is packed; use conv2d_NCHWc")
    if not 1 <= rank <= len(_TAPS):
        raise refusal(op, f"{inp.name} has {rank} axes beside N and C; give 1 to {len(_TAPS)}")
    taps = layout.spatial
    first = layout.letters.startswith("NC")
    kernel = Layout.parse(op, kernel_layout or (f"OI{taps}" if first else f"{taps}IO"), "OI", filt)
    if not set(taps) <= set(kernel.letters):
        raise refusal(op, f"layouts {data_layout!r} and {kernel_layout!r} differ in their axes")
    sizes, own = layout.named(inp.shape), kernel.named(filt.shape)
    for what, size in (("channels of the data", sizes["C"]), ("filters", own["O"])):
        check_divides(op, what, size, groups)
    check_same(op, "channels of a group and of the filter", sizes["C"] // groups, own["I"])
    over = windows(op, [sizes[a] for a in taps], [own[a] for a in taps], stride, padding, dilation)

    def weight(at: Mapping[str, Expr], c: Expr, k: tuple[Expr, ...]) -> Expr:
        return kernel.read(filt, {"O": at["C"], "I": c, **dict(zip(taps, k, strict=True))})

    name = f"{'group_' if groups > 1 else ''}conv{rank}d_{data_layout.lower()}"
    made = Convolution(name, layout, over, own["O"], own["I"], as_expr(groups), as_expr(1))
    return made.of(inp, weight, out_dtype)


def conv1d(
    data: Tensor,
    kernel: Tensor,
    strides: Numbers = 1,
    padding: Padding = "VALID",
    dilation: Numbers = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: OutDtype = None,
) -> Tensor:
    """Convolve along one axis; see `conv`."""
    check_rank("nn.conv1d", data, 3)
    return conv(
        data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
    dilation: Numbers = 1, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, C, W] by a kernel [O, I, W]."""
    return conv1d(data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
    dilation: Numbers = 1, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, W, C] by a kernel [W, I, O]."""
    return conv1d(data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


def group_conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
    dilation: Numbers = 1, groups: int = 1, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, C, W] by a kernel [O, C / groups, W], each group by itself."""
    return conv1d(data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype)


def group_conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Numbers = 1, padding: Padding = "VALID",
    dilation: Numbers = 1, groups: int = 1, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, W, C] by a kernel [W, C / groups, O], each group by itself."""
    return conv1d(data, kernel, strides, padding, dilation, groups, "NWC", "WIO", out_dtype)


def conv2d(
    input: Tensor,
    filter: Tensor,
    strides: Numbers,
    padding: Padding,
    dilation: Numbers = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: OutDtype = None,
    *,
    layout: str = "",
) -> Tensor:
    """Convolve images in layout NCHW, NHWC or HWCN; `padding` also (top, left, bottom, right).

    `layout` is `data_layout` under its name until 2021.
    """
    check_rank("nn.conv2d", input, 4)
    layout = layout or data_layout
    return conv(input, filter, strides, padding, dilation, 1, layout, kernel_layout, out_dtype)


def conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers = 1,
    out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, C, H, W] by a filter [O, I, H, W]."""
    return conv2d(Input, Filter, stride, padding, dilation, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers = 1,
    out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, H, W, C] by a filter [H, W, I, O]."""
    return conv2d(Input, Filter, stride, padding, dilation, "NHWC", "HWIO", out_dtype)


def conv2d_hwcn(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers = 1,
    out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [H, W, C, N] by a filter [H, W, I, O]."""
    return conv2d(Input, Filter, stride, padding, dilation, "HWCN", "HWIO", out_dtype)


def group_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    groups: int, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, C, H, W] by a filter [O, C / groups, H, W], each group by itself."""
    check_rank("nn.group_conv2d_nchw", Input, 4)
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def group_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    groups: int, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, H, W, C] by a filter [H, W, C / groups, O], each group by itself."""
    check_rank("nn.group_conv2d_nhwc", Input, 4)
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def conv3d_ncdhw(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    groups: int = 1, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, C, D, H, W] by a filter [O, C / groups, D, H, W]."""
    check_rank("nn.conv3d_ncdhw", Input, 5)
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv3d_ndhwc(
    Input: Tensor, Filter: Tensor, stride: Numbers, padding: Padding, dilation: Numbers,
    groups: int = 1, out_dtype: OutDtype = None,
) -> Tensor:  # fmt: skip
    """Convolve data [N, D, H, W, C] by a filter [D, H, W, C / groups, O]."""
    check_rank("nn.conv3d_ndhwc", Input, 5)
    return conv(Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)
