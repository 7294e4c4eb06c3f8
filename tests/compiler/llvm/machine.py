"""A process of an emulated board that runs compiled functions on arrays of this one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from farbench_compiler import passes
from farbench_compiler.build import constant_objects
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.llvm import emit, symbol_of
from farbench_compiler.target import Target
from farbench_compiler.toolchain import link_shared

_SCRIPT = Path(__file__).with_name("board_call.py")


class Seat(Protocol):
    """Where a Python of another machine starts: an emulated board, an emulated CPU."""

    def python_command(self, *args: str) -> tuple[list[str], dict[str, str]]:
        """Return (argv, environment) that run Python with `args` there."""


class BoardMachine:
    """Compiles for a target, sends to the board's process and reads the arrays back."""

    def __init__(self, board: Seat, target: str, folder: Path) -> None:
        self._target = Target.parse(target)
        self._folder = folder
        self._calls = 0
        argv, environment = board.python_command(str(_SCRIPT))
        self._process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, fn: LoopFunction, buffers: Sequence[NDArray[Any]], scalars: Sequence[int] = ()
    ) -> int:
        """Call a lowered function; gives its status."""
        self._calls += 1
        here = self._folder / str(self._calls)
        here.mkdir()
        emitted = emit([passes.run(fn, self._target)], self._target)
        library = here / "kernel.so"
        objects = (emitted.object, *constant_objects([fn], self._target))
        library.write_bytes(link_shared(objects, self._target))
        files = [here / str(i) for i in range(len(buffers))]
        for file, buffer in zip(files, buffers, strict=True):
            file.write_bytes(buffer.tobytes())
        status = self._ask(str(library), symbol_of(fn.name), [str(f) for f in files], [*scalars])
        for file, buffer in zip(files, buffers, strict=True):
            buffer.reshape(-1).view("u1")[...] = bytearray(file.read_bytes())
        return status

    def _ask(self, *request: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the board's process."""
        self._process.communicate(timeout=60)
