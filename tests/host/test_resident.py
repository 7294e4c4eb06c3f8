"""The pool of this process: chosen by count and cores, and read back."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import farbench as fb
from farbench import runtime, te
from farbench.errors import UsageError
from farbench_device_runtime.settings import usable_cores

CORES = usable_cores()


def doubled() -> fb.Module:
    a = te.placeholder((64,), name="A")
    c = te.compute((64,), lambda i: a[i] * 2, name="C")
    s = te.create_schedule(c.op)
    s[c].parallel(c.op.axis[0])
    return fb.build(s, [a, c])


def check(module: fb.Module) -> None:
    x, got = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    module(x, got)
    np.testing.assert_array_equal(got, x * 2)


def test_a_count_holds_for_libraries_that_are_loaded_already() -> None:
    module = doubled()
    check(module)
    try:
        for count in (1, 3, 2):
            assert runtime.set_threads(count).count == count
            check(module)
            assert runtime.threads() == runtime.Threads(count, (), 0)
        runtime.config_threadpool(0, 1)
        assert runtime.threads().count == 1
    finally:
        assert runtime.set_threads().count == len(CORES)


def test_cores_bind_the_threads() -> None:
    # In a process of its own: the caller's thread is bound as well.
    code = f"""
import numpy as np
from farbench import runtime
from tests.host.test_resident import check, doubled
runtime.set_threads(cores=[{CORES[-1]}])
check(doubled())
print(runtime.threads())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == f"Threads(count=1, cores=({CORES[-1]},), bound=1)", done.stderr


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(UsageError, match="a pool has at least 1 thread, not 0"):
        runtime.set_threads(0)
    with pytest.raises(UsageError, match="core 4095 is none of this process's"):
        runtime.set_threads(cores=[4095])
    with pytest.raises(UsageError, match=r"no affinity mode 1 here; use set_threads"):
        runtime.config_threadpool(1, 2)


def test_threads_of_a_call_are_its_own() -> None:
    module = doubled()
    before = runtime.threads()
    x, got = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    for threads in (1, 3):
        found = module.time_evaluator("main", number=1, repeat=2, threads=threads)(x, got)
        assert found.facts["threads"] == threads
        got[:] = 0
        module(x, got, threads=threads)
        np.testing.assert_array_equal(got, x * 2)
    assert runtime.threads() == before
    assert module.time_evaluator("main", number=1)(x, got).facts["threads"] == before.count


@pytest.mark.parametrize(
    ("variables", "count"),
    [({"TVM_NUM_THREADS": "3"}, 3), ({"OMP_NUM_THREADS": "1,2"}, 1), ({}, len(CORES))],
)
def test_the_environment_gives_the_usual_size(variables: dict[str, str], count: int) -> None:
    code = """
from farbench import runtime
from tests.host.test_resident import check, doubled
first = runtime.threads().count
check(doubled())
print(first, runtime.threads().count, runtime.set_threads(2).count, runtime.set_threads().count)
"""
    names = ("TVM_NUM_THREADS", "OMP_NUM_THREADS")
    rest = {k: v for k, v in os.environ.items() if k not in names}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**rest, **variables},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == [str(count), str(count), "2", str(count)], done.stderr


def run(code: str) -> str:
    """Run code in a process of its own, which the forks of it end with at the latest."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_forked_process_has_threads_of_its_own() -> None:
    code = """
import gc, os, signal
from farbench import runtime
from tests.host.test_resident import check, doubled
runtime.set_threads(2)
module = doubled()
check(module)
pid = os.fork()
signal.alarm(0 if pid else 30)
check(module)
check(doubled())
gc.collect()
if not pid:
    print(len(os.listdir("/proc/self/task")), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""
    assert run(code).split() == ["2", "0"]


def test_forks_wait_for_builds_of_other_threads() -> None:
    code = """
import os, signal, threading
import farbench as fb
from farbench import te
from tests.host.test_resident import check, doubled
def build():
    a = te.placeholder((64,), name="A")
    c = te.compute((64,), lambda i: te.exp(a[i]), name="C")
    fb.build(te.create_schedule(c.op), [a, c], cache=False)
def keep_building():
    while not done.is_set():
        build()
build()
check(doubled())
done = threading.Event()
builders = [threading.Thread(target=keep_building) for _ in range(2)]
for one in builders:
    one.start()
failed = 0
for _ in range(8):
    build()
    pid = os.fork()
    if not pid:
        signal.alarm(10)
        build()
        check(doubled())
        os._exit(0)
    failed += os.waitpid(pid, 0)[1] != 0
done.set()
print(failed)
"""
    assert run(code) == "0"
