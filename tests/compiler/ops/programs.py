"""Run operators on random numbers and compare with numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farbench.validation import compare, sum_tolerance
from farbench_compiler import ops
from farbench_compiler.lower import lower
from farbench_compiler.ops.window import Padding, Pair, edges, pair
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor
from tests.compiler.llvm.jit import Run, aligned

Array = NDArray[Any]
Program = tuple[Schedule, list[Tensor]]


@dataclass(frozen=True)
class Place:
    """A target, and what runs its code."""

    target: str
    run: Run

    def compute(
        self,
        program: tuple[Schedule, list[Tensor]],
        inputs: Sequence[Array],
        shape: tuple[int, ...],
    ) -> Array:
        """Run an operator; give its output, of the inputs' dtype."""
        schedule, args = program
        output = aligned(np.full(shape, 77).astype(inputs[0].dtype))
        assert self.run(lower(schedule, args), [*map(aligned, inputs), output]) == 0
        return output


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Give numbers from -1 to 1, or small integers."""
    source = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return source.uniform(-1, 1, shape).astype(dtype)
    return source.integers(-5, 6, shape).astype(dtype)


def check(got: Array, wanted: Array, terms: int) -> None:
    """Compare with sums of `terms` products, rounded once at the end for halves."""
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    tolerance = sum_tolerance(terms, str(got.dtype), 1.0, 1.0)
    found = compare(got, wanted.astype(got.dtype), tolerance)
    assert found.valid, str(found)


def check_matmul(
    place: Place, m: int, n: int, k: int, dtype: str = "float32", *, parallel: bool = False
) -> None:
    """Build, run and compare one product."""
    a, b = numbers((m, k), dtype, 1), numbers((k, n), dtype, 2)
    program = ops.matmul(m, n, k, dtype, place.target, parallel=parallel)
    wide = "f8" if np.dtype(dtype).kind == "f" else dtype
    check(place.compute(program, [a, b], (m, n)), a.astype(wide) @ b.astype(wide), k)


@dataclass(frozen=True)
class Layer:
    """One convolution; `held` weights are part of the library."""

    images: int
    height: int
    width: int
    cin: int
    cout: int
    kernel: Pair
    stride: Pair = 1
    padding: Padding = 0
    dilation: Pair = 1
    groups: int = 1
    held: bool = False

    def check(self, place: Place, dtype: str = "float32", *, parallel: bool = False) -> None:
        """Build, run and compare it."""
        shape = (self.cout, self.cin // self.groups, *pair(self.kernel))
        data = numbers((self.images, self.cin, self.height, self.width), dtype, 3)
        weight = numbers(shape, dtype, 4)
        program = ops.conv2d(
            self.images, self.height, self.width, self.cin, self.cout, self.kernel, self.stride,
            self.padding, dtype, place.target, dilation=self.dilation, groups=self.groups,
            weight=weight if self.held else None, parallel=parallel,
        )  # fmt: skip
        wide = "f8" if np.dtype(dtype).kind == "f" else dtype
        wanted = self.reference(data.astype(wide), weight.astype(wide))
        given = [data] if self.held else [data, weight]
        check(place.compute(program, given, wanted.shape), wanted, math.prod(shape[1:]))

    def reference(self, data: Array, weight: Array) -> Array:
        """Convolve tap by tap."""
        top, left, bottom, right = edges(self.padding)
        padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
        (down, across), (high, wide) = pair(self.stride), pair(self.kernel)
        (far_down, far_across) = pair(self.dilation)
        rows = (padded.shape[2] - (high - 1) * far_down - 1) // down + 1
        columns = (padded.shape[3] - (wide - 1) * far_across - 1) // across + 1
        out = np.zeros((self.images, self.cout, rows, columns), data.dtype)
        each, depth = self.cout // self.groups, self.cin // self.groups
        for o, kh, kw in np.ndindex(self.cout, high, wide):
            first = o // each * depth
            part = padded[:, first : first + depth, kh * far_down :, kw * far_across :]
            part = part[:, :, : (rows - 1) * down + 1 : down, : (columns - 1) * across + 1 : across]
            out[:, o] += np.einsum("nchw,c->nhw", part, weight[o, :, kh, kw])
        return out
