"""The few calls of the C library that Python does not offer, by ctypes.

Each gives True where the kernel accepted it: an emulated board or an old kernel may not.
"""

from __future__ import annotations

import ctypes

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39

AT_HWCAP = 16
AT_HWCAP2 = 26

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int | bytes = 0) -> int:
    call = getattr(_libc, "prctl", None)
    if call is None:
        return -1
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    zero = ctypes.c_ulong(0)
    return int(call(ctypes.c_int(option), argument, zero, zero, zero))


def die_with_parent(signal_number: int) -> bool:
    """Ask for a signal when the thread that forked this process ends."""
    return _prctl(_PR_SET_PDEATHSIG, int(signal_number)) == 0


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends (child subreaper)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def no_new_privileges() -> bool:
    """Give up for ever what setuid programs would add; checked by reading it back."""
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1) == 0 and _prctl(_PR_GET_NO_NEW_PRIVS) == 1


def name_process(name: str) -> bool:
    """Set the name of this process (15 bytes); forks of it carry it too."""
    return _prctl(_PR_SET_NAME, name.encode()[:15]) == 0


def auxiliary(kind: int) -> int:
    """Give a word of the auxiliary vector (AT_HWCAP, ...); 0 where there is none."""
    call = getattr(_libc, "getauxval", None)
    if call is None:
        return 0
    call.restype = ctypes.c_ulong
    call.argtypes = [ctypes.c_ulong]
    return int(call(kind))
