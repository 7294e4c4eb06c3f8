"""Libraries of the test kernels, and a process of each user land that has one loaded."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from farbench.boards import Board
from farbench_compiler.target import Target
from tests.compiler.toolchain.kernels import artifact

PROBE = Path(__file__).with_name("probe.py")
TARGETS = {"native": "x86-64", "aarch64": "aarch64", "armv7": "beaglebone"}


class Remote:
    """A process that has the library loaded and answers one request a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

        return ask

    def close(self) -> str:
        """End the input; the last line, which says that the context was taken down."""
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return said.strip()


@pytest.fixture
def start(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Remote]]:
    """Give a function (arch, threads, cores) -> a process with the kernels' library loaded."""
    with contextlib.ExitStack() as stack:

        def launch(arch: str, threads: int = 2, cores: str = "") -> Remote:
            name = "native" if arch == "native" else TARGETS[arch]
            path = tmp_path_factory.getbasetemp() / f"kernels-{arch}.so"
            if not path.exists():
                artifact(Target.parse(name)).export_library(path)
            arguments = [str(PROBE), str(path), str(threads), cores]
            argv, environment = [sys.executable, *arguments], None
            if arch != "native":
                board: Board = request.getfixturevalue(f"board_{arch}")
                argv, environment = board.python_command(*arguments)
            process = subprocess.Popen(
                argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            stack.enter_context(process.stdin or contextlib.nullcontext())
            stack.enter_context(process.stdout or contextlib.nullcontext())
            return Remote(process)

        yield launch
