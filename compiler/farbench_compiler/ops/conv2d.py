"""Convolution over images: one door to five ways of computing it, chosen by dtype and shape.

- by dot products, where bytes or bfloat16 are summed in a wider dtype;
- depthwise, where every channel has kernels of its own;
- Winograd's, where the library holds weights of 3x3 and channels are many;
- vectors over output channels, where the library holds the weights, sums are long enough to hide
  that the result is turned round on its way out, and channels fill whole vectors;
- vectors over flat output positions otherwise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.dtypes import sum_dtype
from farbench_compiler.ops.conv_channels import channel_conv2d
from farbench_compiler.ops.conv_dots import dot_conv2d
from farbench_compiler.ops.conv_flat import Geometry, flat_conv2d
from farbench_compiler.ops.depthwise import depthwise_conv2d, weights_of
from farbench_compiler.ops.matmul_dots import right_dtype
from farbench_compiler.ops.tiles import lanes_of, result_dtype
from farbench_compiler.ops.window import Padding, Pair, windows
from farbench_compiler.ops.winograd import is_faster, winograd_conv2d
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

# Sums shorter than this are faster over positions. Measured on Zen 4: of ResNet-18's layers 147
# and 128 terms are 8 to 10 % faster over positions, 256 terms 20 % faster over channels.
_LONG_SUM = 200


def conv2d(
    images: int,
    height: int,
    width: int,
    cin: int,
    cout: int,
    kernel: Pair,
    stride: Pair = 1,
    padding: Padding = 0,
    dtype: str = "float32",
    target: str | Target = "native",
    *,
    dilation: Pair = 1,
    groups: int = 1,
    weight: npt.ArrayLike | None = None,
    winograd: bool = True,
    parallel: bool = False,
) -> tuple[Schedule, list[Tensor]]:
    """Convolve data [images, cin, height, width] by weight [cout, cin / groups, kh, kw].

    Arguments data, weight (unless an array is given for it, which the library then holds packed),
    out [images, cout, out height, out width]. `kernel`, `stride` and `dilation` are one number or
    (height, width); `padding` also (top, left, bottom, right). Halves are summed in float32.
    Without groups int8 and uint8 (whose weight is int8) give int32, bfloat16 gives float32.
    Weights of 3x3 that the library holds may be met by Winograd's F(2x2, 3x3), whose results differ
    by a few ulp more than sums in another order do; `winograd=False` leaves it out.
    `parallel` shares the work among the threads.
    """
    chosen, given = Target.parse(target), dtypes.dtype(dtype)
    if groups < 1 or cin % groups or cout % groups:
        raise ScheduleError(f"conv2d: {groups} groups divide neither {cin} nor {cout} channels")
    narrow = groups == 1 and result_dtype(given) != given
    if groups == cin and not narrow:
        return depthwise_conv2d(
            images, height, width, cin, kernel, stride, padding, dtype, chosen,
            multiplier=cout // cin, dilation=dilation, weight=weight, parallel=parallel,
        )  # fmt: skip
    tall, wide = windows(height, width, kernel, stride, padding, dilation)
    shape = (cout, cin // groups, tall.kernel, wide.kernel)
    data = te.placeholder((images, cin, height, width), given, name="data")
    weights = weights_of(shape, str(right_dtype(given)) if narrow else dtype, weight)
    held = None if weight is None else np.asarray(weight)
    if narrow:
        right = weights if held is None else held
        return dot_conv2d(data, right, tall, wide, chosen, parallel=parallel)
    if held is not None and groups == 1:
        if winograd and is_faster(shape, tall, wide, given, chosen, parallel=parallel):
            return winograd_conv2d(data, held, tall, wide, chosen, parallel=parallel)
        if _over_channels(chosen, given, shape):
            return channel_conv2d(data, held, tall, wide, chosen, parallel=parallel)
    geometry = Geometry(images, cin, cout, groups, tall, wide)
    schedule, out = flat_conv2d(data, weights, geometry, chosen, parallel=parallel)
    return schedule, [data, weights, out] if held is None else [data, out]


def _over_channels(target: Target, given: dtypes.DType, shape: tuple[int, int, int, int]) -> bool:
    """Tell whether vectors over output channels are the faster way."""
    lanes = lanes_of(target, sum_dtype(given))
    terms = shape[1] * shape[2] * shape[3]
    return lanes > 1 and shape[0] % lanes == 0 and terms >= _LONG_SUM
