"""A local session: the same calls as on a device, without a socket."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import farbench as fb
from farbench import errors

pytestmark = pytest.mark.linux


def test_n10_a_local_session_takes_what_a_remote_one_takes(
    library_of: Callable[[str], Path],
) -> None:
    with fb.local() as session:
        session.upload(library_of("native"), "hostile.so")
        module = session.load_module("hostile.so")
        out = np.zeros(4, dtype=np.int32)
        module["add"](np.arange(4, dtype=np.int32), np.ones(4, dtype=np.int32), out)
        assert out.tolist() == [1, 2, 3, 4]
        there = fb.nd.random(33, "float32", session.cpu(), seed=5)
        assert (there.numpy() == fb.nd.random(33, "float32", seed=5).numpy()).all()
        found = module.time_evaluator("nothing", session.cpu(), number=1, repeat=8)()
        assert len(found.results) == 8
        assert session.facts["arch"] == "x86_64"


def test_s2_a_crash_stays_in_the_worker(library_of: Callable[[str], Path]) -> None:
    with fb.local() as session:
        session.upload(library_of("native"), "hostile.so")
        with pytest.raises(errors.KernelCrashed):
            session.load_module("hostile.so")["segfault"]()
        session.load_module("hostile.so")["nothing"]()


def test_s6_local_sessions_leave_nothing_behind() -> None:
    fb.local().close()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with fb.local() as session:
            fb.nd.empty(4, "float32", session.cpu())
        session.close()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) <= files


@pytest.mark.parametrize(
    "given", [{"cores": [4096]}, {"cores": [-1]}, {"memory_limit": -1}, {"memory_limit": 2**70}]
)
def test_cores_and_limits_that_cannot_be_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(errors.UsageError):
        fb.local(**given)  # type: ignore[arg-type]
