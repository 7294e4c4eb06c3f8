"""The course's way to build and call a program, under the names that it uses."""

from __future__ import annotations

import numpy as np
import pytest

import farbench as tvm
from farbench_rpc.manifest import ArgumentError

from .expressions import any_shape, slices


def test_slices_are_chosen_by_the_call() -> None:
    mod = tvm.build(*slices())
    a = tvm.nd.array(np.arange(12, dtype="float32").reshape(3, 4))
    b = tvm.nd.array(np.empty((1, 3), dtype="float32"))
    mod(a, b, 1, 2, 1, 1)
    np.testing.assert_equal(b.asnumpy(), a.asnumpy()[1::2, 1::1])
    b = tvm.nd.array(np.empty((1, 2), dtype="float32"))
    mod(a, b, 2, 1, 0, 2)
    np.testing.assert_equal(b.asnumpy(), a.asnumpy()[2::1, 0::2])
    with pytest.raises(ArgumentError, match="bi = 0"):
        mod(a, b, 0, 1, 0, 2)


def test_one_library_adds_every_shape() -> None:
    mod = tvm.build(*any_shape())
    for shape in ((1, 1, 1, 1), (2, 3, 4, 5)):
        a, b = (np.random.default_rng(i).normal(size=shape).astype("float32") for i in range(2))
        c = tvm.nd.array(np.empty(shape, dtype="float32"))
        mod(tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_equal(c.asnumpy(), a + b)


def test_the_target_around_a_build_is_the_target() -> None:
    with tvm.target.create("llvm"):
        mod = tvm.build(*any_shape())
    assert str(tvm.target.create("llvm").cpu) in repr(mod)
