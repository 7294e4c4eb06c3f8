"""Objects: what is not for the target is refused by its flag; data objects are sound."""

from __future__ import annotations

import pytest

from farbench_compiler.target import Target
from farbench_compiler.toolchain import LinkError, check_object, data_object, link_shared
from farbench_rpc.manifest import read_elf, symbol_bytes
from tests.compiler.toolchain.kernels import compile_ir

ARCHES = ("x86-64", "aarch64", "armv7", "riscv64")
EMPTY = "define void @nothing() { ret void }"


@pytest.mark.parametrize("preset", ARCHES)
@pytest.mark.parametrize("other", ARCHES)
def test_an_object_of_another_target_names_the_flag(preset: str, other: str) -> None:
    target, foreign = Target.parse(preset), Target.parse(other)
    data = compile_ir(EMPTY, foreign)
    if preset == other:
        check_object(data, target, "object 0")
        return
    with pytest.raises(LinkError) as caught:
        link_shared([data], target)
    message = str(caught.value)
    assert f"object 0 is for {foreign.arch}, the target is {target.arch}" in message
    assert f"-mtriple={target.arch}-linux-gnu" in message


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"MZ\x90\x00" + bytes(100), r"Windows \(PE\).*-mtriple=aarch64-linux-gnu"),
        (b"\xcf\xfa\xed\xfe" + bytes(100), r"macOS \(Mach-O\)"),
        (b"int main() {}", "is no object file"),
        (b"", "is no object file"),
    ],
)
def test_what_is_no_elf_object(data: bytes, said: str) -> None:
    with pytest.raises(LinkError, match=said):
        check_object(data, Target.parse("aarch64"), "object 0")


def test_a_library_is_no_object() -> None:
    target = Target.parse("x86-64")
    linked = link_shared([compile_ir(EMPTY, target)], target)
    with pytest.raises(LinkError, match="is shared, not a relocatable object"):
        check_object(linked, target, "object 0")


def test_riscv_needs_the_double_float_abi() -> None:
    target = Target.parse("riscv64")
    data = bytearray(data_object("x", b"1", target))
    data[48] = 1
    with pytest.raises(LinkError, match="lp64d"):
        check_object(bytes(data), target, "object 0")


@pytest.mark.parametrize("preset", ARCHES)
@pytest.mark.parametrize("size", [0, 1, 7, 4096, 100_001])
def test_data_objects_link_and_keep_their_bytes(preset: str, size: int) -> None:
    target = Target.parse(preset)
    data = bytes(index * 7 % 251 for index in range(size))
    made = data_object("some_data", data, target)
    check_object(made, target, "data")
    linked = link_shared([made], target)
    assert "some_data" in read_elf(linked).exports
    assert symbol_bytes(linked, "some_data") == data
