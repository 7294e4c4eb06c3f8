"""softmax, layer norm and gelu against onnxruntime: float32, the same shapes, IO binding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from _common import Peer
from _kernels.kernel import Kernel, Numpy, Program, uniform
from _kernels.pair import Pair, asked
from farbench_compiler import ops

# A square matrix, and the tokens of a batch of 128 in a vision transformer.
MATRICES = ((1024, 1024), (128 * 197, 768))
VECTORS = (1 << 20, 1 << 22)
EPSILON = 1e-5
TOLERANCE = 2e-5  # of results near 1; a wrong row is off by far more


def softmax(x: Numpy) -> Numpy:
    """Give the softmax of each row."""
    power = np.exp(x - x.max(-1, keepdims=True))
    out: Numpy = power / power.sum(-1, keepdims=True)
    return out


def layer_norm(x: Numpy, gamma: Numpy, beta: Numpy) -> Numpy:
    """Normalise each row."""
    wide = x.astype(np.float64)
    away = wide - wide.mean(-1, keepdims=True)
    scale = np.sqrt((away * away).mean(-1, keepdims=True) + EPSILON)
    out: Numpy = (away / scale * gamma + beta).astype(np.float32)
    return out


def gelu(x: Numpy) -> Numpy:
    """Give x times the share of a normal distribution below it."""
    erf = np.fromiter((math.erf(v) for v in x.astype(np.float64) * math.sqrt(0.5)), float, x.size)
    out: Numpy = (x * 0.5 * (1 + erf)).astype(np.float32)
    return out


def _cases() -> Iterator[tuple[str, tuple[int, ...], Program, list[Numpy], Callable[..., Numpy]]]:
    for rows, columns in MATRICES:
        x = uniform((rows, columns))
        more = [uniform((columns,), salt=salt) for salt in (1, 2)]
        yield "softmax", x.shape, partial(ops.softmax, rows, columns), [x], softmax
        yield "layer_norm", x.shape, partial(ops.layer_norm, rows, columns), [x, *more], layer_norm
    for n in VECTORS:
        yield "gelu", (n,), partial(ops.gelu, n), [uniform((n,))], gelu


def pairs(rival: Peer) -> Iterator[Pair]:
    """Build every operator, each just before it is measured."""
    for op, shape, program, inputs, reference in _cases():
        name = f"{op}_{'x'.join(map(str, shape))}"
        made = Kernel.of(name, program, inputs, reference(*inputs), TOLERANCE)
        yield Pair(name, made.seconds, asked(rival, measure="run", op=op, shape=shape))
