"""conv2d against onnxruntime: NCHW in and out, weights constant on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from _common import Peer
from _kernels.kernel import Kernel, Numpy, uniform
from _kernels.pair import Pair, Seconds, asked
from farbench import workloads
from farbench_compiler import ops


@dataclass(frozen=True)
class Layer:
    """A square convolution with same padding; `groups` equals `cin` where it is depthwise."""

    size: int
    cin: int
    cout: int
    kernel: int
    stride: int
    groups: int = 1

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """OIHW."""
        return (self.cout, self.cin // self.groups, self.kernel, self.kernel)

    @property
    def flops(self) -> int:
        """Floating-point operations of one call, a multiplication and an addition each."""
        out = (self.size + 2 * (self.kernel // 2) - self.kernel) // self.stride + 1
        return 2 * out * out * int(np.prod(self.weight_shape))


def _depthwise(size: int, channels: int, stride: int) -> Layer:
    return Layer(size, channels, channels, 3, stride, channels)


RESNET18 = {
    name: Layer(conv.size, conv.cin, conv.cout, conv.kernel, conv.stride)
    for name, conv in workloads.RESNET18.items()
}
# MobileNet's depthwise layers: (size, channels, stride).
MOBILENET = {
    f"D{i}": _depthwise(*layer)
    for i, layer in enumerate(
        (
            (112, 32, 1), (112, 64, 2), (56, 128, 1), (56, 128, 2), (28, 256, 1), (28, 256, 2),
            (14, 512, 1), (14, 512, 2), (7, 1024, 1),
        ),
        1,
    )
}  # fmt: skip
LAYERS: Mapping[str, Layer] = {**RESNET18, **MOBILENET}


def reference(data: Numpy, weight: Numpy, layer: Layer) -> Numpy:
    """Convolve in numpy, group by group."""
    parts = [
        workloads.conv2d_reference(x, w, layer.stride, layer.kernel // 2)
        for x, w in zip(
            np.split(data, layer.groups, axis=1), np.split(weight, layer.groups), strict=True
        )
    ]
    return np.concatenate(parts, axis=1)


def kernel(name: str, layer: Layer, threads: int = 1) -> Kernel:
    """Build our convolution with constant weights and check it against numpy."""
    data = uniform((1, layer.cin, layer.size, layer.size))
    weight = uniform(layer.weight_shape, salt=1)
    terms = int(np.prod(layer.weight_shape[1:]))
    program = partial(
        ops.conv2d, 1, layer.size, layer.size, layer.cin, layer.cout, layer.kernel, layer.stride,
        layer.kernel // 2, "float32", "native", groups=layer.groups, weight=weight,
        parallel=threads > 1,
    )  # fmt: skip
    # Winograd's transforms cost a few bits, so it is allowed four times a plain sum's error.
    tolerance = 4 * float(np.finfo(np.float32).eps) * max(terms, 8)
    return Kernel.of(name, program, (data,), reference(data, weight, layer), tolerance)


def rivals(peer: Peer, layer: Layer) -> Seconds:
    """Ask onnxruntime for samples of one layer."""
    return asked(
        peer,
        measure="conv",
        height=layer.size,
        channels=layer.cin,
        filters=layer.cout,
        kernel=layer.kernel,
        stride=layer.stride,
        groups=layer.groups,
    )


def pairs(rival: Peer, threads: int = 1) -> Iterator[Pair]:
    """Build every layer, each just before it is measured."""
    for name, layer in LAYERS.items():
        yield Pair(name, kernel(name, layer, threads).seconds, rivals(rival, layer))
