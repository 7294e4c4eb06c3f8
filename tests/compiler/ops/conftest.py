"""Where operators run: this machine at several levels, and emulated boards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.compiler.llvm.jit import run
from tests.compiler.llvm.machine import BoardMachine

from .programs import Place

_HERE = {"native": "native", "avx2": "x86-64-v3", "sse2": "x86-64"}
_BOARDS = {"aarch64": "pi4", "armv7": "pi2"}


@pytest.fixture(
    scope="session",
    params=[*_HERE, *(pytest.param(arch, marks=pytest.mark.qemu) for arch in _BOARDS)],
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A target and a machine that runs its code."""
    name = request.param
    if name in _HERE:
        yield Place(_HERE[name], partial(run, target=_HERE[name]))
        return
    board = request.getfixturevalue(f"board_{name}")
    remote = BoardMachine(board, _BOARDS[name], tmp_path_factory.mktemp(f"operators-{name}"))
    yield Place(_BOARDS[name], remote.run)
    remote.close()
