"""Rows C1 to C4: what is built fits its target, needs nothing but what pip brings, and says so."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import ziglang

import farbench as fb
import farbench_device_runtime
import farbench_rpc
from farbench import errors, te
from farbench_compiler.artifact import Artifact
from farbench_compiler.build import build
from farbench_compiler.errors import LinkError, TargetError
from farbench_compiler.target import Target
from farbench_compiler.toolchain import link_shared
from farbench_rpc.manifest import read_elf
from tests.behaviours.conftest import Run
from tests.behaviours.yard import TARGETS, Place, board_of

pytestmark = pytest.mark.linux

ROOT = Path(__file__).resolve().parents[2]
MACHINES = {"native": "x86_64", "aarch64": "aarch64", "armv7": "armv7"}
PROGRAM = """
from farbench import te

def double():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda i: a[i] * 2.0, name="B")
    return te.create_schedule(b.op), [a, b]
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return f"{path}:double"


def doubled(target: str) -> Artifact:
    a = te.placeholder((16,), name="A")
    b = te.compute(a.shape, lambda i: a[i] * 2.0, name="B")
    return build(te.create_schedule(b.op), [a, b], target=target, name="double")


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("target", ["x86-64-v2", "aarch64", "armv7", "riscv64"])
def test_c1_the_format_follows_the_target(tmp_path: Path, target: str) -> None:
    path = tmp_path / "double.so"
    doubled(target).export_library(path)
    facts, wanted = read_elf(path), Target.parse(target)
    assert (facts.arch, facts.type) == (wanted.arch, "shared")
    assert facts.class_bits == wanted.pointer_bits


@pytest.mark.parametrize("other", ["aarch64", "armv7", "riscv64"])
def test_c1_a_foreign_object_names_the_flag(other: str) -> None:
    foreign = doubled(other).objects
    target = Target.parse("x86-64-v2")
    with pytest.raises(LinkError, match="-mtriple=x86_64") as caught:
        link_shared(foreign, target)
    assert other in str(caught.value)
    assert "\n" not in str(caught.value)


FORMATS = {
    "COFF": b"MZ" + bytes(200),
    "Mach-O": b"\xcf\xfa\xed\xfe" + bytes(200),
    "text": b"int main(void) { return 0; }\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", FORMATS)
def test_c1_another_format_names_the_flag(name: str) -> None:
    with pytest.raises(LinkError, match="-mtriple="):
        link_shared([FORMATS[name]], Target.parse("aarch64"))


def test_c1_another_systems_triple_is_refused_by_name() -> None:
    with pytest.raises(TargetError, match="windows"):
        Target.parse("llvm -mtriple=x86_64-pc-windows-msvc")


def test_c1_a_foreign_library_is_refused_by_the_device(place: Place, tmp_path: Path) -> None:
    other = "native" if place.arch != "native" else "aarch64"
    path = tmp_path / "foreign.so"
    doubled(TARGETS[other]).export_library(path)
    with place.request() as session:
        session.upload(path)
        with pytest.raises(errors.LoadRefused, match=MACHINES[other]) as caught:
            session.load_module("foreign.so")
        assert "\n" not in str(caught.value)
        session.load_module("hostile.so")["nothing"]()


# ---------------------------------------------------------------- what is needed

HIDING = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from farbench.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def without(packages: str, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line where some packages are not installed, with a PATH of its own."""
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        [sys.executable, "-c", HIDING, packages, *words],
        capture_output=True, text=True, timeout=100, check=False, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("package", "named"),
    [("llvmlite", "llvmlite"), ("ziglang", "zig"), ("numpy", "numpy"), ("click", "click")],
)
def test_c2_a_missing_package_is_named_with_its_extra(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, named: str
) -> None:
    # A cache of its own, so that nothing is taken from one that was made with the package there.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = tmp_path / "double.so"
    done = without(package, "build", program, "--target", "aarch64", "-o", str(output))
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert told.startswith("farbench: ")
    assert named in told
    assert "pip install 'farbench[host]'" in told
    assert "Traceback" not in done.stderr
    assert not output.exists()


def test_c2_nothing_but_pip_is_needed_to_build(program: str, tmp_path: Path) -> None:
    nothing = tmp_path / "bin"
    nothing.mkdir()
    for target in ("native", "aarch64", "armv7", "riscv64"):
        output = tmp_path / f"{target}.so"
        done = without("cffi", "build", program, "--target", target, "-o", str(output),
                       path=str(nothing))  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert output.stat().st_size > 0


def test_c2_a_compiler_that_is_gone_is_named(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package, but without its program, as a cleaned or half-installed environment has it.
    package = tmp_path / "site" / "ziglang"
    package.mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        source = Path(str(ziglang.__file__)).parent / name
        if source.exists():
            shutil.copy(source, package / name)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = tmp_path / "double.so"
    done = without("cffi", "build", program, "--target", "aarch64", "-o", str(output))
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert told.startswith("farbench: ")
    assert "zig" in told
    assert "pip install" in told
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- names that are unknown

NEAR: Sequence[tuple[str, str]] = [
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72x", "cortex-a72"),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+doprod", "dotprod"),
    ("llvm -mtriple=arm-linux-gnueabihf -mcpu=cortex-a77x", "cortex-a7"),
    ("llvm -mtriple=x86_64-linux-gnu -mcpu=znvr4", "znver4"),
    ("llvm -mtriple=x86_64-linux-gnu -mattr=+avx512ff", "avx512f"),
    ("llvm -mtriple=riscv64-linux-gnu -mcpu=sifive-u47", "sifive-u74"),
    ("llvm -mtriple=aarch46-linux-gnu", "aarch64"),
    ("llvm -mtriple=aarch64-linux-gnuu", "gnu"),
    ("llvm -mcpuu=cortex-a72", "-mcpu"),
    ("pi44", "pi4"),
]


@pytest.mark.parametrize(("text", "near"), NEAR)
def test_c3_what_is_unknown_lists_near_matches(
    program: str, tmp_path: Path, farbench: Run, text: str, near: str
) -> None:
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    said = str(caught.value)
    assert re.search(rf"{re.escape(near)}\b", said.replace(text, "")), said
    output = tmp_path / "double.so"
    told = farbench("build", program, "--target", text, "-o", output)
    assert told.status == 2
    assert near in told.err
    assert told.err.count("\n") == 1
    assert not output.exists()


# ---------------------------------------------------------------- on the board


def test_c4_a_device_is_pure_python() -> None:
    allowed = {"zmq", "msgpack", "psutil", "tomllib", "farbench_rpc", "farbench_device_runtime"}
    for package in (farbench_rpc, farbench_device_runtime):
        folder = Path(str(package.__file__)).parent
        files = [path for path in folder.rglob("*") if path.is_file()]
        kinds = {path.suffix for path in files if "__pycache__" not in path.parts}
        assert kinds <= {".py", ".typed", ""}, kinds
        for path in files:
            if path.suffix == ".py":
                names = imported(path)
                assert names <= allowed | sys.stdlib_module_names, (path, names)


def imported(path: Path) -> set[str]:
    """List the packages that a file imports, at any place in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_c4_there_is_nothing_to_build_on_a_board(place: Place, tmp_path: Path) -> None:
    board = board_of(place.arch)
    if board is not None:
        # Debian's own tree, unpacked: no compiler, no linker, no header of Python.
        programs = {path.name for path in (board.root / "usr/bin").iterdir()}
        assert not programs & {"cc", "gcc", "clang", "ld", "as", "make", "cmake", "pip"}
        assert not (board.root / "usr/include/python3.11").exists()
    path = tmp_path / "double.so"
    doubled(TARGETS[place.arch]).export_library(path)
    # What the library wants of the board is its C library alone.
    wanted = read_elf(path).needed
    assert all(re.fullmatch(r"(libc|libm|libpthread|ld-linux.*)\.so\.\d+", one) for one in wanted)
    with place.request() as session:
        session.upload(path)
        module = session.load_module("double.so")
        values, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
        module(values, out)
        assert (out == values * 2).all()
        timing = module.time_evaluator("double", session.cpu(), number=1, repeat=3)(values, out)
        assert len(timing.samples) == 3
        fb.nd.random(10, "float16", session.cpu(), seed=1).numpy()
