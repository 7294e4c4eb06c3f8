"""Runs in any Python, a board's too: loads a library by ctypes and does what standard input says.

Each line of input is one JSON list; each answer is one JSON line. Arrays travel as hexadecimal.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from typing import Any

I32, I64, PTR = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
BODY = ctypes.CFUNCTYPE(I32, PTR, PTR, I64, I64)


class Probe:
    """One library and a context made with it."""

    def __init__(self, path: str, threads: int, cores: list[int]) -> None:
        self.library = ctypes.CDLL(path, use_errno=True)
        for name, result, *arguments in (
            ("fb_ctx_create", PTR, I32, PTR, I32),
            ("fb_ctx_destroy", None, PTR),
            ("fb_ctx_error", ctypes.c_char_p, PTR),
            ("fb_ctx_clear", None, PTR),
            ("fb_ctx_bound", I32, PTR),
            ("fb_alloc", PTR, I64, I64),
            ("fb_free", None, PTR),
            ("fb_fill", I32, I32, PTR, I64, ctypes.c_uint64, I32, ctypes.c_double, ctypes.c_double),
            ("fb_flush", I32, PTR, I64),
            ("fb_timer_probe", I32, PTR, PTR),
            ("fb_time_sample", I32, PTR, PTR, PTR, PTR, I64, I64, PTR, PTR),
            ("fb_time_rotate", I32, PTR, PTR, PTR, I64, I64, PTR, I64, PTR, PTR),
            ("fb_sentinel_chain", ctypes.c_uint64, I64, PTR),
            ("fb_sentinel_copy", I32, I64, I64, PTR),
        ):
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        listed = (I32 * max(1, len(cores)))(*cores)
        self.context = self.library.fb_ctx_create(threads, listed, len(cores))
        if not self.context:
            raise OSError(ctypes.get_errno(), "fb_ctx_create failed")
        slots = ctypes.cast(self.context, ctypes.POINTER(PTR))
        self.parallel_for = ctypes.CFUNCTYPE(I32, PTR, BODY, PTR, I64, I64)(slots[1])
        self.take = ctypes.CFUNCTYPE(PTR, PTR, I64)(slots[2])
        self.release = ctypes.CFUNCTYPE(None, PTR, PTR)(slots[3])

    def fill(self, code: int, size: int, count: int, seed: int, kind: int, *limits: float) -> Any:
        """Fill an array; its bytes, or the error."""
        memory = ctypes.create_string_buffer(size * count)
        error = self.library.fb_fill(code, memory, count, seed, kind, *limits)
        return error if error else memory.raw.hex()

    def call(self, name: str, inputs: list[str], count: int, size: int) -> str:
        """Call an elementwise kernel."""
        arrays = [ctypes.create_string_buffer(bytes.fromhex(text)) for text in inputs]
        arrays.append(ctypes.create_string_buffer(size * count))
        buffers = (PTR * len(arrays))(*(ctypes.addressof(a) for a in arrays))
        kernel = getattr(self.library, name)
        kernel.argtypes = [PTR, PTR, PTR]
        kernel(self.context, buffers, (I64 * 1)(count))
        return arrays[-1].raw[: size * count].hex()

    def parallel(self, begin: int, end: int, fail_at: int, nested: bool) -> dict[str, Any]:
        """Run a parallel loop; how often each index was seen, and by how many threads."""
        seen = [0] * max(0, end - begin)
        threads: set[int] = set()
        together = threading.Barrier(2)

        def body(_ctx: int, _closure: int, first: int, last: int) -> int:
            new = threading.get_ident() not in threads
            threads.add(threading.get_ident())
            if new and len(threads) <= 2 and fail_at == -100:
                together.wait(60)
            for index in range(first, last):
                seen[index - begin] += 1
            if nested:
                self.parallel_for(self.context, BODY(lambda *_: 0), None, 0, 10)
            return 7 if first <= fail_at < last else 0

        code = self.parallel_for(self.context, BODY(body), None, begin, end)
        return {"code": code, "seen": sorted(set(seen)), "threads": len(threads)}

    def workspace(self, sizes: list[int]) -> list[list[int]]:
        """Take and give back workspaces one after the other: address modulo 64, address."""
        found = []
        for size in sizes:
            address = self.take(self.context, size)
            found.append([(address or 1) % 64, address or 0])
            if address:
                self.release(self.context, address)
        return found

    def error(self) -> str:
        """The context's error text, which is then cleared."""
        text: bytes = self.library.fb_ctx_error(self.context)
        self.library.fb_ctx_clear(self.context)
        return text.decode()

    def sample(self, calls: int, flush: int) -> list[int]:
        """Time the empty kernel: code, total, start."""
        total, start = I64(), I64()
        kernel = ctypes.cast(self.library.fb_empty_kernel, PTR)
        code = self.library.fb_time_sample(
            kernel, self.context, None, None, calls, flush, ctypes.byref(total), ctypes.byref(start)
        )
        return [code, total.value, start.value]

    def rotate(self, sets: int, calls: int) -> list[int]:
        """Time exp_one over sets of one element each; code, then the bits of each element."""
        values = (ctypes.c_float * sets)()
        buffers = (PTR * max(1, sets))(*(ctypes.addressof(values) + 4 * i for i in range(sets)))
        total, start = I64(), I64()
        kernel = ctypes.cast(self.library.exp_one, PTR)
        code: int = self.library.fb_time_rotate(
            kernel, self.context, buffers, 1, sets, None, calls, ctypes.byref(total),
            ctypes.byref(start),
        )  # fmt: skip
        return [code, *(round(value * 1000) for value in values)]

    def clock(self) -> list[int]:
        """Probe the timer and the sentinels: codes and nanoseconds."""
        first, second, chain, copy = I64(), I64(), I64(), I64()
        code = self.library.fb_timer_probe(ctypes.byref(first), ctypes.byref(second))
        end = self.library.fb_sentinel_chain(1000, ctypes.byref(chain))
        code += self.library.fb_sentinel_copy(1 << 16, 3, ctypes.byref(copy))
        return [code, first.value, second.value, end, chain.value, copy.value]

    def bound(self) -> int:
        """How many threads are bound to a core."""
        count: int = self.library.fb_ctx_bound(self.context)
        return count

    def alloc(self, size: int, alignment: int) -> int:
        """Allocate and free; the address modulo the alignment, or -1."""
        address = self.library.fb_alloc(size, alignment)
        if not address:
            return -1
        self.library.fb_free(address)
        return int(address % alignment)


def main(path: str, threads: str, cores: str = "") -> None:
    """Serve requests until the input ends, then take the context down."""
    probe = Probe(path, int(threads), [int(core) for core in cores.split(",") if core])
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(probe, name)(*arguments)), flush=True)
    probe.library.fb_ctx_destroy(probe.context)
    print(json.dumps("closed"), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
