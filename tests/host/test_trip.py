"""The whole trip: a tensor expression, built here for each user land, run there, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import farbench as fb
from farbench import fill, te
from farbench.tracker import Tracker

TARGETS = {"native": "native", "aarch64": "pi4", "armv7": "armv7"}
COUNT = 1003  # a multiple of no vector
DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint64"),
)


def vector_add(dtype: str, target: str) -> fb.Module:
    n = te.var("n")
    a = te.placeholder((n,), dtype=dtype, name="A")
    b = te.placeholder((n,), dtype=dtype, name="B")
    c = te.compute(a.shape, lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=64)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    return fb.build(s, [a, b, c], target=target, name="vector_add")


def limits(dtype: str) -> tuple[float, float]:
    """Give a range whose sums overflow where that is defined, and are normal floats elsewhere."""
    if "float" in dtype:
        return 1.0, 2.0
    info = np.iinfo(dtype)
    return float(info.min), float(info.max)


@pytest.mark.parametrize("dtype", DTYPES)
def test_n10_vector_add_of_every_dtype_is_bit_exact(
    each_arch: str, dtype: str, tracker_of: Callable[[str], Tracker], tmp_path: Path
) -> None:
    path = tmp_path / "add.so"
    vector_add(dtype, TARGETS[each_arch]).export_library(path)
    low, high = limits(dtype)
    if dtype == "int64":
        low, high = -(2.0**62), 2.0**62
    with tracker_of(each_arch).request(f"name={each_arch}", timeout=60) as remote:
        remote.upload(path)
        f = remote.load_module("add.so")
        a, b = (fb.nd.random(COUNT, dtype, remote.cpu(), seed, low, high) for seed in (1, 2))
        c = fb.nd.empty(COUNT, dtype, remote.cpu())
        f(a, b, c)
        x, y = (fill.reference(seed, "uniform", low, high, dtype, COUNT) for seed in (1, 2))
        with np.errstate(over="ignore"):
            assert c.numpy().tobytes() == (x + y).tobytes()
        found = f.time_evaluator("vector_add", remote.cpu(), number=10, repeat=6)(a, b, c)
        assert len(found.results) == 6


def test_a_call_in_this_process_agrees_with_numpy() -> None:
    module = vector_add("float32", "native")
    x, y = (fill.reference(seed, "uniform", 0, 1, "float32", COUNT) for seed in (1, 2))
    here = np.zeros(COUNT, dtype=np.float32)
    module(x, y, here)
    assert (here == x + y).all()
    assert "define" in module.get_source()


def test_lower_shows_the_loops() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    text = fb.lower(te.create_schedule(b.op), [a, b], simple_mode=True)
    assert isinstance(text, str)
    assert "B[" in text
