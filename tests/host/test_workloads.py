"""Workloads: the layers are the paper's, and the reference convolution is right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate2d

from farbench.errors import UsageError
from farbench.workloads import RESNET18, conv2d_reference, full_set, named_set, small_set


def test_the_full_set_has_fourteen_workloads() -> None:
    names = [workload.name for workload in full_set()]
    assert len(names) == 14
    assert names[:2] == ["matmul_1024", "vector_add_1048576"]
    assert names[2:] == [f"conv2d_C{i}" for i in range(1, 13)]


def test_the_small_set_is_a_part_in_kind() -> None:
    kinds = {workload.name.partition("_")[0] for workload in small_set()}
    assert kinds == {"matmul", "vector", "conv2d"}


@pytest.mark.parametrize(
    ("name", "out", "flops"),
    # Worked out by hand: 2 * out channels * out size squared * in channels * kernel squared.
    [
        ("C1", 112, 236_027_904),
        ("C2", 56, 231_211_008),
        ("C11", 7, 12_845_056),
        ("C12", 7, 231_211_008),
    ],
)
def test_sizes_and_arithmetic_of_layers(name: str, out: int, flops: int) -> None:
    assert RESNET18[name].out_size == out
    assert RESNET18[name].flops == flops


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(1, 1, 0), (3, 1, 1), (3, 2, 1), (7, 2, 3)]
)
def test_the_reference_agrees_with_scipy(kernel: int, stride: int, padding: int) -> None:
    draw = np.random.default_rng(5)
    data = draw.uniform(-1, 1, (1, 3, 9, 9))
    weight = draw.uniform(-1, 1, (2, 3, kernel, kernel))
    found = conv2d_reference(data, weight, stride, padding)
    padded = np.pad(data[0], ((0, 0), (padding, padding), (padding, padding)))
    for channel in range(2):
        whole = sum(correlate2d(padded[c], weight[channel, c], mode="valid") for c in range(3))
        np.testing.assert_allclose(found[0, channel], whole[::stride, ::stride], atol=1e-12)


def test_an_unknown_set_is_named_with_the_known() -> None:
    with pytest.raises(UsageError, match="resnet18, small"):
        named_set("vgg")
