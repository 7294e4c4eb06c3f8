"""T3: memory, descriptors and files stay flat over builds that are loaded, called and dropped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.linux

# Each build differs; every other one goes through the cache, whose folder holds 1 MiB here.
CODE = """
import gc, json, os, sys
from pathlib import Path
import numpy as np
import farbench as fb
from farbench import te
from farbench_compiler import build_cache

folder, count = Path(sys.argv[1]), int(sys.argv[2])
build_cache.folder = lambda: folder / "builds"
build_cache.ON_DISK_BYTES = 1 << 20
build_cache.IN_MEMORY = 16

def build(n):
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: te.exp(a[i]) + 1, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], 16)
    s[c].parallel(outer)
    s[c].vectorize(inner)
    out = np.zeros(n, np.float32)
    fb.build(s, [a, c], cache=n % 2 == 0)(np.zeros(n, np.float32), out)
    assert (out == 2).all()

def state():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    descriptors = len(os.listdir("/proc/self/fd"))
    mappings = len(Path("/proc/self/maps").read_text().splitlines())
    return {"kib": pages * os.sysconf("SC_PAGE_SIZE") // 1024, "descriptors": descriptors,
            "mappings": mappings}

# More than the cache holds in memory, so that it is full before the first look.
warm = 3 * build_cache.IN_MEMORY
for n in range(64, 64 + warm):
    build(n)
before = state()
for n in range(64 + warm, 64 + warm + count):
    build(n)
disk = sum(p.stat().st_size for p in (folder / "builds").rglob("*") if p.is_file())
print(json.dumps({"before": before, "after": state(), "disk": disk,
                  "temporary": sorted(os.listdir(os.environ["TMPDIR"]))}))
"""


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(200, marks=pytest.mark.deadline(120)),
        pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.deadline(3600)]),
    ],
)
def test_t3_nothing_grows_with_the_number_of_builds(count: int, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    cached = {k: v for k, v in os.environ.items() if k != "FARBENCH_BUILD_CACHE"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path), str(count)],
        env={**cached, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    before, after = found["before"], found["after"]
    # llvmlite leaks the 1.5 KiB of callbacks of each pass builder; the rest is the heap's breath.
    assert after["kib"] - before["kib"] < 2048 + 3 * count
    assert after["descriptors"] == before["descriptors"]
    assert abs(after["mappings"] - before["mappings"]) <= 8
    assert found["temporary"] == []
    # The folder is swept once in 64 entries.
    assert found["disk"] < (1 << 20) + 65 * (32 << 10)
