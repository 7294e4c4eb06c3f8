"""What a client sees of a worker: calls, arrays, and each way in which a kernel can end badly."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import msgpack
import pytest

from farbench_device_runtime import procfs
from farbench_rpc import transfer
from farbench_rpc.errors import (
    Cancelled,
    InvalidArgument,
    KernelAborted,
    KernelCrashed,
    KernelError,
    KernelExited,
    KernelTimeout,
    LoadRefused,
    NotFound,
    OutOfMemory,
    QuotaExceeded,
    Refused,
    RpcError,
)
from farbench_rpc.messages import Alloc, CallEntry, Fill, Free, Get, Load, Put, SessionClose, Upload
from tests.support import hostile
from tests.support.direct import LocalSession

pytestmark = pytest.mark.linux


def test_call_reads_and_writes_arrays(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    a, b, c = session.array([1, 2, 3]), session.array([10, 20, 30]), session.array([0, 0, 0])
    assert session.call(module, "add", a, b, c) >= 0
    assert session.values(c, 3) == (11, 22, 33)


def test_call_takes_a_scalar_and_the_same_handles_again(
    session: LocalSession, library: Path
) -> None:
    module = session.load(library)
    a = session.array([1.0, 2.0], "float32")
    session.call(module, "scale", a, 2.5)
    session.call(module, "scale", a, 2)
    assert session.values(a, 2, "float32") == (5.0, 10.0)


def test_a_freed_array_is_not_used_again(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    a, b, c = (session.array([1]) for _ in range(3))
    session.call(module, "add", a, b, c)
    session.ask(Free((a,)))
    with pytest.raises(NotFound, match=f"array {a}"):
        session.call(module, "add", a, b, c)


@pytest.mark.parametrize(
    ("entry", "args", "error", "detail"),
    [
        ("segfault", (), KernelCrashed, {"signal": 11, "signal_name": "SIGSEGV"}),
        ("illegal", (), KernelCrashed, {"signal": 4, "signal_name": "SIGILL"}),
        ("abort", (), KernelAborted, {"signal": 6}),
        ("exit", (3,), KernelExited, {"status": 3}),
        ("quit", (0,), KernelExited, {"status": 0}),
        ("eat", (), OutOfMemory, {"limit_bytes": 192 << 20}),
        ("patricide", (), KernelCrashed, {"signal": 9, "signal_name": "SIGKILL"}),
        ("fail", (), KernelError, {"status": 7}),
    ],
)
def test_s2_a_bad_kernel_costs_its_call_alone(
    session: LocalSession,
    library: Path,
    entry: str,
    args: tuple[int, ...],
    error: type[RpcError],
    detail: dict[str, object],
) -> None:
    module = session.load(library)
    with pytest.raises(error) as caught:
        session.call(module, entry, *args)
    assert type(caught.value) is error
    assert caught.value.detail["last_call"] == f"call of {entry}"
    assert {key: caught.value.detail[key] for key in detail} == detail
    if error is not KernelError:
        with pytest.raises(NotFound, match="lost when its worker ended"):
            session.call(module, "nothing")
        module = session.load(library)
    session.call(module, "nothing")


@pytest.mark.parametrize("entry", ["loop", "stubborn", "stop"])
def test_s3_a_timeout_says_limit_and_elapsed(
    session: LocalSession, library: Path, entry: str
) -> None:
    module = session.load(library)
    began = time.monotonic()
    with pytest.raises(KernelTimeout) as caught:
        session.call(module, entry, timeout_s=1.0)
    assert time.monotonic() - began < 1.1 + 0.5
    detail = caught.value.detail
    assert detail["limit_s"] == 1.0
    assert 1.0 <= float(detail["elapsed_s"]) <= 1.1
    assert (detail["phase"], detail["last_call"]) == ("run", f"call of {entry}")
    session.call(session.load(library), "nothing")


def test_a_kernel_that_closes_its_descriptors_is_ended(
    session: LocalSession, library: Path
) -> None:
    module = session.load(library)
    with pytest.raises(KernelError, match="stopped speaking"):
        session.call(module, "close_all")
    session.call(session.load(library), "nothing")


_SAID = {
    "infinity": ["ok", float("inf")],
    "not a number": ["ok", float("nan")],
    "beyond 64 bits": ["ok", 2**64 - 1],
    "below zero": ["ok", -5],
    "nothing": ["ok", None],
    "no value": ["ok"],
    "gigabytes by their number": ["samples", 0, 1, 10**10],
    "no such arm": ["phase", "run", -1],
    "no text": ["error"],
    "a list": ["ok", [1]],
}


@pytest.mark.parametrize("said", _SAID)
def test_whatever_a_kernel_says_in_its_workers_name_costs_its_call_alone(
    session: LocalSession, library: Path, said: str
) -> None:
    packed = msgpack.packb(_SAID[said])
    module, text = session.load(library), session.array(list(packed), "uint8")
    with pytest.raises(KernelError, match="stopped speaking"):
        session.call(module, "speak", text)
    session.call(session.load(library), "nothing")


def test_a_failure_that_the_wire_cannot_carry_is_told_all_the_same(
    session: LocalSession, library: Path
) -> None:
    detail = {"large": 2**64 - 1, **{str(i): "y" * 90 for i in range(900)}}
    packed = msgpack.packb(["error", "oom", "said by the kernel", detail])
    module, text = session.load(library), session.array(list(packed), "uint8")
    with pytest.raises(OutOfMemory, match="said by the kernel") as caught:
        session.call(module, "speak", text)
    assert caught.value.detail["large"] == str(2**64 - 1)


def test_what_a_worker_left_in_its_directory_does_not_hinder_the_next(
    session: LocalSession, library: Path
) -> None:
    with pytest.raises(KernelAborted):
        session.call(session.load(library), "spoil")
    session.call(session.load(library), "nothing")


def test_directories_without_end_are_removed_with_the_session(library: Path) -> None:
    with LocalSession() as session:
        session.call(session.load(library), "deep")
        folder = session.device._folder
    assert not folder.exists()


def test_a_kernel_that_keeps_files_open_is_named_as_the_reason(
    session: LocalSession, library: Path
) -> None:
    session.call(session.load(library), "keep_open")
    with pytest.raises(QuotaExceeded, match="left too many open"):
        session.load(library)


def test_a_large_file_is_not_written(session: LocalSession, library: Path) -> None:
    with pytest.raises(KernelError, match="returned 9"):
        session.call(session.load(library), "fill_disk")


def test_s7_grandchildren_that_flee_are_gone(library: Path) -> None:
    with LocalSession() as session:
        module = session.load(library)
        session.call(module, "flee")
        zygote = _zygote_of(session)
        adopted = procfs.children(zygote) or []
        assert len(adopted) >= 4
        session.ask(SessionClose())
        # One may be left: the worker that is kept warm for the next session.
        assert len(set(procfs.children(zygote) or []) & set(adopted)) <= 1


def test_s5_close_ends_a_looping_session_within_a_second(library: Path) -> None:
    session = LocalSession()
    module = session.load(library)
    pending = session.client.begin(CallEntry(module, "loop", (), 60.0))
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 1.0
    pending.close()


def test_s8_nothing_is_left_on_disk(library: Path) -> None:
    session = LocalSession()
    folder = session.device._folder
    session.call(session.load(library), "litter")
    assert list((folder / "sessions").glob("*/*/some/link"))
    session.close()
    assert not folder.exists()
    assert os.path.isdir("/etc")


def test_a_worker_has_no_environment_and_few_descriptors(
    session: LocalSession, library: Path
) -> None:
    out = session.array([9, 9, 9])
    session.call(session.load(library), "environment", out)
    variables, descriptors, leads_session = session.values(out, 3)
    assert (variables, leads_session) == (0, 1)
    assert descriptors <= 4  # its pipe, its window, and what the loader keeps


def test_m3_fill_is_the_same_for_the_same_seed(session: LocalSession, library: Path) -> None:
    arrays = [session.array([0.0] * 100, "float32") for _ in range(3)]
    session.ask(Fill(arrays[0], 1))  # no library yet
    session.load(library)
    for array, seed in zip(arrays[1:], (1, 2), strict=True):
        session.ask(Fill(array, seed))
    first, again, other = (session.values(array, 100, "float32") for array in arrays)
    assert first == again != other
    assert all(0 <= value <= 1 for value in first)


def test_transfers_of_several_windows_come_back_byte_exact(session: LocalSession) -> None:
    nbytes = (40 << 20) + 12345
    data = os.urandom(1 << 20) * 41
    array = session.ask(Alloc("uint8", (nbytes,))).array  # type: ignore[attr-defined]
    transfer.put(session.client, array, memoryview(data)[:nbytes])
    back = bytearray(nbytes)
    transfer.get(session.client, array, memoryview(back))
    assert back == data[:nbytes]


def test_array_of_no_elements(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    a, b, c = (session.array([]) for _ in range(3))
    session.call(module, "add", a, b, c)
    assert session.values(c, 0) == ()


def test_arguments_are_checked_before_the_call(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    ints, floats, short = session.array([1, 2]), session.array([1.0], "float32"), session.array([1])
    for args, match in (
        ((ints, ints), "takes 3 arguments, got 2"),
        ((ints, ints, floats), "expected int32"),
        ((ints, ints, short), "n = 2"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            session.call(module, "add", *args)
    with pytest.raises(NotFound, match="no entry 'nobody'"):
        session.call(module, "nobody")


def test_requests_outside_of_what_is_there_are_refused(session: LocalSession) -> None:
    array = session.array([1, 2])
    for message, error in (
        (Get(array, 4, 8), InvalidArgument),
        (Get(array, -1, 1), InvalidArgument),
        (Get(99, 0, 1), NotFound),
        (Alloc("complex64", (1,)), InvalidArgument),
        (Alloc("int32", (-1,)), InvalidArgument),
        (Alloc("int32", (1 << 40,)), OutOfMemory),
        (Load("nothing"), NotFound),
        (Upload("x", 3, "a"), InvalidArgument),
        (Upload("0" * 64, 1 << 40, "a"), QuotaExceeded),
        (CallEntry(1, "nothing", (), float("inf")), InvalidArgument),
    ):
        with pytest.raises(error):
            session.ask(message)
    with pytest.raises(InvalidArgument):
        session.client.ask(Put(array, 4, True), [b"12345678"])
    with pytest.raises(InvalidArgument):
        session.client.ask(Put(array, 0, True), [])
    assert session.values(array, 2) == (1, 2)


def test_n12_a_name_is_only_a_label(session: LocalSession, library: Path) -> None:
    for name in ("../../escape.so", "/etc/passwd", "a/b:c", "x" * 255):
        session.call(session.load(library, name), "nothing")
    folder = session.device._folder
    written = {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}
    assert written == {"epoch", "sessions", "store"}
    assert len(list((folder / "store").iterdir())) == 1


def test_n11_an_upload_never_touches_a_loaded_library(
    session: LocalSession, library: Path, tmp_path: Path
) -> None:
    module = session.load(library, "same.so")
    stored = session.device._folder / "store"
    before = {path: path.stat().st_ino for path in stored.iterdir()}
    other = hostile.build(session.opened.facts["arch"], tmp_path, tag="1" * 64)  # type: ignore[arg-type]
    second = session.load(other, "same.so")
    session.call(module, "nothing")
    session.call(second, "nothing")
    assert all(path.stat().st_ino == inode for path, inode in before.items())
    assert len(list(stored.iterdir())) == 2


def test_a_library_that_does_not_fit_is_refused_before_the_loader(
    session: LocalSession, tmp_path: Path
) -> None:
    arch = str(session.opened.facts["arch"])
    foreign = "armv7" if arch != "armv7" else "aarch64"
    with pytest.raises(LoadRefused, match=f"for {foreign}, this device is {arch}"):
        session.load(hostile.build(foreign, tmp_path))
    needs = {"x86_64": "amx-tile", "aarch64": "sve2", "armv7": "fullfp16"}[arch]
    if needs not in session.opened.facts["features"]:  # type: ignore[operator]
        with pytest.raises(LoadRefused, match=needs):
            session.load(hostile.build(arch, tmp_path, features=(needs,), name="needy"))
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(LoadRefused):
        session.load(text)


def test_two_clients_cannot_share_a_session(session: LocalSession) -> None:
    from farbench_rpc.client import Client
    from farbench_rpc.messages import Free

    with Client(session.device.dial, "client") as other, pytest.raises(Refused):
        other.ask(Free(()))


def _zygote_of(session: LocalSession) -> int:
    supervisor = session.device._supervisor
    assert supervisor is not None
    return supervisor.pid


def test_a_get_whose_worker_dies_is_told_so(session: LocalSession, library: Path) -> None:
    module = session.load(library)
    nbytes = 64 << 20
    array = session.ask(Alloc("uint8", (nbytes,))).array  # type: ignore[attr-defined]
    # Without credit the get stops half-way, and the crash comes behind it.
    stuck = session.client.begin(Get(array, 0, nbytes))
    os.kill(_worker_of(session), signal.SIGKILL)
    with pytest.raises((Cancelled, OutOfMemory, NotFound)):
        stuck.wait(20)
    with pytest.raises((NotFound, OutOfMemory)):
        session.call(module, "nothing")
    module = session.load(library)
    a, b, c = session.array([1]), session.array([2]), session.array([0])
    session.call(module, "add", a, b, c)
    assert session.values(c, 1) == (3,)


def _worker_of(session: LocalSession) -> int:
    """Find the worker that serves: the one whose output goes to a file."""
    for pid in procfs.children(_zygote_of(session)) or []:
        if os.readlink(f"/proc/{pid}/fd/1").endswith("output.log"):
            return pid
    raise AssertionError("no worker serves")
