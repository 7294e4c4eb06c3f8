"""Normalisations: elements less their mean, over their spread, scaled and shifted.

What they differ in is which axes share a mean. Sums and results of halves are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farbench_compiler import te
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ir.expr import Expr, as_expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi import reduction
from farbench_compiler.topi.arguments import (
    axis_of,
    check_divides,
    check_rank,
    check_same,
    refusal,
)
from farbench_compiler.topi.tag import BROADCAST, ELEMWISE, INJECTIVE

Axes = int | Sequence[int]


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[Tensor]:
    """Normalise each channel (along `axis`, 1 if None) by its moving mean and variance.

    Gives the output and the moving mean and variance, which `training` computes from the data and
    mixes in by `momentum` (0.1 if None). `scale` and `center` False leave gamma and beta out;
    epsilon is 1e-5 if None.
    """
    op = "nn.batch_norm"
    at = axis_of(op, data, 1 if axis is None else axis)
    for x in (gamma, beta, moving_mean, moving_var):
        _check_like(op, data, x, (at,))
    epsilon = 1e-5 if epsilon is None else epsilon
    mean, variance = moving_mean, moving_var
    if training:
        rest = [d for d in range(data.ndim) if d != at]
        mean, variance = _moments(data, rest)

    def element(*i: Expr) -> Expr:
        c = i[at]
        value = (data(*i) - mean(c)) / te.sqrt(variance(c) + te.const(epsilon, data.dtype))
        if scale is not False:
            value = value * gamma(c)
        return value if center is False else value + beta(c)

    out = te.compute(data.shape, element, name="T_batch_norm", tag=BROADCAST)
    if not training:
        return [out, _copied(moving_mean), _copied(moving_var)]
    share = 0.1 if momentum is None else momentum
    if not 0 <= share <= 1:
        raise refusal(op, f"momentum is {share}, must be from 0 to 1")
    mixed = [(moving_mean, mean), (moving_var, variance)]
    return [out, *((1 - share) * old + share * new for old, new in mixed)]


def _copied(x: Tensor) -> Tensor:
    return te.compute(x.shape, lambda *i: x(*i), name=x.name, tag=ELEMWISE)


def layer_norm(
    data: Tensor, gamma: Tensor, beta: Tensor | None, axis: Axes, epsilon: float = 1e-5
) -> Tensor:
    """Normalise over the axes, along which gamma and beta have their elements."""
    over = _axes("nn.layer_norm", data, axis)
    return _normalised("nn.layer_norm", data, gamma, beta, over, over, epsilon)


def instance_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    channel_axis: int,
    axis: Axes,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalise over the axes of each channel, along which gamma and beta have their elements."""
    op = "nn.instance_norm"
    over, channel = _axes(op, data, axis), axis_of(op, data, channel_axis)
    if channel in over:
        raise refusal(op, f"axes {list(over)} hold the channel axis {channel}")
    return _normalised(op, data, gamma, beta, over, (channel,), epsilon)


def group_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor | None,
    num_groups: int,
    channel_axis: int,
    axes: Axes,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalise over the axes and the channels of each of `num_groups` groups."""
    op = "nn.group_norm"
    over, channel = _axes(op, data, axes), axis_of(op, data, channel_axis)
    if channel in over:
        raise refusal(op, f"axes {list(over)} hold the channel axis {channel}")
    check_divides(op, "channels", data.shape[channel], num_groups)
    each = data.shape[channel] // num_groups
    shape = (*data.shape[:channel], as_expr(num_groups), each, *data.shape[channel + 1 :])

    def parted(*i: Expr) -> Expr:
        return data(*i[:channel], i[channel] * each + i[channel + 1], *i[channel + 2 :])

    grouped = te.compute(shape, parted, name="T_grouped", tag=INJECTIVE)
    inner = [channel + 1, *(d + (d > channel) for d in over)]
    mean, variance = _moments(grouped, inner)

    def share(*i: Expr) -> tuple[Expr, ...]:
        places = (*i[:channel], i[channel] // each, i[channel] % each, *i[channel + 1 :])
        return tuple(x for d, x in enumerate(places) if d not in inner)

    return _scaled(op, data, (mean, variance), share, gamma, beta, (channel,), epsilon)


def rms_norm(
    data: Tensor, weight: Tensor, bias: Tensor | None, axis: Axes, epsilon: float = 1e-5
) -> Tensor:
    """Divide by the root of the mean square over the axes, then scale and shift along them."""
    op = "nn.rms_norm"
    over = _axes(op, data, axis)
    wide = sum_dtype(data.dtype)
    squares = te.compute(
        data.shape, lambda *i: data(*i).astype(wide) * data(*i).astype(wide), name="T_square",
        tag=ELEMWISE,
    )  # fmt: skip
    mean = reduction.mean(squares, over)
    for x in (weight, bias):
        _check_like(op, data, x, over)

    def element(*i: Expr) -> Expr:
        rest, along = _parted(i, over)
        value = data(*i).astype(wide) * te.rsqrt(mean(*rest) + te.const(epsilon, wide))
        value = value * weight(*along).astype(wide)
        return (value if bias is None else value + bias(*along).astype(wide)).astype(data.dtype)

    return te.compute(data.shape, element, name="T_rms_norm", tag=BROADCAST)


def l2_normalize(data: Tensor, eps: float, axis: Axes | None = None) -> Tensor:
    """Divide by the root of the sum of squares over the axes (all if None), at least `eps`."""
    op = "nn.l2_normalize"
    over = tuple(range(data.ndim)) if axis is None else _axes(op, data, axis)
    _check_float(op, data)
    squares = te.compute(data.shape, lambda *i: data(*i) * data(*i), name="T_square", tag=ELEMWISE)
    total = reduction.sum(squares, over)

    def element(*i: Expr) -> Expr:
        rest, _ = _parted(i, over)
        return data(*i) / te.sqrt(te.max(total(*rest), te.const(eps, data.dtype)))

    return te.compute(data.shape, element, name="l2_normalize", tag=BROADCAST)


def lrn(
    data: Tensor,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2,
) -> Tensor:
    """Divide by (bias + alpha / size * sum of squares) ** beta; `size` neighbours along an axis."""
    op = "nn.lrn"
    at = axis_of(op, data, axis)
    _check_float(op, data)
    if size < 1 or size % 2 == 0:
        raise refusal(op, f"size is {size}, must be odd")
    k, half = te.reduce_axis((0, size), name="rxs"), size // 2

    def square(*i: Expr) -> Expr:
        c = i[at] + k - half
        value = data(*i[:at], c, *i[at + 1 :])
        inside = te.all(c >= 0, c < data.shape[at])
        return te.sum(te.if_then_else(inside, value * value, te.const(0, data.dtype)), axis=k)

    total = te.compute(data.shape, square, name="sqr_sum", tag="sqr_sum")
    start, slope = te.const(bias, data.dtype), te.const(alpha / size, data.dtype)
    power = te.const(beta, data.dtype)
    return te.compute(
        data.shape,
        lambda *i: data(*i) / te.power(start + slope * total(*i), power),
        name="T_lrn",
        tag=ELEMWISE,
    )


def _normalised(
    op: str, data: Tensor, gamma: Tensor, beta: Tensor | None, over: tuple[int, ...],
    along: tuple[int, ...], epsilon: float,
) -> Tensor:  # fmt: skip
    def share(*i: Expr) -> tuple[Expr, ...]:
        return _parted(i, over)[0]

    return _scaled(op, data, _moments(data, over), share, gamma, beta, along, epsilon)


def _moments(data: Tensor, over: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Give mean and variance over axes; the variance from differences, which loses no digits."""
    wide = sum_dtype(data.dtype)
    taken = data if wide == data.dtype else data.astype(wide)
    mean = reduction.mean(taken, over)

    def square(*i: Expr) -> Expr:
        away = data(*i).astype(wide) - mean(*_parted(i, over)[0])
        return away * away

    away = te.compute(data.shape, square, name="T_square", tag=ELEMWISE)
    return mean, reduction.mean(away, over)


def _scaled(
    op: str, data: Tensor, moments: tuple[Tensor, Tensor], share: Callable[..., tuple[Expr, ...]],
    gamma: Tensor | None, beta: Tensor | None, along: tuple[int, ...], epsilon: float,
) -> Tensor:  # fmt: skip
    """Normalise each element by the moments at its `share`; gamma and beta lie `along` axes."""
    mean, variance = moments
    for x in (gamma, beta):
        _check_like(op, data, x, along)
    wide = mean.dtype

    def element(*i: Expr) -> Expr:
        shared, own = share(*i), [i[d] for d in along]
        value = data(*i).astype(wide) - mean(*shared)
        value = value * te.rsqrt(variance(*shared) + te.const(epsilon, wide))
        if gamma is not None:
            value = value * gamma(*own).astype(wide)
        return (value if beta is None else value + beta(*own).astype(wide)).astype(data.dtype)

    return te.compute(data.shape, element, name=f"T_{op.removeprefix('nn.')}", tag=BROADCAST)


def _parted(
    position: Sequence[Expr], over: Sequence[int]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Part a position in the places along the other axes and those along the axes."""
    rest = tuple(x for d, x in enumerate(position) if d not in over)
    return rest, tuple(position[d] for d in over)


def _axes(op: str, data: Tensor, axis: Axes) -> tuple[int, ...]:
    _check_float(op, data)
    found = tuple(axis_of(op, data, a) for a in ([axis] if isinstance(axis, int) else axis))
    if not found or len(set(found)) < len(found):
        raise refusal(op, f"axes are {axis}; give at least one, each once")
    return found


def _check_float(op: str, data: Tensor) -> None:
    if not data.dtype.is_float:
        raise refusal(op, f"{data.name} is {data.dtype}, not a float; cast it first")


def _check_like(op: str, data: Tensor, x: Tensor | None, axes: tuple[int, ...]) -> None:
    """Refuse a tensor that does not lie along axes of the data."""
    if x is None:
        return
    check_rank(op, x, len(axes))
    for d, axis in enumerate(axes):
        check_same(op, f"sizes of {data.name} and {x.name}", data.shape[axis], x.shape[d])
