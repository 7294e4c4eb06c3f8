"""The tables of CPUs and features: LLVM knows every name, and they are what the script makes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from farbench_compiler.target import ARCHES
from farbench_compiler.target.make_table import FILES, TABLES, make_table
from farbench_compiler.target.table import BASELINES, near, table

TRY_ALL = """
import sys
from llvmlite import binding
from farbench_compiler.target import Target
from farbench_compiler.target.table import table
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
arch = sys.argv[1]
suffix = "eabihf" if arch == "armv7" else ""
for cpu in table(arch).cpus:
    target = Target.parse(f"llvm -mtriple={arch}-linux-gnu{suffix} -mcpu={cpu}")
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=cpu, features=target.llvm_features, abiname=target.llvm_abi
    )
    text = f'target triple = "{target.triple}"\\ndefine float @f(float %x) {{ ret float %x }}'
    assert machine.emit_object(binding.parse_assembly(text))
print("all")
"""


@pytest.mark.parametrize("arch", ARCHES)
def test_llvm_knows_every_cpu_and_feature(arch: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRY_ALL, arch], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "all\n", done.stderr[-2000:]
    assert done.stderr == ""


@pytest.mark.parametrize("arch", ARCHES)
def test_tables_are_closed(arch: str) -> None:
    known = table(arch)
    assert BASELINES[arch] in known.cpus
    for has in known.features.values():
        assert set(has) <= set(known.features)
    for cpu, has in known.cpus.items():
        assert set(has) <= set(known.features), cpu


@pytest.mark.parametrize("arch", ARCHES)
def test_tables_are_those_of_the_installed_toolchain(arch: str) -> None:
    ziglang = pytest.importorskip("ziglang")
    folder = Path(str(ziglang.__file__)).parent / "lib" / "std" / "Target"
    made = make_table((folder / f"{FILES[arch]}.zig").read_text(encoding="utf-8"), arch)
    kept = json.loads((TABLES / f"{arch}.json").read_text(encoding="utf-8"))
    assert made == kept


def test_dependants_go_with_what_they_need() -> None:
    known = table("x86_64")
    assert {"avx2", "avx512f", "fma"} <= known.dependants("avx")
    assert "sse2" not in known.dependants("avx")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sse4_2", "sse4.2"), ("AVX2", "avx2"), ("avx512", "avx512"), ("zzz", "known: ")],
)
def test_near_matches(name: str, hint: str) -> None:
    assert hint in near(name, table("x86_64").features)
