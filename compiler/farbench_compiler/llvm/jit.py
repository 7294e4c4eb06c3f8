"""Objects linked in the memory of this process, without a linker or a file.

Takes half a millisecond where a linker takes ten. Whatever it cannot resolve or reach is a
LinkError, and the way by a shared library remains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from farbench_compiler.errors import LinkError
from farbench_compiler.llvm.machine import Machine, machine_of


class LinkedCode:
    """Code and data in executable memory; their addresses hold as long as this object lives."""

    def __init__(
        self, engine: llvm.LLJIT, tracker: llvm.ResourceTracker, addresses: Mapping[str, int]
    ) -> None:
        self._addresses = addresses
        # In the order of their end: the tracker frees the code, then the engine the rest.
        self._tracker = tracker
        self._engine = engine

    def address(self, symbol: str) -> int | None:
        """Give the address of one of the symbols that were asked for, None for any other."""
        return self._addresses.get(symbol)


def link_in_memory(objects: Sequence[bytes], symbols: Sequence[str], target: Machine) -> LinkedCode:
    """Link relocatable objects of this machine and find symbols in them; LinkError where it fails.

    What they lack is searched in this process, its C library among others. An object is linked
    only if another needs it.
    """
    # An engine of its own, since one that is shared never frees the names of its libraries.
    # JITLink checks that what is addressed relatively is near, the older linker does not.
    engine = llvm.create_lljit_compiler(machine_of(target), use_jit_link=True, suppress_errors=True)
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    builder.add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        tracker = builder.link(engine, "library")
    except RuntimeError as cause:
        first = (str(cause).strip().splitlines() or ["no reason given"])[0]
        raise LinkError(f"LLVM cannot link the objects in memory: {first}") from cause
    return LinkedCode(engine, tracker, {symbol: tracker[symbol] for symbol in symbols})
