"""Forks beside LLVM: none happens while a thread is within it.

llvmlite lets one thread at a time into LLVM, by a lock that a forked process would find held for
ever, and LLVM's own state half changed. So a fork waits for that lock and gives it back on both
sides; llvmlite has no public name for it.
"""

from __future__ import annotations

import os

from llvmlite.binding import ffi

_lock = ffi.lib._lock


def _enter() -> None:
    _lock.__enter__()


def _leave() -> None:
    _lock.__exit__(None, None, None)


def wait_at_forks() -> None:
    """Let every fork of this process wait until no thread is within LLVM; call it once."""
    if hasattr(os, "register_at_fork"):  # which Windows has not
        os.register_at_fork(before=_enter, after_in_parent=_leave, after_in_child=_leave)
