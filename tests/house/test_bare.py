"""A board with Debian's Python, pyzmq 24 and msgpack 1.0.3 alone serves a whole session."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import farbench as fb
from farbench.boards import Board

VERSIONS = """
import importlib.util, json, sys, zmq, msgpack
extras = ("numpy", "psutil", "click", "llvmlite", "cffi")
print(json.dumps([
    list(sys.version_info[:2]), zmq.__version__, list(msgpack.version),
    [name for name in extras if importlib.util.find_spec(name)],
]))
"""
PRESETS = {"aarch64": "pi4", "armv7": "armv7"}


def run(board: Board, *args: str) -> subprocess.CompletedProcess[str]:
    argv, environment = board.python_command(*args)
    return subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.qemu
def test_the_board_is_bare(board_aarch64: Board) -> None:
    done = run(board_aarch64, "-c", VERSIONS)
    assert done.returncode == 0, done.stderr
    python, _, _, extras = json.loads(done.stdout)
    assert python >= [3, 10]
    assert extras == []


@pytest.mark.qemu
def test_says_its_version(board_aarch64: Board) -> None:
    done = run(board_aarch64, "-m", "farbench_device_runtime", "--version")
    assert done.returncode == 0, done.stderr
    assert "farbench" in done.stdout


@pytest.mark.qemu
@pytest.mark.parametrize("arch", ["aarch64", "armv7"])
def test_serves_a_session(arch: str, shared_fleet: Callable[[str], str], tmp_path: Path) -> None:
    te = fb.te
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: a[i] * 2.0, name="B")
    mod = fb.build(te.create_schedule(b.op), [a, b], target=PRESETS[arch], name="double")
    path = tmp_path / "double.so"
    mod.export_library(str(path))

    host, _, port = shared_fleet(arch).rpartition(":")
    values = np.arange(1000, dtype="float32")
    with (
        fb.connect_tracker(host, int(port)) as tracker,
        tracker.request(f"name={arch}", session_timeout=60) as remote,
    ):
        remote.upload(str(path))
        double = remote.load_module("double.so")
        x = fb.nd.array(values, remote.cpu())
        y = fb.nd.array(np.zeros_like(values), remote.cpu())
        double(x, y)
        np.testing.assert_array_equal(y.numpy(), values * 2)
