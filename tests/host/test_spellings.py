"""Programs as TVM's users have written them since 2018 run after their imports are changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farbench
from farbench.errors import UsageError

tvm: Any = farbench


def test_a_program_of_2018(tmp_path: Path) -> None:
    n = tvm.var("n")
    a = tvm.placeholder((n,), name="a")
    b = tvm.placeholder((n,), name="b")
    c = tvm.compute(a.shape, lambda i: tvm.exp(a[i]) + b[i], name="c")
    s = tvm.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].vectorize(inner)
    mod = tvm.build(s, [a, b, c], "llvm", None, "add")
    assert mod.entry_name == "add"
    assert mod.imported_modules == []
    ctx = tvm.context("llvm", 0)
    x, y = (np.random.default_rng(i).random(100, dtype=np.float32) for i in (0, 1))
    given = [tvm.nd.array(v, ctx=ctx) for v in (x, y)]
    out = tvm.nd.empty((100,), "float32", ctx)
    mod(*given, out)
    tvm.testing.assert_allclose(out.asnumpy(), np.exp(x) + y, rtol=1e-6)
    timer = mod.time_evaluator(mod.entry_name, ctx=ctx, number=3)
    assert timer(*given, out).mean > 0
    mod.export_library(str(tmp_path / "add.so"))
    again = tvm.module.load(str(tmp_path / "add.so"))
    fresh = tvm.nd.empty((100,), dtype="float32", dev=tvm.cpu(0))
    again.entry_func(*given, fresh)
    tvm.testing.assert_allclose(fresh, out.asnumpy())


def test_a_program_of_2023(tmp_path: Path) -> None:
    te, topi = tvm.te, tvm.topi
    a = te.placeholder((4, 6), "float32", "a")
    k = te.reduce_axis((0, 6), "k")
    c = te.compute((4,), lambda i: te.max(a[i, k], axis=k), name="c")
    s = te.create_schedule(c.op)
    target = tvm.target.Target.parse("native")
    mod = tvm.build(s, [a, c], target=target, name="largest")
    dev = tvm.device("cpu", 0)
    x = np.random.default_rng(0).random((4, 6), dtype=np.float32)
    out = tvm.nd.array(np.zeros(4, np.float32), dev)
    mod["largest"](tvm.nd.array(x, dev), out)
    tvm.testing.assert_allclose(out.numpy(), x.max(1))
    assert topi.sum(a, axis=1).shape[0].value == 4
    assert tvm.target.create("pi4").arch == "aarch64"
    mod.export_library(tmp_path / "m.so")
    assert tvm.runtime.load_module(tmp_path / "m.so").entry_name == "largest"


def test_what_a_cpu_is_not_is_named() -> None:
    with pytest.raises(UsageError, match="no device 'cuda' here"):
        tvm.context("cuda", 0)
    with pytest.raises(UsageError, match="give the device once"):
        tvm.nd.empty((2,), ctx=tvm.cpu(), dev=tvm.cpu())
    a = tvm.placeholder((2,), name="a")
    s = tvm.create_schedule(tvm.compute((2,), lambda i: a[i], name="c").op)
    with pytest.raises(UsageError, match="target_host pi4 is not the target native"):
        tvm.build(s, [a, s.outputs[0].output(0)], "native", "pi4")
    with pytest.raises(AttributeError, match="no attribute 'relay'"):
        _ = tvm.relay
