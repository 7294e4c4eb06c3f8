"""The checked list of LLVM's intrinsics: what each becomes, and what is refused."""

from __future__ import annotations

import pytest

from farbench_compiler import te, tir
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Call


def lanes(of: str, count: int) -> tir.Broadcast:
    made = tir.broadcast(te.const(0, of), count)
    assert isinstance(made, tir.Broadcast)
    return made


@pytest.mark.parametrize(
    ("name", "left", "right", "sums"),
    [
        ("llvm.x86.avx512.vpdpbusd.512", "uint8", "int8", 16),
        ("llvm.x86.avx512.vpdpbusd.128", "uint8", "int8", 4),
        ("llvm.aarch64.neon.sdot.v4i32.v16i8", "int8", "int8", 4),
        ("llvm.aarch64.neon.udot.v4i32.v16i8", "uint8", "uint8", 4),
    ],
)
def test_dot_products(name: str, left: str, right: str, sums: int) -> None:
    total = lanes("int32", sums)
    a, b = lanes(left, 4 * sums), lanes(right, 4 * sums)
    made = tir.call_llvm_pure_intrin(f"int32x{sums}", name, 3, total, a, b)
    assert isinstance(made, Call)
    assert made.name == "dot4"
    with pytest.raises(ScheduleError, match=rf"takes int32x{sums}, {left}x.* got"):
        tir.call_llvm_pure_intrin(f"int32x{sums}", name, 3, total, b, total)


def test_overloaded_names_with_and_without_their_types() -> None:
    x = lanes("float32", 8)
    for name in ("llvm.fma", "llvm.fma.v8f32"):
        made = tir.call_llvm_intrin("float32x8", name, 1, x, x, x)
        assert isinstance(made, Call)
        assert made.name == "fma"


def test_what_is_not_listed_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"llvm.trap is not on the list: llvm.exp, "):
        tir.call_llvm_intrin("int32", "llvm.trap", 0)
    with pytest.raises(ScheduleError, match=r"the arguments must have one dtype"):
        tir.call_llvm_intrin("float32", "llvm.pow", 1, te.const(1.0), te.const(1.0, "float64"))
