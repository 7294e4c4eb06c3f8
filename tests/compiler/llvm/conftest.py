"""Machines to run compiled functions on: this one at several levels, and emulated boards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from .jit import Machine, run
from .machine import BoardMachine

_HERE = {
    "native": "native",
    "avx2": "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3",
    "sse2": "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64",
}
_BOARDS = {"aarch64": "pi3", "armv7": "beaglebone"}


@pytest.fixture(
    scope="session",
    params=[*_HERE, *(pytest.param(arch, marks=pytest.mark.qemu) for arch in _BOARDS)],
)
def machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """Where compiled loop functions run."""
    name = request.param
    if name in _HERE:
        yield Machine(partial(run, target=_HERE[name]))
        return
    board = request.getfixturevalue(f"board_{name}")
    remote = BoardMachine(board, _BOARDS[name], tmp_path_factory.mktemp(f"calls-{name}"))
    yield Machine(remote.run, subnormals=name != "armv7")
    remote.close()
