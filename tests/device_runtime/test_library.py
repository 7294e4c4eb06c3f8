"""A library in this process, as the host calls it: checks, calls, fills, and its errors."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from farbench_device_runtime import facts
from farbench_device_runtime.library import Call, Library
from farbench_rpc.errors import InvalidArgument, KernelError, LoadRefused, NotFound
from farbench_rpc.manifest import ArrayFacts, Machine, decode
from tests.support import hostile

pytestmark = pytest.mark.linux


def test_calls_with_addresses_and_scalars(library: Path) -> None:
    loaded = Library.load(library, facts.machine(False))
    a, b, c = (ctypes.c_int32 * 3)(1, 2, 3), (ctypes.c_int32 * 3)(4, 5, 6), (ctypes.c_int32 * 3)()
    with loaded.context(2) as context:
        taken_ns = loaded.call(context, "add", [ctypes.addressof(x) for x in (a, b, c)], [3])
        assert taken_ns >= 0
        assert list(c) == [5, 7, 9]
        resolution_ns, overhead_ns = context.timer_probe()
        assert resolution_ns >= 1
        assert overhead_ns >= 0


def test_a_kernel_that_fails_gives_its_status_and_text(library: Path) -> None:
    loaded = Library.load(library)
    with loaded.context(1) as context:
        with pytest.raises(KernelError, match="fail returned 7: it does not want to") as caught:
            loaded.call(context, "fail", [], [])
        assert caught.value.detail["status"] == 7
        loaded.call(context, "nothing", [], [])


def test_carries_its_manifest(library: Path) -> None:
    loaded = Library.load(library)
    assert decode(loaded.encoded) == loaded.manifest == hostile.manifest(facts.arch())
    with pytest.raises(NotFound, match="nothing, segfault"):
        loaded.entry("nobody")


def test_fills_within_the_dtype(library: Path) -> None:
    values = (ctypes.c_uint8 * 50)()
    array = ArrayFacts("uint8", (5, 10), ctypes.addressof(values))
    with Library.load(library).context(1) as context:
        context.fill(array, 3, "constant", 9.0, 0.0)
        assert set(values) == {9}
        context.fill(array, 3, "uniform", 10.0, 20.0)
        assert set(values) <= set(range(10, 20))
        for kind, low, high in (
            ("constant", 300.0, 0.0),
            ("uniform", -1.0, 5.0),
            ("odd", 0.0, 1.0),
        ):
            with pytest.raises(InvalidArgument):
                context.fill(array, 3, kind, low, high)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (Machine("riscv64", (), (2, 36)), "riscv64"),
        (Machine(facts.arch(), (), (2, 3)), "glibc"),
        (Machine(facts.arch(), ()), "another C library"),
    ],
)
def test_is_refused_by_a_machine_it_does_not_fit(
    library: Path, machine: Machine, said: str
) -> None:
    with pytest.raises(LoadRefused, match=said):
        Library.load(library, machine)


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadRefused, match="No such file"):
        Library.load(tmp_path / "absent.so")
    (tmp_path / "x.so").write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(LoadRefused):
        Library.load(tmp_path / "x.so")


def mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def test_it_is_unloaded_when_nothing_refers_to_it(library: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.so"
    own.write_bytes(library.read_bytes())
    loaded = Library.load(own)
    point, context = loaded.entry("nothing"), loaded.context(2)
    del loaded
    call = Call(context, point, [], [])
    del point, context
    call.run()
    assert mapped(own)
    del call  # the pool ends first, then its code goes
    assert not mapped(own)


def test_a_pool_keeps_the_code_of_its_threads(library: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.so"
    own.write_bytes(library.read_bytes())
    context = Library.load(own).context(2)
    assert mapped(own)
    context.close()
    del context
    assert not mapped(own)
