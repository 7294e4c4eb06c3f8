"""Objects linked in memory: they run, find what they lack, are freed, and refusals are one line."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from farbench_compiler.errors import LinkError
from farbench_compiler.llvm.jit import link_in_memory
from farbench_compiler.llvm.machine import Part, compile_parts
from farbench_compiler.target import Target
from farbench_compiler.toolchain import data_object

pytestmark = pytest.mark.linux

NATIVE = Target.parse("native")


def compiled(text: str) -> bytes:
    return compile_parts([Part(f'target triple = "{NATIVE.triple}"\n{text}')], NATIVE).object


def answer(name: str, value: int) -> bytes:
    return compiled(f"define i32 @{name}() {{ ret i32 {value} }}")


def run(address: int | None) -> int:
    assert address is not None
    return int(ctypes.CFUNCTYPE(ctypes.c_int32)(address)())


def test_code_runs_and_other_symbols_are_none() -> None:
    code = link_in_memory([answer("first", 7), answer("second", 8)], ["first", "second"], NATIVE)
    assert (run(code.address("first")), run(code.address("second"))) == (7, 8)
    assert code.address("third") is None


def test_objects_find_each_other_and_the_c_library() -> None:
    reader = compiled(
        "@held = external hidden constant i32\ndeclare i32 @abs(i32)\n"
        "define i32 @get() { %v = load i32, ptr @held %r = call i32 @abs(i32 %v) ret i32 %r }"
    )
    held = data_object("held", (-5).to_bytes(4, "little", signed=True), NATIVE, hidden=True)
    code = link_in_memory([reader, held], ["get"], NATIVE)
    assert run(code.address("get")) == 5


def test_equal_names_of_two_libraries_are_apart() -> None:
    first, second = (link_in_memory([answer("same", n)], ["same"], NATIVE) for n in (1, 2))
    assert (run(first.address("same")), run(second.address("same"))) == (1, 2)
    del first
    assert run(second.address("same")) == 2


@pytest.mark.parametrize("missing", ["nobody", "farbench_is_nowhere"])
def test_what_is_not_there_is_named(missing: str) -> None:
    caller = compiled(
        f"declare i32 @{missing}()\ndefine i32 @f() {{ %r = call i32 @{missing}() ret i32 %r }}"
    )
    with pytest.raises(LinkError, match="cannot link the objects in memory"):
        link_in_memory([caller], ["f"], NATIVE)
    with pytest.raises(LinkError, match="cannot link the objects in memory"):
        link_in_memory([b"no object"], ["f"], NATIVE)


def test_what_nothing_refers_to_is_freed() -> None:
    # Data of a size that no accident gives to the process.
    big = data_object("big", bytes(32 << 20), NATIVE)

    def mapped_kib() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * 4

    code = link_in_memory([big], ["big"], NATIVE)
    before = mapped_kib()
    del code
    assert before - mapped_kib() > 30 << 10
