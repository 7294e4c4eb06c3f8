"""Builds in this process: linked in memory, freed with their module, or by way of the linker."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

import farbench as fb
from farbench import linked, nd, resident, te
from farbench.errors import LoadRefused
from farbench_compiler.artifact import Artifact
from farbench_compiler.errors import LinkError
from farbench_compiler.llvm import jit
from farbench_device_runtime import facts

pytestmark = pytest.mark.linux


def scaled(factor: float = 3.0, dtype: str = "float32", target: str = "native") -> fb.Module:
    a = te.placeholder((40,), dtype, name="A")
    weights = te.constant(np.full(40, factor, dtype), name="W")
    c = te.compute((40,), lambda i: a[i] * weights[i], name="C")
    s = te.create_schedule(c.op)
    s[c].parallel(s[c].split(c.op.axis[0], 8)[0])
    return fb.build(s, [a, c], target=target, cache=False)


def run(module: fb.Module, dtype: str = "float32") -> list[float]:
    out = np.zeros(40, dtype)
    module(np.arange(40).astype(dtype), out)
    return [float(x) for x in out]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_constants_helpers_and_parallel_loops_are_found(dtype: str) -> None:
    plain = "x86-64" if facts.arch() == "x86_64" else "native"
    assert run(scaled(3.0, dtype, plain), dtype) == [3.0 * i for i in range(40)]


def test_no_linker_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    run(scaled())  # what a process does once
    module = scaled(5.0)
    monkeypatch.setattr("farbench_compiler.artifact.link_shared", None)
    assert run(module)[1] == 5.0


def test_what_memory_refuses_goes_by_the_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise LinkError("no memory that can be executed")

    monkeypatch.setattr(jit, "link_in_memory", refuse)
    assert run(scaled(7.0))[1] == 7.0


def test_another_machine_is_refused_before_anything_is_linked() -> None:
    with pytest.raises(LoadRefused, match="the library is for riscv64"):
        scaled(target="riscv64").load()
    built = scaled()._origin
    assert isinstance(built, Artifact)
    with pytest.raises(LoadRefused, match="lacks"):
        linked.link(built, replace(facts.machine(False), features=()))


def test_equal_builds_share_their_code_and_the_last_one_frees_it() -> None:
    first, second = scaled(9.0).load(), scaled(9.0).load()
    assert first._library is second._library
    seen = weakref.ref(first._library)
    del first
    gc.collect()
    assert seen() is not None
    assert run(second)[1] == 9.0
    del second
    gc.collect()
    assert seen() is None


def test_the_pool_outlives_the_module_that_made_it() -> None:
    run(scaled(11.0))
    gc.collect()
    before = resident.threads()
    assert run(scaled(13.0))[2] == 26.0
    assert resident.threads() == before


def test_a_prepared_timing_keeps_the_code() -> None:
    module = scaled(15.0)
    timing = module.time_evaluator("main", number=2, repeat=2)
    del module
    gc.collect()
    a, c = nd.array(np.ones(40, np.float32)), nd.empty(40, "float32")
    assert len(timing(a, c).results) == 2
    assert c.numpy()[0] == 15.0
