"""numpy's matmul (its own OpenBLAS): both operands row-major, the result written in place.

The asker sets OPENBLAS_NUM_THREADS and removes every other OPENBLAS_* variable.
"""

import ctypes
from pathlib import Path

import numpy as np

from _lines import serve, timed

_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def core_name() -> str:
    """Name the kernels that OpenBLAS chose; "unknown" where the library does not tell."""
    folder = Path(np.__file__).resolve().parent.parent / "numpy.libs"
    for path in sorted(folder.glob("*openblas*")):
        library = ctypes.CDLL(str(path))
        for name in _NAMES:
            function = getattr(library, name, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return (function() or b"unknown").decode()
    return "unknown"


Shape = tuple[int, int, int]
_operands: dict[Shape, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}


def matmul(request: dict) -> dict:
    """Time `samples` products of float32 [m, k] by [k, n], `calls` of them a sample."""
    m, n, k = shape = (int(request["m"]), int(request["n"]), int(request["k"]))
    if shape not in _operands:
        source = np.random.default_rng(0)
        a = source.standard_normal((m, k), dtype=np.float32)
        b = source.standard_normal((k, n), dtype=np.float32)
        _operands[shape] = a, b, np.empty((m, n), np.float32)
        np.matmul(a, b, out=_operands[shape][2])
    a, b, c = _operands[shape]
    calls = int(request.get("calls", 1))
    return timed(lambda: np.matmul(a, b, out=c), int(request.get("samples", 5)), calls)


if __name__ == "__main__":
    serve({"peer": "numpy", "version": np.__version__, "core": core_name()}, {"matmul": matmul})
