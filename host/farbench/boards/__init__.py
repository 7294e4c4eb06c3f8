"""Emulated boards: another architecture's user land on this machine, and device servers on it.

Adds to qemu's user mode a root file system with the distribution's Python, pyzmq and msgpack.
"""

from farbench.boards.board import Board, ensure_board
from farbench.boards.emulator import find_emulator, run_static
from farbench.boards.errors import BoardUnavailable, DeviceStartError
from farbench.boards.process import DeviceOptions, DeviceProcess, start_device

__all__ = [
    "Board",
    "BoardUnavailable",
    "DeviceOptions",
    "DeviceProcess",
    "DeviceStartError",
    "ensure_board",
    "find_emulator",
    "run_static",
    "start_device",
]
