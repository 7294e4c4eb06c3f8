"""Functions of each element and its channel: scales, shifts and biases."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same
from farbench_compiler.topi.tag import BROADCAST


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Give Input [N, C, H, W] times Scale [C] plus Shift [C]."""
    return _scale_shift("nn.scale_shift_nchw", Input, Scale, Shift, (1,), 4)


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Give Input [N, H, W, C] times Scale [C] plus Shift [C]."""
    return _scale_shift("nn.scale_shift_nhwc", Input, Scale, Shift, (3,), 4)


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Give Input [N, C block, H, W, C] times Scale [C block, C] plus Shift [C block, C]."""
    return _scale_shift("nn.scale_shift_nchwc", Input, Scale, Shift, (1, 4), 5)


def _scale_shift(
    op: str, x: Tensor, scale: Tensor, shift: Tensor, axes: tuple[int, ...], ndim: int
) -> Tensor:
    check_rank(op, x, ndim)
    for by in (scale, shift):
        check_rank(op, by, len(axes))
        for d, axis in enumerate(axes):
            check_same(op, f"channels of {x.name} and {by.name}", x.shape[axis], by.shape[d])

    def element(*i: Expr) -> Expr:
        channel = [i[axis] for axis in axes]
        return x(*i) * scale(*channel) + shift(*channel)

    return te.compute(x.shape, element, name="ScaleShift", tag=BROADCAST)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Add a bias, one element for each place along an axis."""
    at = axis_of("nn.bias_add", data, axis)
    check_rank("nn.bias_add", bias, 1)
    check_same("nn.bias_add", "channels and bias", data.shape[at], bias.shape[0])
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[at]), name="bias_add", tag=BROADCAST)
