"""Operators on batches and images of symbolic sizes give what they give for constant ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.lower import lower
from farbench_compiler.te import Tensor
from farbench_compiler.topi import nn
from tests.compiler.llvm.jit import aligned, run
from tests.compiler.topi.evaluate import evaluate, numbers

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "max pool": lambda x: nn.pool2d(x, 3, 2, 1, 1, "max", True),
    "avg pool": lambda x: nn.pool2d(x, 3, 2, 1, 1, "avg", True, count_include_pad=False),
    "global pool": lambda x: nn.global_pool(x, "avg"),
    "adaptive pool": lambda x: nn.adaptive_pool(x, (3, 2), "avg"),
    "adaptive max pool": lambda x: nn.adaptive_pool(x, (4, 3), "max"),
    "flatten": nn.flatten,
    "softmax": lambda x: nn.softmax(x, 3),
    "log softmax": lambda x: nn.log_softmax(x, 2),
    "pad": lambda x: nn.pad(x, (0, 0, 1, 2)),
    "mirror pad": lambda x: nn.mirror_pad(x, (0, 0, 1, 2)),
    "dilate": lambda x: nn.dilate(x, (1, 1, 2, 3)),
    "space to depth": lambda x: nn.space_to_depth(x, 2),
    "depth to space": lambda x: nn.depth_to_space(x, 2),
    "space to batch": lambda x: nn.space_to_batch_nd(x, (2, 2), (0, 0), (2, 2)),
    "lrn": lambda x: nn.lrn(x, 3),
    "l2 normalize": lambda x: nn.l2_normalize(x, 1e-3, (1, 2)),
    "upsampling": lambda x: nn.upsampling(x, 2, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_size(name: str) -> None:
    function = FUNCTIONS[name]
    n, h, w = (te.var(a) for a in ("n", "h", "w"))
    a = te.placeholder((n, 4, h, w), name="A")
    out = function(a)
    shape = (2, 4, 6, 4)
    x = numbers(*shape)
    # What a program of constant sizes gives is compared with numpy elsewhere.
    wanted = evaluate(function, x)
    got = aligned(np.zeros_like(wanted))
    lowered = lower(te.create_schedule(out.op), [a, out])
    assert run(lowered, [aligned(x), got], [shape[0], *shape[2:]]) == 0
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
