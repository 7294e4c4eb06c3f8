"""Device servers owned as child processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.device_runtime.test_server import await_end, watch

if TYPE_CHECKING:
    from tests.conftest import Fleet

OWNER = """
import sys
from pathlib import Path
from farbench.boards import DeviceOptions, ensure_board, start_device

arch, tracker, state = sys.argv[1:]
board = None if arch == "native" else ensure_board(arch, lambda line: None)
with start_device(board, DeviceOptions(tracker, Path(state), "owned")) as device:
    print(device.pid, flush=True)
    sys.stdin.read()
"""


def test_a_killed_owner_takes_its_device_along(
    fleet: Fleet, each_arch: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if each_arch != "native":
        request.getfixturevalue(f"board_{each_arch}")  # or a skip
    command = [sys.executable, "-c", OWNER, each_arch, fleet.address, str(tmp_path / "state")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        device = int(owner.stdout.readline())
        with watch([device]) as fds:
            # Not a signal that it could catch: what it started ends by itself.
            owner.kill()
            await_end(fds, 10.0)
