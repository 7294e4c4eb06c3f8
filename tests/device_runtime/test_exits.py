"""Every way a worker can end, as the error that its client gets."""

from __future__ import annotations

import signal

import pytest

from farbench_device_runtime.exits import Exit, Intent, classify, signal_name
from farbench_rpc.errors import (
    Cancelled,
    KernelAborted,
    KernelCrashed,
    KernelError,
    KernelExited,
    KernelTimeout,
    OutOfMemory,
    RpcError,
)

LIMIT = 100 << 20


def died(number: int, **known: object) -> Exit:
    return Exit(1, int(number), memory_limit=LIMIT, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (Exit(1, 3 << 8), KernelExited),
        (died(signal.SIGSEGV), KernelCrashed),
        (died(signal.SIGFPE), KernelCrashed),
        (died(signal.SIGABRT), KernelAborted),
        (died(signal.SIGXCPU), KernelTimeout),
        (died(signal.SIGKILL), OutOfMemory),
        (died(signal.SIGKILL, cause="oom"), OutOfMemory),
        (died(signal.SIGKILL, cause="ended"), KernelCrashed),
        (died(signal.SIGSEGV, peak_resident=90 << 20), OutOfMemory),
        (died(signal.SIGABRT, peak_resident=99 << 20), OutOfMemory),
        (died(signal.SIGSEGV, peak_address=90, address_limit=100), OutOfMemory),
        (died(signal.SIGSEGV, peak_resident=50 << 20), KernelCrashed),
        (died(signal.SIGILL, peak_resident=99 << 20), KernelCrashed),
    ],
)
def test_each_end_has_its_class(ended: Exit, error: type[RpcError]) -> None:
    made = classify(ended, "call of f")
    assert type(made) is error
    assert made.detail["last_call"] == "call of f"
    assert "\n" not in made.message


def test_what_the_server_did_is_no_fault_of_the_kernel() -> None:
    made = classify(died(signal.SIGKILL), "call of f", Intent("timeout", 2.0, 2.01, "run"))
    assert type(made) is KernelTimeout
    assert made.detail["limit_s"] == 2.0
    assert made.detail["elapsed_s"] == 2.01
    assert made.detail["phase"] == "run"
    assert type(classify(died(9), "", Intent("cancelled"))) is Cancelled
    assert type(classify(died(9), "", Intent("damaged"))) is KernelError


def test_between_calls_is_said() -> None:
    assert "between calls" in classify(died(signal.SIGSEGV), "").message


def test_signals_without_a_name_have_a_number() -> None:
    assert signal_name(11) == "SIGSEGV"
    assert signal_name(250) == "SIG250"
