"""Runs in a board's Python: calls functions of libraries on arrays that lie in files.

Each line of input is one JSON list [library, symbol, files, scalars]; the answer is the status.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

PTR = ctypes.c_void_p


def aligned(data: bytes) -> tuple[int, ctypes.Array[ctypes.c_char]]:
    """Copy bytes to memory that is aligned as arguments must be; give the address and its owner."""
    memory = ctypes.create_string_buffer(len(data) + 64)
    address = (ctypes.addressof(memory) + 63) // 64 * 64
    ctypes.memmove(address, data, len(data))
    return address, memory


def call(library: str, symbol: str, files: list[str], scalars: list[int]) -> int:
    """Call a function; the files then hold what it left in the arrays."""
    loaded = ctypes.CDLL(library)
    loaded.fb_ctx_create.restype = PTR
    loaded.fb_ctx_create.argtypes = [ctypes.c_int32, PTR, ctypes.c_int32]
    loaded.fb_ctx_destroy.argtypes = [PTR]
    context = loaded.fb_ctx_create(2, None, 0)
    held = [aligned(Path(file).read_bytes()) for file in files]
    buffers = (PTR * max(1, len(held)))(*(address for address, _ in held))
    kernel = getattr(loaded, symbol)
    kernel.argtypes = [PTR, PTR, PTR]
    status: int = kernel(context, buffers, (ctypes.c_int64 * max(1, len(scalars)))(*scalars))
    for (address, memory), file in zip(held, files, strict=True):
        Path(file).write_bytes(ctypes.string_at(address, len(memory) - 64))
    loaded.fb_ctx_destroy(context)
    return status


for line in sys.stdin:
    print(call(*json.loads(line)), flush=True)
