"""Copy and triad in C, compiled with all optimisation: what this machine's memory gives a thread.

Started with the path of the compiler; arrays of `nbytes` are touched before they are timed.
"""

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from _lines import serve, timed

SOURCE = Path(__file__).with_name("stream.c")
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_int64


def compiled(zig: str) -> ctypes.CDLL:
    """Compile the loops for this CPU and load them."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "stream.so"
        flags = ["-O3", "-march=native", "-shared", "-fPIC", "-nostdlib", "-lc"]
        command = [zig, "cc", *flags, "-fno-sanitize=undefined", str(SOURCE), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True)
        return ctypes.CDLL(str(library))


class Stream:
    """Three arrays and the loops over them."""

    def __init__(self, zig: str) -> None:
        self._library = compiled(zig)
        self._arrays: list[np.ndarray] = []

    def run(self, request: dict) -> dict:
        """Time `samples` passes of {loop, nbytes}; also gives the bytes that one pass moves."""
        count = int(request["nbytes"]) // 4
        if not self._arrays or self._arrays[0].size != count:
            self._arrays = [np.full(count, value, np.float32) for value in (1, 2, 3)]
        a, b, c = (ctypes.c_void_p(array.ctypes.data) for array in self._arrays)
        if request["loop"] == "copy":
            moved, call = 2, lambda: self._library.stream_copy(c, a, _SIZE(count))
        else:
            scale = ctypes.c_float(0.5)
            moved, call = 3, lambda: self._library.stream_triad(c, a, b, scale, _SIZE(count))
        return {**timed(call, int(request.get("samples", 3))), "bytes": moved * count * 4}


if __name__ == "__main__":
    serve({"peer": "stream"}, {"run": Stream(sys.argv[1]).run})
