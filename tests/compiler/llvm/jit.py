"""Run emitted objects in this process, under a small stand-in for the runtime."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from farbench_compiler import passes
from farbench_compiler.build import constant_objects
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.llvm import Emitted, emit, symbol_of
from farbench_compiler.target import Target
from farbench_compiler.toolchain import link_shared

Array = NDArray[Any]
_BODY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_PARALLEL = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, _BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_TAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_GIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class _Context(ctypes.Structure):
    _fields_ = (
        ("abi", ctypes.c_size_t),
        ("parallel_for", _PARALLEL),
        ("workspace", _TAKE),
        ("workspace_release", _GIVE),
    )


MARGIN = 1024  # bytes around each block, which nobody may write
_FILL = 0xCD


@dataclass
class Runtime:
    """Splits parallel loops in two halves; hands out `allowance` blocks of workspace at most.

    `damaged` counts the blocks beyond whose ends something was written.
    """

    allowance: int = 1 << 30
    damaged: int = 0
    held: dict[int, Array] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def parallel_for(self, ctx: int, body: Callable[..., int], closure: int, begin: int,
                     end: int) -> int:  # fmt: skip
        middle = (begin + end) // 2
        for span in ((begin, middle), (middle, end)):
            self.spans.append(span)
            status = body(ctx, closure, *span)
            if status:
                return status
        return 0

    def workspace(self, _ctx: int, nbytes: int) -> int:
        if len(self.held) >= self.allowance:
            return 0
        block, start = fenced(nbytes)
        address = int(block.ctypes.data) + start
        self.held[address] = block
        return address

    def release(self, _ctx: int, address: int) -> None:
        block = self.held.pop(address)
        start = address - block.ctypes.data
        rest = block[start:]
        # The block's own size is not told here: what lies behind the last margin's begin is.
        self.damaged += bool((block[:start] != _FILL).any() or (rest[-MARGIN:] != _FILL).any())


def fenced(nbytes: int) -> tuple[Array, int]:
    """Give memory with room before and behind an aligned block, and where the block begins."""
    block = np.full(nbytes + 2 * MARGIN + 64, _FILL, np.uint8)
    return block, MARGIN + -(block.ctypes.data + MARGIN) % 64


def aligned(array: Array) -> Array:
    """Copy an array to memory aligned as arguments must be."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    view = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


@contextmanager
def loaded(emitted: Emitted, name: str, constants: Sequence[bytes] = ()) -> Iterator[int]:
    """Give the address of a function while its library is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.so")
        path.write_bytes(link_shared((emitted.object, *constants), emitted.target))
        library = ctypes.CDLL(str(path))
        address = ctypes.cast(library[symbol_of(name)], ctypes.c_void_p).value
        assert address is not None
        yield address


class Run(Protocol):
    """Compile a lowered function and call it on aligned arrays; gives its status."""

    def __call__(
        self, fn: LoopFunction, buffers: Sequence[Array], scalars: Sequence[int] = ()
    ) -> int:
        """Run it."""


@dataclass(frozen=True)
class Machine:
    """Where functions run; `subnormals` tells that float32 vectors keep subnormal numbers."""

    run: Run
    subnormals: bool = True


def run(
    fn: LoopFunction,
    buffers: Sequence[Array],
    scalars: Sequence[int] = (),
    target: str = "native",
    runtime: Runtime | None = None,
) -> int:
    """Compile a lowered function and call it on arrays, which must be aligned."""
    chosen = Target.parse(target)
    emitted = emit([passes.run(fn, chosen)], chosen)
    constants = constant_objects([fn], chosen)
    return call(emitted, fn.name, buffers, scalars, runtime, constants)


def call(
    emitted: Emitted,
    name: str,
    buffers: Sequence[Array],
    scalars: Sequence[int] = (),
    runtime: Runtime | None = None,
    constants: Sequence[bytes] = (),
) -> int:
    """Call a function of an emitted object; gives its status."""
    runtime = runtime or Runtime()
    context = _Context(
        1, _PARALLEL(runtime.parallel_for), _TAKE(runtime.workspace), _GIVE(runtime.release)
    )
    addresses = (ctypes.c_void_p * max(1, len(buffers)))(*(b.ctypes.data for b in buffers))
    slots = (ctypes.c_int64 * max(1, len(scalars)))(*scalars)
    with loaded(emitted, name, constants) as address:
        kernel = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(address)
        status = int(kernel(ctypes.addressof(context), addresses, slots))
        assert not runtime.damaged, "workspace was written beyond its end"
        return status
