"""Libraries in this process: calls, timings, and arguments that need a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farbench as fb
from farbench import errors, nd, te
from farbench_rpc.manifest import ArgumentError, ManifestError

pytestmark = pytest.mark.linux


@pytest.fixture
def module(library_of: Callable[[str], Path]) -> fb.Module:
    return fb.load_module(library_of("native"))


def test_it_knows_its_entries(module: fb.Module) -> None:
    assert module.entry_name == "nothing"
    assert "add" in module.entries
    assert module.signature == "nothing()"
    module()


def test_n10_arrays_are_used_in_place_or_copied_there_and_back(module: fb.Module) -> None:
    a, b = nd.array(np.arange(8, dtype=np.int32)), nd.array(np.ones(8, dtype=np.int32))
    c = nd.empty(8, "int32")
    module["add"](a, b, c)
    assert c.numpy().tolist() == list(range(1, 9))
    # A slice that is neither aligned nor contiguous.
    out = np.zeros(17, dtype=np.int32)[1::2]
    module["add"](np.arange(16, dtype=np.int32)[::2], b, out)
    assert out.tolist() == [1, 3, 5, 7, 9, 11, 13, 15]


def test_a_read_only_output_is_refused(module: fb.Module) -> None:
    ones = np.ones(3, dtype=np.int32)
    for out in (np.zeros(3, dtype=np.int32), np.zeros(7, dtype=np.int32)[1:4]):
        out.flags.writeable = False
        with pytest.raises(ArgumentError, match="writable"):
            module["add"](ones, ones, out)


def test_an_output_that_shares_memory_is_refused(module: fb.Module) -> None:
    whole = np.ones(64, dtype=np.int32)
    b = np.ones(8, dtype=np.int32)
    shared = r"add: argument 3 \(.*\): is written and shares memory with argument 1"
    for first, out in ((whole[:8], whole[:8]), (whole[4:12], whole[:8]), (b, b)):
        with pytest.raises(ArgumentError, match=shared):
            module["add"](first, whole[32:40], out)
    # Neighbours, and rows that only lie between each other, share nothing.
    module["add"](whole[:8], b, whole[8:16])
    module["add"](whole[0:16:2], b, whole[1:16:2])
    assert whole[8:16].tolist() != [1] * 8
    same = nd.array(b)
    with pytest.raises(ArgumentError, match="argument 2"):
        module["add"](b, same, same)


def test_a_kernel_that_fails_is_an_error(module: fb.Module) -> None:
    with pytest.raises(errors.KernelError, match="does not want to"):
        module["fail"]()


def test_it_is_timed_by_the_same_loop(module: fb.Module) -> None:
    seen: list[int] = []
    found = module.time_evaluator(
        "nothing", number=5, repeat=10, on_sample=lambda s: seen.append(s.k)
    )()
    assert len(seen) == len(found.samples) == 10
    assert found.device == "this process"
    assert "in_process" in found.flags
    assert found.timer.resolution_ns > 0


def test_an_array_of_a_session_is_refused(
    module: fb.Module, library_of: Callable[[str], Path]
) -> None:
    with fb.local() as session:
        there = nd.empty(3, "int32", session.cpu())
        with pytest.raises(errors.UsageError, match="lives on a session"):
            module["add"](there, there, there)


def test_a_library_of_another_machine_is_refused(library_of: Callable[[str], Path]) -> None:
    foreign = fb.load_module(library_of("aarch64"))
    with pytest.raises(errors.LoadRefused, match="aarch64"):
        foreign()


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("hello")
    with pytest.raises(ManifestError, match="not an ELF"):
        fb.load_module(text)
    with pytest.raises(errors.UsageError, match="no library"):
        fb.load_module(tmp_path / "none.so")


def test_it_is_exported_as_it_is(module: fb.Module, tmp_path: Path) -> None:
    module.export_library(tmp_path / "copy.so")
    assert fb.load_module(tmp_path / "copy.so").entries == module.entries
    with pytest.raises(errors.UsageError, match="no folder"):
        module.export_library(tmp_path / "none" / "copy.so")
    with pytest.raises(errors.UsageError, match="source"):
        module.get_source()


def scaling(factor: int) -> fb.Module:
    a = te.placeholder((4,), name="A")
    b = te.compute(a.shape, lambda i: a[i] * factor, name="B")
    return fb.build(te.create_schedule(b.op), [a, b], name="scale")


def scaled(module: fb.Module) -> list[float]:
    out = np.zeros(4, dtype=np.float32)
    module(np.ones(4, dtype=np.float32), out)
    return list(out)


def test_n11_a_path_that_was_written_anew_gives_the_new_library(tmp_path: Path) -> None:
    path = tmp_path / "scale.so"
    scaling(2).export_library(path)
    old = fb.load_module(path)
    assert scaled(old) == [2.0] * 4
    scaling(3).export_library(path)
    assert scaled(fb.load_module(path)) == [3.0] * 4
    assert scaled(old) == [2.0] * 4


def test_n11_a_file_that_is_written_over_leaves_what_was_read_of_it(tmp_path: Path) -> None:
    path = tmp_path / "scale.so"
    scaling(5).export_library(path)
    loaded, unused = fb.load_module(path), fb.load_module(path)
    assert scaled(loaded) == [5.0] * 4
    path.write_bytes(bytes(path.stat().st_size))
    assert scaled(loaded) == scaled(unused) == [5.0] * 4
    unused.export_library(path)
    assert scaled(fb.load_module(path)) == [5.0] * 4


def test_the_order_of_bytes_of_arguments_does_not_matter(module: fb.Module) -> None:
    out = np.zeros(4, dtype=">i4")
    module["add"](np.arange(4, dtype=">i4"), np.ones(4, dtype=np.int32), out)
    assert out.tolist() == [1, 2, 3, 4]


def test_an_array_of_objects_is_refused(module: fb.Module) -> None:
    odd = np.array([object()] * 3)
    with pytest.raises(ArgumentError, match="got object"):
        module["add"](odd, odd, odd)


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), 1e18, "x", None, True])
def test_a_limit_of_a_call_that_is_none_is_refused(module: fb.Module, timeout_s: object) -> None:
    with pytest.raises(errors.UsageError, match="timeout_s"):
        module["nothing"](timeout_s=timeout_s)  # type: ignore[arg-type]
    with pytest.raises(errors.UsageError, match="timeout_s"):
        module(timeout_s=timeout_s)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "says"), [("f_preproc", 'cache="cold"'), ("nubmer", "it has number, repeat")]
)
def test_options_that_are_not_ours_are_refused_with_what_there_is(
    module: fb.Module, option: str, says: str
) -> None:
    evaluator: Callable[..., object] = module.time_evaluator
    with pytest.raises(errors.UsageError, match=f"time_evaluator has no .*{option}.*{says}"):
        evaluator(module.entry_name, **{option: 1})


def test_arrays_without_elements_lie_anywhere() -> None:
    n = te.var("n")
    a = te.placeholder((n, 3), name="A")
    c = te.compute((n, 3), lambda i, j: a[i, j] + 1.0, name="C")
    module = fb.build(te.create_schedule(c.op), [a, c])
    empty = np.zeros((0, 3), np.float32)
    module(empty, np.zeros((0, 3), np.float32))
    module(fb.nd.array(empty), fb.nd.zeros((0, 3), "float32"))


@pytest.mark.parametrize("path", [None, 3, b"m.so", "a\0b.so", "n" * 5000 + ".so"], ids=range(5))
def test_what_is_no_path_is_refused(module: fb.Module, path: Any) -> None:
    for use in (fb.load_module, module.export_library, module.save):
        with pytest.raises(errors.UsageError) as caught:
            use(path)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300
