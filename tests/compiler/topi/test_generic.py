"""Default schedules under the names that programs of topi call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.lower import lower
from farbench_compiler.target import Target
from farbench_compiler.te import Schedule, Tensor
from tests.compiler.llvm.jit import aligned, run
from tests.compiler.topi.evaluate import Array, evaluate, numbers

Function = Callable[..., Tensor]
PROGRAMS: dict[str, tuple[str, Function, list[Array]]] = {
    "injective": ("injective", lambda x: topi.exp(x * 2.0 + 1.0), [numbers(5, 37)]),
    "few": ("elemwise", topi.tanh, [numbers(3)]),
    "rows": ("reduce", lambda x: topi.sum(x, axis=1), [numbers(6, 45)]),
    "columns": ("reduce", lambda x: topi.max(x, axis=0), [numbers(6, 45)]),
    "all": ("reduce", topi.sum, [numbers(6, 45)]),
    "softmax": ("softmax", topi.nn.softmax, [numbers(7, 33)]),
    "dense": ("dense", topi.nn.dense, [numbers(4, 19), numbers(35, 19), numbers(35)]),
    "pool": (
        "pool",
        lambda x: topi.nn.pool2d(x, 3, 2, 1, 1, "avg", count_include_pad=False),
        [numbers(1, 3, 9, 21)],
    ),
    "conv2d": (
        "conv2d_nchw",
        lambda x, w: topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1)),
        [numbers(2, 3, 6, 20), numbers(5, 3, 3, 3)],
    ),
    "depthwise": (
        "depthwise_conv2d_nchw",
        lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 2, 1),
        [numbers(1, 4, 9, 21), numbers(4, 1, 3, 3)],
    ),
    "layer norm": (
        "injective",
        lambda x, g, b: topi.nn.layer_norm(x, g, b, [1]),
        [numbers(5, 37), numbers(37), numbers(37)],
    ),
}


@pytest.mark.parametrize(("room", "target"), [("generic", "x86-64"), ("x86", "native")])
@pytest.mark.parametrize("program", PROGRAMS)
def test_schedules_change_no_numbers(room: str, program: str, target: str) -> None:
    kind, function, arrays = PROGRAMS[program]
    given = [te.placeholder(a.shape, str(a.dtype), name=f"A{i}") for i, a in enumerate(arrays)]
    out = function(*given)
    schedules = getattr(topi, room)
    named: Callable[..., Schedule] = getattr(
        schedules, f"schedule_{kind}", schedules.schedule_injective
    )
    with Target.parse(target):
        schedule = named([out], "NCHW") if kind == "pool" else named([out])
    wanted = evaluate(function, *arrays)
    got = aligned(np.zeros_like(wanted))
    buffers = [*map(aligned, arrays), got]
    assert run(lower(schedule, [*given, out]), buffers, target=target) == 0
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_symbolic_size_and_a_single_tensor() -> None:
    a = te.placeholder((te.var("n"), te.var("m")), name="A")
    out = topi.nn.leaky_relu(a, 0.5)
    function = lower(topi.generic.schedule_injective(out), [a, out])
    x = numbers(3, 21)
    got = aligned(np.zeros_like(x))
    assert run(function, [aligned(x), got], x.shape) == 0
    np.testing.assert_array_equal(got, np.where(x > 0, x, x * np.float32(0.5)))


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'schedule_cuda'"):
        _ = topi.schedule_cuda
