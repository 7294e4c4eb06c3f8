"""Rows N7, N11 and N12: what travels, what a loaded library is safe from, and where files go."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import farbench as fb
from farbench import errors, fill, nd, te
from farbench.remote import RemoteModule
from farbench.session import Session
from farbench_rpc import messages as m
from tests.behaviours.yard import TARGETS, Place, Yard

pytestmark = pytest.mark.linux


def scaling(factor: float, arch: str, path: Path) -> Path:
    """Build a library that multiplies by a factor."""
    a = te.placeholder((8,), name="A")
    b = te.compute(a.shape, lambda i: a[i] * factor, name="B")
    module = fb.build(te.create_schedule(b.op), [a, b], target=TARGETS[arch], name="scale")
    module.export_library(path)
    return path


def factor_of(module: RemoteModule) -> float:
    out = np.zeros(8, dtype=np.float32)
    module(np.ones(8, dtype=np.float32), out)
    return float(out[5])


def test_n7_inputs_are_made_on_the_device(place: Place) -> None:
    with place.request() as session:
        session.load_module("hostile.so")
        before = session.transfer_s
        made = nd.random((1 << 20,), "float32", session.cpu(), seed=7)
        assert session.transfer_s == before
        wanted = fill.reference(7, "uniform", 0.0, 1.0, "float32", (1 << 20,))
        assert made.numpy().tobytes() == wanted.tobytes()
        assert session.transfer_s > before


def test_n7_a_file_that_the_device_has_does_not_travel_again(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "inputs.bin"
    path.write_bytes(os.urandom(3 << 20))
    with place.request() as session:
        session.upload(path)
    again = tmp_path / "other-name.bin"
    path.rename(again)
    with place.request() as session:
        session.upload(again)
        digest = _digest(again)
        answer = session.ask(m.Upload(digest, 3 << 20, "third.bin")).message
    assert answer == m.UploadWanted(())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_n11_an_upload_over_a_loaded_library_is_another_library(
    place: Place, tmp_path: Path
) -> None:
    first = scaling(2.0, place.arch, tmp_path / "two.so")
    second = scaling(3.0, place.arch, tmp_path / "three.so")
    with place.request() as session:
        session.upload(first, "scale.so")
        old = session.load_module("scale.so")
        assert factor_of(old) == 2.0
        session.upload(second, "scale.so")
        assert factor_of(old) == 2.0
        new = session.load_module("scale.so")
        assert (factor_of(old), factor_of(new)) == (2.0, 3.0)
        junk = tmp_path / "junk.so"
        junk.write_bytes(os.urandom(first.stat().st_size))
        session.upload(junk, "scale.so")
        with pytest.raises(errors.LoadRefused):
            session.load_module("scale.so")
        assert (factor_of(old), factor_of(new)) == (2.0, 3.0)
    assert place.device.poll() is None


def test_n11_stored_files_are_never_written_to(place: Place, tmp_path: Path) -> None:
    path = scaling(5.0, place.arch, tmp_path / "five.so")
    with place.request() as session:
        session.upload(path, "scale.so")
        module = session.load_module("scale.so")
        (stored,) = place.yard.state_of(place.arch).rglob(_digest(path))
        before = stored.stat()
        assert before.st_mode & 0o222 == 0
        session.ask(m.Upload(_digest(path), path.stat().st_size, "scale.so"))
        chunk = m.UploadChunk(_digest(path), 0)
        session._line.client.tell(chunk, (bytes(path.stat().st_size),))
        assert factor_of(module) == 5.0
        after = stored.stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_n11_a_cut_upload_is_no_file(place: Place) -> None:
    with place.request() as session:
        digest = "ab" * 32
        session.ask(m.Upload(digest, 3 << 20, "cut.so"))
        session._line.client.tell(m.UploadChunk(digest, 1), (bytes(session.chunk_bytes),))
        with pytest.raises((errors.NotFound, errors.LoadRefused)):
            session.load_module("cut.so")
        assert not list(place.yard.state_of(place.arch).rglob(digest))


NAMES = ["../escape.so", "/tmp/farbench-escape.so", "a/../../escape.so", "..", ".", "sub/x.so"]


@pytest.mark.parametrize("name", NAMES)
def test_n12_names_stay_inside(place: Place, tmp_path: Path, name: str) -> None:
    content = os.urandom(5000)
    source = tmp_path / "x.so"
    source.write_bytes(content)
    with place.request() as session:
        with pytest.raises(errors.UsageError):
            session.upload(source, name)
        # A client that does not check gets no further: a name is no path on the device.
        announce = m.Upload(_digest(source), len(content), name)
        _try(session, announce)
        session._line.client.tell(m.UploadChunk(_digest(source), 0), (content,))
        _try(session, m.UploadEnd(_digest(source)))
        state = place.yard.state_of(place.arch)
        (stored,) = state.rglob(_digest(source))
        assert stored.parent.name == "store"
    assert not list(place.yard.folder.rglob("escape.so"))
    assert not Path("/tmp/farbench-escape.so").exists()


def _try(session: Session, message: m.Message) -> None:
    """Ask for what the device may as well refuse."""
    with suppress(errors.RpcError):
        session.ask(message)


def test_n12_digests_that_are_paths_are_refused(place: Place) -> None:
    with place.request() as session:
        for digest in ("../" + "0" * 61, "/" + "0" * 63, "", "0" * 65):
            with pytest.raises(errors.InvalidArgument):
                session.ask(m.Upload(digest, 10, "x.so"))


@pytest.mark.parametrize("command", ["tracker", "device"])
def test_n12_nothing_listens_beyond_loopback_unasked(
    yard: Yard, tmp_path: Path, command: str
) -> None:
    words = {
        "tracker": ["tracker", "--host", "0.0.0.0", "--port", "0"],
        "device": ["device", "--tracker", yard.address, "--listen", "0.0.0.0:0"],
    }[command]
    if command == "device":
        words += ["--state", str(tmp_path / "state")]
    done = subprocess.run(
        [sys.executable, "-m", "farbench.cli.main", *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert "--insecure" in done.stderr
    assert done.stderr.count("\n") == 1
