"""Rows S2, S7 and S8: what bad code costs, and what it leaves behind, which is nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from farbench import errors, nd
from farbench.boards import DeviceProcess
from farbench.session import Session
from farbench_rpc import messages as m
from tests.behaviours.yard import Place, Yard, client, inside, start, until, watched

pytestmark = pytest.mark.linux

BAD = [
    ("segfault", (), errors.KernelCrashed, {"signal": signal.SIGSEGV, "signal_name": "SIGSEGV"}),
    ("abort", (), errors.KernelAborted, {"signal": signal.SIGABRT, "signal_name": "SIGABRT"}),
    ("loop", (), errors.KernelTimeout, {"limit_s": 0.5}),
    ("exit", (3,), errors.KernelExited, {"status": 3}),
    ("quit", (0,), errors.KernelExited, {"status": 0}),
    ("fail", (), errors.KernelError, {"status": 7}),
]


def works(session: Session) -> None:
    """Prove that a session computes."""
    module = session.load_module("hostile.so")
    out = np.zeros(100, dtype=np.int32)
    module["add"](np.arange(100, dtype=np.int32), np.full(100, 7, dtype=np.int32), out)
    assert (out == np.arange(100) + 7).all()


@pytest.mark.parametrize(("kernel", "args", "error", "detail"), BAD, ids=[bad[0] for bad in BAD])
def test_s2_a_bad_kernel_costs_exactly_its_call(
    place: Place,
    kernel: str,
    args: tuple[int, ...],
    error: type[errors.KernelError],
    detail: dict[str, object],
) -> None:
    with place.request() as session:
        module = session.load_module("hostile.so")
        with pytest.raises(errors.KernelError) as caught:
            module[kernel](*args, timeout_s=0.5)
        assert type(caught.value) is error
        assert detail.items() <= caught.value.detail.items()
        assert kernel in str(caught.value.detail["last_call"])
        assert kernel in str(caught.value)
        assert "\n" not in str(caught.value)
        works(session)
    with place.request(timeout=5.0) as session:
        assert session.queued_s < 1.0
        works(session)
    assert place.device.poll() is None


def test_s2_eating_memory_costs_exactly_its_call(place: Place) -> None:
    with place.request() as session:
        module = session.load_module("hostile.so")
        with pytest.raises(errors.OutOfMemory) as caught:
            module["eat"](timeout_s=60.0)
        assert int(caught.value.detail["limit_bytes"]) > 0
        assert "eat" in str(caught.value.detail["last_call"])
        # Without a limit of addresses, memory in use is watched, which is less exact.
        if "address_space" in session.facts["isolation"]:  # type: ignore[operator]
            assert int(caught.value.detail["peak_bytes"]) < 3 * int(
                caught.value.detail["limit_bytes"]
            )
        works(session)
    with place.request(timeout=5.0) as session:
        works(session)
    assert place.device.poll() is None


def fled(session: Session, place: Place) -> list[int]:
    """Let the kernel start processes that flee; gives every process of the session."""
    module = session.load_module("hostile.so")
    before = len(inside(place.sessions))
    module["flee"]()
    # Once a device denies new processes, which its facts will say, there are none to be killed.
    if "no_new_processes" not in session.facts["isolation"]:  # type: ignore[operator]
        # Those in between, which an emulated board takes its time for, end by themselves.
        until(lambda: len(inside(place.sessions)) == before + 3, 10.0, "three that fled")
    return inside(place.sessions)


def test_s7_grandchildren_are_gone_when_the_session_ends(place: Place) -> None:
    with place.request() as session:
        everyone = fled(session, place)
        with watched(everyone) as alive_after:
            assert alive_after(0.0) == everyone
            session.close()
            assert alive_after(1.0) == []
    assert inside(place.sessions) == []


def test_s7_grandchildren_of_a_run_that_timed_out_are_gone(place: Place) -> None:
    with place.request() as session:
        everyone = fled(session, place)
        with watched(everyone) as alive_after:
            with pytest.raises(errors.KernelTimeout):
                session.load_module("hostile.so")["stubborn"](timeout_s=0.5)
            works(session)  # in a fresh worker, once the old one's tree is gone
            assert alive_after(1.0) == []


def test_s7_grandchildren_of_a_killed_client_are_gone(native: Place) -> None:
    with client(native.yard.address, "native", native.library, "flee", "stubborn") as killed:
        everyone = inside(native.sessions)
        assert len(everyone) > 3
        with watched(everyone) as alive_after:
            killed.kill()
            assert alive_after(5.0) == []
    until(lambda: inside(native.sessions) == [], 5.0, "every process gone")


# ---------------------------------------------------------------- disk

STORE_LIMIT = 4 << 20
SLACK = 64 << 10  # the identity, the epoch, and what the file system rounds up to


def usage(*folders: Path) -> int:
    """Count the bytes that files below take on disk."""
    total = 0
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.lstat(Path(root) / name).st_blocks * 512
    return total


@contextlib.contextmanager
def own_device(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Place, DeviceProcess, list[Path]]]:
    """Start a device whose every file lies in two folders: its state, its temporary files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    config = tmp_path / "device.toml"
    config.write_text(f'[device]\nstore_limit = "{STORE_LIMIT}"\nfile_limit = "1MiB"\n')
    monkeypatch.setenv("TMPDIR", str(temporary))
    state = tmp_path / "state"
    name = f"disk-{place.arch}"
    with start(
        place.arch, place.yard.address, state, name, extra=("--config", str(config))
    ) as device:
        yield Place(name, _Apart(place.yard, state, place.library)), device, [state, temporary]


class _Apart(Yard):
    """The shared yard, but with the state directory and library of one device of its own."""

    def __init__(self, yard: Yard, state: Path, library: Path) -> None:
        self.address = yard.address
        self.tracker = yard.tracker
        self._state = state
        self._library = library

    def state_of(self, arch: str) -> Path:
        """Give the one state directory."""
        return self._state

    def library(self, arch: str) -> Path:
        """Give the one library."""
        return self._library


def upload_noise(session: Session, path: Path, nbytes: int) -> None:
    """Send a file that the device never saw."""
    path.write_bytes(os.urandom(nbytes))
    session.upload(path)


def test_s8_disk_use_is_back_at_the_baseline(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_device(place, tmp_path, monkeypatch) as (own, _, folders):
        baseline = usage(*folders)
        files = tmp_path / "files"
        files.mkdir()
        for index in range(2):
            with own.request() as session:
                upload_noise(session, files / f"{index}.bin", 1 << 20)
                module = session.load_module("hostile.so")
                module["litter"]()
                with contextlib.suppress(errors.KernelError):
                    module["fill_disk"]()
                assert usage(*folders) > baseline + (1 << 20)
                with pytest.raises(errors.KernelAborted):
                    session.load_module("hostile.so")["abort"]()
                session.load_module("hostile.so")["litter"]()
        # Sessions that are cut off while a large file is on its way.
        for index in range(3):
            with own.request() as session:
                session.ask(m.Upload(f"{index}" * 64, 3 << 20, "cut.bin"))
                for chunk in range(2):
                    message = m.UploadChunk(f"{index}" * 64, chunk)
                    session._line.client.tell(message, (os.urandom(session.chunk_bytes),))
                nd.empty(1, "int32", session.cpu())  # answered once the chunks have come
        with own.request(session_timeout=1.5) as session:
            module = session.load_module("hostile.so")
            module["litter"]()
            with pytest.raises(errors.LeaseLost):
                module["stubborn"](timeout_s=60.0)
        with own.request(timeout=5.0) as session:
            upload_noise(session, files / "last.bin", 1 << 20)
        until(lambda: list(own.sessions.iterdir()) == [], 1.0, "every private directory gone")
        assert usage(folders[1]) == 0
        assert usage(folders[0]) <= baseline + STORE_LIMIT + SLACK


def test_s8_a_killed_server_leaves_nothing_that_its_next_start_does_not_remove(
    native: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_device(native, tmp_path, monkeypatch) as (own, device, folders):
        baseline = usage(*folders)
        session = own.request()
        module = session.load_module("hostile.so")
        module["litter"]()
        upload_noise(session, tmp_path / "noise.bin", 1 << 20)
        session.ask(m.Upload("a" * 64, 3 << 20, "cut.bin"))
        chunk = (os.urandom(session.chunk_bytes),)
        session._line.client.tell(m.UploadChunk("a" * 64, 0), chunk)
        device.kill()
        session.close()
    with start("native", native.yard.address, folders[0], "disk-native"):
        assert list((folders[0] / "sessions").iterdir()) == []
        assert usage(*folders) <= baseline + STORE_LIMIT + SLACK
        assert not list(folders[0].rglob("*.part"))
