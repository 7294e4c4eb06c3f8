"""Matrix products of narrow elements by dot-product instructions, against our own float32's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import ml_dtypes
import numpy as np

from _kernels import matmul
from _kernels.kernel import Kernel, uniform
from _kernels.pair import Pair
from farbench_compiler import ops
from farbench_compiler.target import Target

SIZES = (512, 1024)
# The features whose instructions make the products; without one there is no figure.
INT8 = ("avx512vnni", "avxvnni", "dotprod")
BF16 = ("avx512bf16", "bf16")


def has(features: tuple[str, ...]) -> bool:
    """Tell whether this machine has one of the features."""
    here = Target.parse("native")
    return any(here.has(feature) for feature in features)


def int8(size: int) -> Kernel:
    """Build our int8 matmul, summed in int32, and check that it is exact."""
    a, b = uniform((size, size), "int8"), uniform((size, size), "int8", 1)
    program = partial(ops.matmul, size, size, size, "int8", "native")
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int32)
    return Kernel.of(f"int8 matmul {size}", program, (a, b), expected, 0.0)


def bf16(size: int) -> Kernel:
    """Build our bfloat16 matmul, summed in float32, and check it."""
    a, b = (uniform((size, size), salt=i).astype(ml_dtypes.bfloat16) for i in (0, 1))
    program = partial(ops.matmul, size, size, size, "bfloat16", "native")
    expected = np.matmul(a.astype(np.float32), b.astype(np.float32))
    tolerance = float(np.finfo(np.float32).eps) * size
    return Kernel.of(f"bf16 matmul {size}", program, (a, b), expected, tolerance)


def pairs(dtype: str) -> Iterator[Pair]:
    """Put each size beside float32 of the same size."""
    make = int8 if dtype == "int8" else bf16
    for size in SIZES:
        narrow, wide = make(size), matmul.kernel(size, size, size)
        yield Pair(f"matmul_{size}", narrow.seconds, wide.seconds)
