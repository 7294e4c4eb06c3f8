"""Convolutions of every layout and number of axes, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.lower import lower
from farbench_compiler.te import Tensor
from farbench_compiler.topi import nn
from tests.compiler.llvm.jit import aligned, run
from tests.compiler.topi.evaluate import check, numbers

from .reference import convolve, moved

SIZES = (7, 6, 5)
KERNEL = (3, 2, 2)
# stride, padding as given, padding as edges, dilation; of three axes, cut to those there are.
CASES: dict[str, tuple[Any, ...]] = {
    "plain": (1, 0, ((0, 0),) * 3, 1),
    "strided": ((2, 1, 2), (1, 0, 1), ((1, 1), (0, 0), (1, 1)), 1),
    "uneven": (1, (0, 1, 2, 1, 0, 1), ((0, 1), (1, 0), (2, 1)), (2, 1, 3)),
    "same": (2, "SAME", ((1, 1), (1, 0), (1, 0)), 1),
    "valid": (1, "VALID", ((0, 0),) * 3, 2),
}


def _cut(value: Any, count: int) -> Any:
    if isinstance(value, tuple):
        return sum((value[i : i + count] for i in range(0, len(value), 3)), ())
    return value


def _whole(value: Any, count: int) -> tuple[int, ...]:
    cut = _cut(value, count)
    return cut if isinstance(cut, tuple) else (cut,) * count


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", ["NCW", "NWC", "NCHW", "NHWC", "HWCN", "NCDHW", "NDHWC"])
def test_as_numpy_does(layout: str, case: str) -> None:
    count = len(layout) - 2
    stride, padding, edges, dilation = CASES[case]
    x, w = numbers(2, 3, *SIZES[:count]), numbers(4, 3, *KERNEL[:count], seed=1)
    wanted = convolve(x, w, _whole(stride, count), edges[:count], _whole(dilation, count))
    spatial = "DHW"[-count:]
    kernel = f"OI{spatial}" if layout.startswith("NC") else f"{spatial}IO"
    check(
        lambda a, b: nn.conv(
            a, b, _cut(stride, count), _cut(padding, count), _cut(dilation, count), 1, layout
        ),
        [moved(x, f"NC{spatial}", layout), moved(w, f"OI{spatial}", kernel)],
        moved(wanted, f"NC{spatial}", layout),
    )


GROUPED: dict[str, Callable[..., Tensor]] = {
    "NCW": nn.group_conv1d_ncw, "NWC": nn.group_conv1d_nwc, "NCHW": nn.group_conv2d_nchw,
    "NHWC": nn.group_conv2d_nhwc, "NCDHW": nn.conv3d_ncdhw, "NDHWC": nn.conv3d_ndhwc,
}  # fmt: skip


@pytest.mark.parametrize("layout", GROUPED)
def test_groups(layout: str) -> None:
    count = len(layout) - 2
    x, w = numbers(1, 4, *SIZES[:count]), numbers(6, 2, *KERNEL[:count], seed=1)
    spatial = "DHW"[-count:]
    kernel = f"OI{spatial}" if layout.startswith("NC") else f"{spatial}IO"
    function = GROUPED[layout]
    wanted = convolve(x, w, (1,) * count, ((1, 1),) * count, (1,) * count, groups=2)
    check(
        lambda a, b: function(a, b, 1, 1, 1, groups=2),
        [moved(x, f"NC{spatial}", layout), moved(w, f"OI{spatial}", kernel)],
        moved(wanted, f"NC{spatial}", layout),
    )


def test_functions_named_by_their_layout() -> None:
    x, w = numbers(2, 3, 6, 5), numbers(4, 3, 3, 2, seed=1)
    wanted = convolve(x, w, (1, 1), ((1, 1), (1, 1)), (1, 1))
    for function, layout, kernel in (
        (nn.conv2d_nchw, "NCHW", "OIHW"), (nn.conv2d_nhwc, "NHWC", "HWIO"),
        (nn.conv2d_hwcn, "HWCN", "HWIO"),
    ):  # fmt: skip
        check(
            lambda a, b, f=function: f(a, b, 1, 1, 1),
            [moved(x, "NCHW", layout), moved(w, "OIHW", kernel)],
            moved(wanted, "NCHW", layout),
        )
    check(lambda a, b: nn.conv2d(a, b, 1, 1, 1, layout="NCHW"), [x, w], wanted)
    line, taps = numbers(2, 3, 6), numbers(4, 3, 3, seed=1)
    wanted = convolve(line, taps, (2,), ((1, 1),), (1,))
    check(lambda a, b: nn.conv1d_ncw(a, b, 2, "SAME"), [line, taps], wanted)
    check(
        lambda a, b: nn.conv1d_nwc(a, b, 2, (1, 1)),
        [moved(line, "NCW", "NWC"), moved(taps, "OIW", "WIO")],
        moved(wanted, "NCW", "NWC"),
    )


def test_bytes_sum_in_the_dtype_that_is_asked_for() -> None:
    x, w = numbers(1, 9, 5, 5, dtype="int8") * 20, numbers(2, 9, 3, 3, dtype="int8") * 20
    check(
        lambda a, b: nn.conv2d(a, b, 1, 0, 1, out_dtype="int32"),
        [x, w],
        convolve(x, w, (1, 1), ((0, 0), (0, 0)), (1, 1)).astype("int32"),
    )


def test_one_program_serves_every_size() -> None:
    n, height = te.var("n"), te.var("height")
    x, w = te.placeholder((n, 3, height, 6)), te.placeholder((4, 3, 3, 3))
    out = nn.conv2d_nchw(x, w, 2, 1, 1)
    function = lower(te.create_schedule(out.op), [x, w, out])
    for images, rows in ((1, 5), (2, 8)):
        a, b = numbers(images, 3, rows, 6), numbers(4, 3, 3, 3, seed=1)
        wanted = convolve(a, b, (2, 2), ((1, 1), (1, 1)), (1, 1))
        got = aligned(np.zeros(wanted.shape, "float32"))
        sizes = {"n": images, "height": rows}
        scalars = [sizes[symbol.name] for symbol in function.symbols]
        assert run(function, [aligned(a), aligned(b), got], scalars) == 0
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


def test_the_reduction_runs_over_channels_then_taps() -> None:
    out = nn.conv2d_nchw(te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3)), 1, 1, 1)
    assert [axis.name for axis in out.op.reduce_axis] == ["rc", "ry", "rx"]
    assert [t.name for t in out.op.input_tensors] == ["pad_temp", "placeholder"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"strides": 0}, "stride"),
        ({"padding": (1, 2, 3)}, "padding"),
        ({"padding": "FULL"}, "padding 'FULL'"),
        ({"dilation": 9}, "does not fit size 8"),
        ({"data_layout": "NCH"}, "dimensions"),
        ({"data_layout": "NCHH"}, "layout 'NCHH'"),
        ({"kernel_layout": "HWIO"}, "must agree, got 3 and"),
        ({"kernel_layout": "OIDH"}, "differ in their axes"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], what: str) -> None:
    x, w = te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 2, 2))
    given = {"strides": 1, "padding": 0, "dilation": 1} | options
    with pytest.raises(ScheduleError, match=rf"topi\.nn\.conv2d: .*{what}"):
        nn.conv2d(x, w, **given)


def test_groups_that_cannot_be() -> None:
    x, w = te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 2, 2))
    with pytest.raises(ScheduleError, match="2 does not divide the 3 channels"):
        nn.group_conv2d_nchw(x, w, 1, 0, 1, 2)
