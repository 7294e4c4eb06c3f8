"""Workloads that are the same everywhere: matmul, vector add and ResNet-18's convolutions.

Each knows its arithmetic, its inputs by seed, its reference in numpy, and how the operator library
builds it. C1 to C12 are the layers that the TVM paper lists (Chen et al. 2018, table 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from farbench import fill
from farbench.errors import UsageError
from farbench.extras import load
from farbench.validation import Comparison, compare, sum_tolerance

Numpy = npt.NDArray[Any]
LOW, HIGH = -1.0, 1.0


@dataclass(frozen=True)
class ArraySpec:
    """One input: its name, shape and dtype; filled uniformly from [-1, 1)."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    def values(self, seed: int) -> Numpy:
        """Give the elements that a device fills in from the same seed."""
        return fill.reference(seed, "uniform", LOW, HIGH, self.dtype, self.shape)


@dataclass(frozen=True)
class Workload:
    """A computation with `flops` floating-point operations a call; `terms` summed an element."""

    name: str
    flops: int
    inputs: tuple[ArraySpec, ...]
    output: ArraySpec
    terms: int
    program: Callable[[Any], tuple[Any, Sequence[Any]]]
    reference: Callable[..., Numpy]

    def check(self, output: Numpy, seed: int) -> Comparison:
        """Compare an output with numpy's, for inputs filled from seed, seed + 1, ..."""
        given = [spec.values(seed + index) for index, spec in enumerate(self.inputs)]
        if self.terms <= 1:
            return compare(output, self.reference(*given))
        tolerance = sum_tolerance(self.terms, self.output.dtype, HIGH, HIGH)
        return compare(output, self.reference(*given), tolerance)


def matmul(m: int, n: int, k: int) -> Workload:
    """Multiply (m, k) by (k, n), float32."""

    def program(target: Any) -> tuple[Any, Sequence[Any]]:
        made: tuple[Any, Sequence[Any]] = _ops().matmul(m, n, k, "float32", target)
        return made

    size = str(m) if m == n == k else f"{m}x{n}x{k}"
    return Workload(
        f"matmul_{size}",
        2 * m * n * k,
        (ArraySpec("A", (m, k)), ArraySpec("B", (k, n))),
        ArraySpec("C", (m, n)),
        k,
        program,
        np.matmul,
    )


def vector_add(n: int) -> Workload:
    """Add two vectors of n float32."""

    def program(target: Any) -> tuple[Any, Sequence[Any]]:
        made: tuple[Any, Sequence[Any]] = _ops().vector_add(n, "float32", target)
        return made

    return Workload(
        f"vector_add_{n}",
        n,
        (ArraySpec("A", (n,)), ArraySpec("B", (n,))),
        ArraySpec("C", (n,)),
        1,
        program,
        np.add,
    )


@dataclass(frozen=True)
class Conv:
    """A square convolution: `size` in, `cin` to `cout` channels, same padding."""

    size: int
    cin: int
    cout: int
    kernel: int
    stride: int

    @property
    def padding(self) -> int:
        """Zeros on each side."""
        return self.kernel // 2

    @property
    def out_size(self) -> int:
        """Height and width of the output."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def terms(self) -> int:
        """Products in one element of the output."""
        return self.cin * self.kernel * self.kernel

    @property
    def flops(self) -> int:
        """Floating-point operations, a multiplication and an addition each."""
        return 2 * self.cout * self.out_size * self.out_size * self.terms


RESNET18: dict[str, Conv] = {
    "C1": Conv(224, 3, 64, 7, 2),
    "C2": Conv(56, 64, 64, 3, 1),
    "C3": Conv(56, 64, 64, 1, 1),
    "C4": Conv(56, 64, 128, 3, 2),
    "C5": Conv(56, 64, 128, 1, 2),
    "C6": Conv(28, 128, 128, 3, 1),
    "C7": Conv(28, 128, 256, 3, 2),
    "C8": Conv(28, 128, 256, 1, 2),
    "C9": Conv(14, 256, 256, 3, 1),
    "C10": Conv(14, 256, 512, 3, 2),
    "C11": Conv(14, 256, 512, 1, 2),
    "C12": Conv(7, 512, 512, 3, 1),
}


def conv2d(name: str, conv: Conv) -> Workload:
    """Convolve one NCHW image with OIHW weights, float32."""

    def program(target: Any) -> tuple[Any, Sequence[Any]]:
        made: tuple[Any, Sequence[Any]] = _ops().conv2d(
            1, conv.size, conv.size, conv.cin, conv.cout, conv.kernel, conv.stride, conv.padding,
            "float32", target,
        )  # fmt: skip
        return made

    def reference(data: Numpy, weight: Numpy) -> Numpy:
        return conv2d_reference(data, weight, conv.stride, conv.padding)

    return Workload(
        f"conv2d_{name}",
        conv.flops,
        (
            ArraySpec("data", (1, conv.cin, conv.size, conv.size)),
            ArraySpec("weight", (conv.cout, conv.cin, conv.kernel, conv.kernel)),
        ),
        ArraySpec("out", (1, conv.cout, conv.out_size, conv.out_size)),
        conv.terms,
        program,
        reference,
    )


def conv2d_reference(data: Numpy, weight: Numpy, stride: int, padding: int) -> Numpy:
    """Convolve NCHW by OIHW in numpy: windows as columns, then one matrix product an image."""
    cout, cin, kernel, _ = weight.shape
    edge = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(data, edge)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    images, _, height, width = windows.shape[:4]
    columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(images, cin * kernel * kernel, -1)
    product = np.matmul(weight.reshape(cout, -1), columns)
    return np.ascontiguousarray(product.reshape(images, cout, height, width))


def full_set() -> tuple[Workload, ...]:
    """Give the 14 workloads of the demo on a real machine."""
    convs = tuple(conv2d(name, conv) for name, conv in RESNET18.items())
    return (matmul(1024, 1024, 1024), vector_add(1 << 20), *convs)


def small_set() -> tuple[Workload, ...]:
    """Give what an emulated board can run in seconds: pointwise layers and smaller sizes."""
    convs = tuple(conv2d(name, RESNET18[name]) for name in ("C3", "C5", "C8", "C11"))
    return (matmul(128, 128, 128), vector_add(1 << 20), *convs)


SETS: dict[str, Callable[[], tuple[Workload, ...]]] = {"resnet18": full_set, "small": small_set}


def named_set(name: str) -> tuple[Workload, ...]:
    """Give a set by name; UsageError lists those that exist."""
    if name not in SETS:
        raise UsageError(f"no set of workloads {name!r}; there are: {', '.join(SETS)}")
    return SETS[name]()


def _ops() -> Any:
    return load("farbench_compiler.ops")
