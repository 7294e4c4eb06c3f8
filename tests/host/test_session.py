"""Sessions on every user land: files, arrays, calls, timings, and how each of them ends."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import farbench as fb
from farbench import errors, fill, nd, te
from farbench.session import Session
from farbench.tracker import Tracker
from farbench_rpc.manifest import ArgumentError


def add_arrays(session: Session) -> tuple[nd.NDArray, nd.NDArray, nd.NDArray]:
    there = session.cpu()
    a = nd.array(np.arange(100, dtype=np.int32), there)
    b = nd.array(np.full(100, 7, dtype=np.int32), there)
    return a, b, nd.empty(100, "int32", there)


def test_a_call_computes_on_the_device(session: Session) -> None:
    module = session.load_module("hostile.so")
    a, b, c = add_arrays(session)
    module["add"](a, b, c)
    assert (c.numpy() == np.arange(100) + 7).all()


def test_n10_numpy_arrays_and_numbers_are_taken_as_locally(session: Session) -> None:
    module = session.load_module("hostile.so")
    module["nothing"]()
    out = np.zeros(5, dtype=np.int32)
    module["add"](np.arange(5, dtype=np.int32), np.ones(5, dtype=np.int32), out)
    assert out.tolist() == [1, 2, 3, 4, 5]
    scaled = np.ones(3, dtype=np.float32)
    module["scale"](scaled, 2.5)
    module["scale"](scaled, np.float32(2))
    assert scaled.tolist() == [5.0, 5.0, 5.0]


@pytest.mark.parametrize("dtype", fill.DTYPES)
def test_n10_arrays_of_every_dtype_come_back_as_they_went(session: Session, dtype: str) -> None:
    low, high = fill.default_range(dtype)
    values = fill.reference(4, "uniform", low, high, dtype, (3, 5, 7))
    there = nd.array(values, session.cpu())
    assert there.numpy().tobytes() == values.tobytes()
    assert nd.array(values[:, ::2], session.cpu()).numpy().tobytes() == values[:, ::2].tobytes()


@pytest.mark.parametrize("dtype", fill.DTYPES)
def test_m3_a_fill_on_the_device_equals_the_reference(session: Session, dtype: str) -> None:
    session.load_module("hostile.so")
    made = nd.random((257,), dtype, session.cpu(), seed=2**40 + 1)
    here = nd.random((257,), dtype, None, seed=2**40 + 1)
    assert made.numpy().tobytes() == here.numpy().tobytes()
    assert made.source == here.source


def test_arrays_without_elements_and_without_dimensions(session: Session) -> None:
    assert nd.array(np.empty((0, 4), np.float32), session.cpu()).numpy().shape == (0, 4)
    assert nd.array(np.float64(2.5), session.cpu()).numpy() == 2.5


def test_m5_m7_a_timing_gives_every_sample(session: Session) -> None:
    module = session.load_module("hostile.so")
    seen: list[int] = []
    evaluator = module.time_evaluator(
        "add", session.cpu(), number=3, repeat=12, on_sample=lambda s: seen.append(s.total_ns)
    )
    found = evaluator(*add_arrays(session))
    assert [sample.total_ns for sample in found.samples] == seen
    assert len(found.results) == 12
    assert found.min <= found.median <= found.max
    assert found.interval.low <= found.median <= found.interval.high
    assert found.timer.resolution_ns > 0
    if "short_samples" not in found.flags:
        assert min(seen) >= 500 * found.timer.resolution_ns
    assert found.k >= 3
    assert [i.source for i in found.inputs] == ["host", "host", "uninitialised"]
    assert found.spent.end_to_end_s > 0
    assert found.spent.transfer_s > 0


def test_m5_an_exact_number_is_kept(session: Session) -> None:
    module = session.load_module("hostile.so")
    found = module.time_evaluator("nothing", number=2, repeat=3, exact=True)()
    assert {sample.k for sample in found.samples} == {2}


def test_m1_a_cold_timing_says_so(session: Session) -> None:
    module = session.load_module("hostile.so")
    found = module.time_evaluator("add", repeat=3, cache="cold")(*add_arrays(session))
    assert found.cache == "cold"
    assert {sample.k for sample in found.samples} == {1}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "takes 3 arguments"),
        ((np.zeros(3, np.int32), np.zeros(4, np.int32), np.zeros(3, np.int32)), "n = 3"),
        ((np.zeros(3, np.float32), np.zeros(3, np.int32), np.zeros(3, np.int32)), "int32"),
        ((1, 2, 3), "int32"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_call(
    session: Session, args: tuple[object, ...], says: str
) -> None:
    module = session.load_module("hostile.so")
    with pytest.raises(ArgumentError, match=says):
        module["add"](*args)  # type: ignore[arg-type]


def test_an_output_that_shares_memory_is_refused(session: Session) -> None:
    add = session.load_module("hostile.so")["add"]
    here = np.ones(3, dtype=np.int32)
    there, other = nd.array(here, session.cpu()), nd.array(here, session.cpu())
    for args in ((here, other, here), (there, other, there), (other, there, there)):
        with pytest.raises(ArgumentError, match=r"argument 3 .* shares memory with argument"):
            add(*args)
    add(there, there, other)
    assert other.numpy().tolist() == [2, 2, 2]


def test_an_array_of_another_place_is_refused(session: Session) -> None:
    module = session.load_module("hostile.so")
    a, b, _ = add_arrays(session)
    with pytest.raises(errors.UsageError, match="runs on"):
        module.time_evaluator("add", fb.cpu())
    with pytest.raises(errors.UsageError, match="no entry 'adds'"):
        module["adds"]
    with pytest.raises(errors.UsageError, match="give an NDArray"):
        module["add"](a, b, "c")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kernel", "error", "detail"),
    [
        ("segfault", errors.KernelCrashed, {"signal_name": "SIGSEGV"}),
        ("abort", errors.KernelAborted, {}),
        ("loop", errors.KernelTimeout, {"limit_s": 1.0}),
        ("fail", errors.KernelError, {"status": 7}),
    ],
)
def test_s2_a_bad_kernel_costs_its_call_alone(
    session: Session, kernel: str, error: type[errors.KernelError], detail: dict[str, object]
) -> None:
    module = session.load_module("hostile.so")
    with pytest.raises(error) as caught:
        module[kernel](timeout_s=1.0)
    assert kernel in str(caught.value.detail["last_call"])
    assert detail.items() <= caught.value.detail.items()
    module = session.load_module("hostile.so")
    a, b, c = add_arrays(session)
    module["add"](a, b, c)
    assert c.numpy()[99] == 106


def test_s2_an_exit_is_told_with_its_status(session: Session) -> None:
    module = session.load_module("hostile.so")
    with pytest.raises(errors.KernelExited) as caught:
        module["exit"](3)
    assert caught.value.detail["status"] == 3


def test_n11_an_upload_over_a_loaded_library_leaves_it_alone(
    session: Session, library_of: Callable[[str], Path], tmp_path: Path
) -> None:
    module = session.load_module("hostile.so")
    other = tmp_path / "other"
    other.write_bytes(b"not a library")
    session.upload(other, "hostile.so")
    a, b, c = add_arrays(session)
    module["add"](a, b, c)
    assert c.numpy()[0] == 7
    with pytest.raises(errors.LoadRefused):
        session.load_module("hostile.so")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\\b", "nul\0", "x" * 300])
def test_n12_only_plain_names_are_uploaded(session: Session, tmp_path: Path, name: str) -> None:
    source = tmp_path / "file"
    source.write_bytes(b"x")
    with pytest.raises(errors.UsageError, match="plain file name"):
        session.upload(source, name)


def test_a_missing_file_is_named(session: Session, tmp_path: Path) -> None:
    with pytest.raises(errors.UsageError, match="no such file"):
        session.upload(tmp_path / "none.so")
    with pytest.raises(errors.NotFound, match="upload it first"):
        session.load_module("none.so")


def test_s6_a_dropped_array_is_freed_with_the_next_request(session: Session) -> None:
    there = session.cpu()
    made = nd.empty(10, "int32", there)
    assert isinstance(made, nd.DeviceArray)
    handle = made.handle
    del made
    gc.collect()
    assert session.dropped == [handle]
    kept = nd.empty(10, "int32", there)
    assert session.dropped == []
    assert isinstance(kept, nd.DeviceArray)
    with pytest.raises(errors.NotFound):
        session.get(handle, nd.as_bytes(np.empty(10, np.int32)))


def test_s5_a_session_is_over_after_close(
    each_arch: str, tracker_of: Callable[[str], Tracker]
) -> None:
    tracker = tracker_of(each_arch)
    with tracker.request(f"name={each_arch}", timeout=60) as session:
        array = nd.empty(4, "float32", session.cpu())
    session.close()
    assert session.closed
    with pytest.raises(errors.SessionClosed, match="request a device again"):
        array.numpy()
    with tracker.request(f"name={each_arch}", timeout=5):
        pass


def test_the_order_of_bytes_does_not_matter_to_a_device(session: Session) -> None:
    values, out = np.arange(4, dtype=">i4"), np.zeros(4, dtype=">i4")
    assert nd.array(values, session.cpu()).numpy().tolist() == values.tolist()
    session.load_module("hostile.so")["add"](values, np.ones(4, dtype=np.int32), out)
    assert out.tolist() == [1, 2, 3, 4]


def test_a_name_that_is_not_text_is_refused(session: Session) -> None:
    with pytest.raises(errors.UsageError, match="UTF-8"):
        session.load_module("\udcff.so")


def test_threads_of_a_call_and_of_a_timing_are_chosen_and_read_back(session: Session) -> None:
    module = session.load_module("hostile.so")
    a, b, c = add_arrays(session)
    usual = module.time_evaluator("add", number=1)(a, b, c).facts["threads"]
    for threads in (1, 3, None):
        found = module.time_evaluator("add", number=1, repeat=2, threads=threads)(a, b, c)
        assert found.facts["threads"] == (threads or usual)
        c.copyfrom(np.zeros(100, np.int32))
        module["add"](a, b, c, threads=threads)
        assert c.numpy()[5] == 12
    with pytest.raises(errors.UsageError, match="threads must be a whole number from 1 to 1,024"):
        module["add"](a, b, c, threads=0)


def test_a_device_that_cannot_choose_threads_is_named(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = session.load_module("hostile.so")
    monkeypatch.setattr(Session, "minor", 0)
    module["nothing"]()
    with pytest.raises(errors.UsageError, match="is too old to choose threads"):
        module["nothing"](threads=2)
    with pytest.raises(errors.UsageError, match="is too old to choose threads"):
        module.time_evaluator("nothing", threads=2)()


def test_unsigned_numbers_of_all_64_bits_cross(
    each_arch: str, session: Session, tmp_path: Path
) -> None:
    number = te.var("number", "uint64")
    a = te.placeholder((3,), "uint64", name="A")
    c = te.compute((3,), lambda i: a[i] + number, name="C")
    built = fb.build(te.create_schedule(c.op), [a, number, c], target=each_arch, name="plus")
    built.export_library(tmp_path / "plus.so")
    session.upload(tmp_path / "plus.so")
    module = session.load_module("plus.so")
    given, out = np.arange(3, dtype=np.uint64), np.zeros(3, np.uint64)
    for value in (2**63 - 1, 2**63, 2**64 - 3, np.uint64(2**63 + 5)):
        module(given, value, out)
        assert out.tolist() == [int(value) + i for i in range(3)]
    for value in (-1, 2**64):
        with pytest.raises(ArgumentError, match="expected uint64"):
            module(given, value, out)
