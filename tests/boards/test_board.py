"""A board runs our packages in its own user land, and single executables run under qemu."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from farbench.boards import Board, BoardUnavailable, ensure_board, find_emulator, run_static

FACTS = """
import json, struct, sys, zmq, msgpack, farbench_rpc, farbench_device_runtime
print(json.dumps([
    8 * struct.calcsize("P"), sys.version_info[:2] >= (3, 10), zmq.__version__,
    list(msgpack.version), "numpy" in sys.modules, farbench_rpc.__file__,
]))
"""

# RISC-V's Linux: write(1, argv[1], 4), then exit(7).
WRITE_AND_EXIT = """
__attribute__((naked, noreturn)) void _start(void) {
  __asm__("ld a1, 16(sp)\\n li a0, 1\\n li a2, 4\\n li a7, 64\\n ecall\\n"
          "li a0, 7\\n li a7, 93\\n ecall");
}
"""


def run_python(board: Board, text: str) -> subprocess.CompletedProcess[str]:
    argv, environment = board.python_command("-c", text)
    return subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.qemu
@pytest.mark.parametrize(("arch", "bits"), [("aarch64", 64), ("armv7", 32)])
def test_board_has_its_own_python(arch: str, bits: int, request: pytest.FixtureRequest) -> None:
    board: Board = request.getfixturevalue(f"board_{arch}")
    done = run_python(board, FACTS)
    assert done.returncode == 0, done.stderr
    word_bits, new_enough, _, _, has_numpy, origin = json.loads(done.stdout)
    assert (word_bits, new_enough, has_numpy) == (bits, True, False)
    assert Path(origin).is_relative_to(board.packages)


@pytest.mark.qemu
def test_board_inherits_nothing(board_aarch64: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    environment = board_aarch64.environment()
    assert "LD_PRELOAD" not in environment
    assert "PYTHONWARNINGS" not in environment


@pytest.mark.qemu
def test_ready_board_is_silent(board_aarch64: Board) -> None:
    told: list[str] = []
    assert ensure_board("aarch64", told.append) == board_aarch64
    assert told == []


def test_unknown_architecture_lists_the_known() -> None:
    with pytest.raises(BoardUnavailable, match="mips.*aarch64, armv7, riscv64"):
        find_emulator("mips")


def test_missing_emulator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(BoardUnavailable, match="apt-get install qemu-user-static"):
        find_emulator("armv7")


def test_other_systems_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(BoardUnavailable, match="needs Linux; this is darwin"):
        find_emulator("aarch64")


@pytest.mark.qemu
def test_runs_a_static_riscv_executable(tmp_path: Path) -> None:
    try:
        find_emulator("riscv64")
    except BoardUnavailable as error:
        pytest.skip(str(error))
    ziglang = pytest.importorskip("ziglang")
    source = tmp_path / "main.c"
    source.write_text(WRITE_AND_EXIT)
    zig = Path(ziglang.__file__).parent / "zig"
    program = tmp_path / "main"
    # Without a C library: zig would build it first, which takes long.
    build = [str(zig), "cc", "-target", "riscv64-linux-musl", "-static", "-nostdlib", "-O2"]
    subprocess.run(
        [*build, str(source), "-o", str(program)], check=True, capture_output=True, timeout=100
    )
    done = run_static("riscv64", program, ["word"], timeout_s=20)
    assert (done.returncode, done.stdout) == (7, b"word")
