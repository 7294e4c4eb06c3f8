"""Programs as TVM's users have written them since 2018 run after their imports are changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farbench
from farbench.errors import UsageError
from farbench_compiler.errors import CompilerError

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


def test_modules_are_imported_by_their_own_names() -> None:
    program = """
import farbench as tvm
import farbench.te, farbench.tir, farbench.topi, farbench.topi.nn as nn
from farbench.te import create_schedule
from farbench.topi import nn as again
import farbench_compiler.te, farbench_compiler.topi.nn
assert farbench.te is tvm.te is farbench_compiler.te
assert nn is again is tvm.topi.nn is farbench_compiler.topi.nn
assert tvm.tir.exp is farbench.te.exp
assert create_schedule is farbench_compiler.te.create_schedule
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_argument_that_nothing_reads_is_taken() -> None:
    te = tvm.te
    a, unused = te.placeholder((4,), name="a"), te.placeholder((te.var("m"), 3), name="unused")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    mod = tvm.build(te.create_schedule(b.op), [unused, a, b])
    out = tvm.nd.empty((4,))
    mod(np.ones((2, 3), np.float32), np.arange(4, dtype=np.float32), out)
    assert out.numpy().tolist() == [1, 2, 3, 4]


def test_a_module_is_saved_as_its_ending_says(tmp_path: Path) -> None:
    te = tvm.te
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    mod = tvm.build(te.create_schedule(b.op), [a, b])
    for name, begin in (("m.o", b"\x7fELF"), ("m.so", b"\x7fELF"), ("m.ll", b"; ModuleID")):
        mod.save(str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(begin)
    mod.save(tmp_path / "text", "asm")
    assert "fbk_main" in (tmp_path / "text").read_text()
    with pytest.raises(UsageError, match=r"m\.c cannot be written; give a name in \.so"):
        mod.save(tmp_path / "m.c")
    with pytest.raises(UsageError, match=r"again\.o cannot be written"):
        tvm.runtime.load_module(tmp_path / "m.so").save(tmp_path / "again.o")


def test_lowered_functions_are_built_without_arguments() -> None:
    te = tvm.te
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    mod = tvm.build(tvm.lower(te.create_schedule(b.op), [a, b], name="plus"), target="llvm")
    assert mod.entry_name == "plus"


def test_an_inlined_stage_may_stand_among_the_arguments() -> None:
    te = tvm.te
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    c = te.compute((4,), lambda i: b[i] * 2, name="c")
    schedule = te.create_schedule(c.op)
    schedule[b].compute_inline()
    left_alone, out = np.full(4, 7, np.float32), np.zeros(4, np.float32)
    tvm.build(schedule, [a, b, c])(np.arange(4, dtype=np.float32), left_alone, out)
    assert out.tolist() == [2, 4, 6, 8]
    assert left_alone.tolist() == [7] * 4
    # The text is shown without naming the output, as topi's tutorial does.
    assert "c: float32[4]" in tvm.lower(schedule, [a], simple_mode=True)


def test_every_error_can_be_caught_as_one() -> None:
    with pytest.raises(tvm.TVMError):
        tvm.build(3)
    with pytest.raises(tvm.TVMError):
        tvm.runtime.load_module("nowhere.so")


def test_targets_by_keyword_and_kind() -> None:
    target = tvm.target.Target(target="llvm -mcpu=x86-64", host="llvm -mcpu=x86-64")
    assert target.kind.name == "llvm"
    assert tvm.device(target.kind.name, 0) == tvm.cpu()
    assert tvm.tir.Select is tvm.te.select


def test_what_can_be_asked_of_the_runtime() -> None:
    assert tvm.runtime.enabled("llvm")
    assert not tvm.runtime.enabled("cuda")
    assert tvm.cpu().exist
    assert [part.value for part in tvm.convert([1, 2])] == [1, 2]
    assert str(tvm.convert(1.5).dtype) == "float32"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda te, s, a: tvm.build(3), "give a schedule first"),
        (lambda te, s, a: tvm.build(s, a), "arguments as a list of tensors"),
        (lambda te, s, a: tvm.build(s, 3), "arguments as a list of tensors"),
        (lambda te, s, a: tvm.build(s), "give the arguments of the schedule"),
        (lambda te, s, a: tvm.build(s, [a], name=3), "the name of a function is a text"),
        (lambda te, s, a: tvm.build(s, [a, te.compute((3,), lambda i: i)]), "is not part of the"),
        (lambda te, s, a: tvm.lower(3, [a]), "give a schedule first"),
        (lambda te, s, a: tvm.runtime.load_module(3), "the path of a library is a text"),
        (lambda te, s, a: te.var(3), r"te\.var: name is 3; give a text"),
        (lambda te, s, a: te.compute((3,), 5), r"te\.compute: fcompute is 5; give a function"),
        (lambda te, s, a: te.schedule.InferBound(s), r"farbench\.lower.* does both"),
        (lambda te, s, a: tvm.register_func("f"), "a library calls no Python"),
        (lambda te, s, a: tvm.tir.call_extern("int32", "f"), "calls nothing from outside"),
    ],
)  # fmt: skip
def test_wrong_use_says_what_to_give(wrong: Any, said: str) -> None:
    a = tvm.te.placeholder((4,), name="a")
    s = tvm.te.create_schedule(tvm.te.compute((4,), lambda i: a[i] + 1, name="b").op)
    with pytest.raises((CompilerError, UsageError, AttributeError), match=said):
        wrong(tvm.te, s, a)
