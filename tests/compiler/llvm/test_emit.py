"""What stands in the LLVM IR and the assembly: flags of floats, reductions, register tiles."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from farbench_compiler import passes, te
from farbench_compiler.errors import LoweringError
from farbench_compiler.ir.expr import IntImm, Var
from farbench_compiler.ir.stmt import LoopFunction, Seq
from farbench_compiler.llvm import Emitted, emit
from farbench_compiler.llvm.machine import Part, compile_parts
from farbench_compiler.lower import lower
from farbench_compiler.target import Target
from tests.compiler.passes.programs import array, function, loop, read, write

AT, K = Var("i"), Var("k")


def emitted(fn: LoopFunction, target: str = "x86-64-v3") -> Emitted:
    chosen = Target.parse(target)
    return emit([passes.run(fn, chosen)], chosen)


def total() -> LoopFunction:
    """A sum whose loop the schedule vectorised."""
    a, c, first = array("A", 1024), array("C", 1), IntImm(0)
    update = write(c, first, value=read(c, first) + read(a, K))
    return function(loop(K, 1024, update, "vectorized"), a, c)


def test_arithmetic_is_contracted_and_no_more() -> None:
    a, c = array("A", 64), array("C", 64)
    product = write(c, AT, value=read(a, AT) * read(a, AT) + 1.0)
    text = emitted(function(loop(AT, 64, product), a, c)).llvm_ir
    flags = set(re.findall(r" f(?:add|mul) (.*?)(?:<|float)", text))
    assert flags == {"contract "}


def test_a_sum_in_order_stays_in_order() -> None:
    a, c, first = array("A", 1024), array("C", 1), IntImm(0)
    update = write(c, first, value=read(c, first) + read(a, K))
    text = emitted(function(loop(K, 1024, update), a, c)).llvm_ir
    assert "reassoc" not in text
    assert "llvm.vector.reduce.fadd" not in text


def test_a_vectorised_sum_may_be_reordered() -> None:
    text = emitted(total()).llvm_ir
    assert re.search(r"fadd reassoc contract <8 x float>", text)


def test_fast_math_frees_the_rest() -> None:
    text = emitted(total(), "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -fast-math").llvm_ir
    assert re.search(r"fadd fast <8 x float>", text)


def tile(rows: int, columns: int, lanes: int) -> LoopFunction:
    """A matrix product over packed panels, `rows` x `columns` of it kept in registers."""
    m, n, k = rows * 4, columns * 4, 128
    left = te.placeholder((4, k, rows), name="A")
    right = te.placeholder((4, k, columns), name="B")
    depth = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            left[i // rows, depth, i % rows] * right[j // columns, depth, j % columns], axis=depth
        ),
        name="C",
    )
    sch = te.create_schedule(c.op)
    sums = sch.cache_write(c, "local")
    _, j_out, _, j_in = sch[c].tile(c.op.axis[0], c.op.axis[1], rows, columns)
    sch[c].vectorize(j_in)
    sch[sums].compute_at(sch[c], j_out)
    i, j = sch[sums].op.axis
    (step,) = sch[sums].op.reduce_axis
    strips, lane = sch[sums].split(j, factor=lanes)
    sch[sums].reorder(step, i, strips, lane)
    sch[sums].unroll(i)
    sch[sums].unroll(strips)
    sch[sums].vectorize(lane)
    return lower(sch, [left, right, c], "tile")


TILES = {
    # target: rows, columns, lanes, name of a multiply-add, name of the stack's pointer
    "x86-64-v3": (6, 16, 8, r"vfmadd\d+ps", r"%rsp"),
    "x86-64-v4": (12, 32, 16, r"vfmadd\d+ps", r"%rsp"),
    "pi4": (8, 12, 4, r"fmla", r"\bsp\b"),
    "graviton3": (8, 12, 4, r"fmla", r"\bsp\b"),
    "pi2": (6, 8, 4, r"vfma\.f32", r"\bsp\b"),
    "pi4-32": (6, 8, 4, r"vfma\.f32", r"\bsp\b"),
    "visionfive2": (4, 4, 4, r"fmadd\.s", r"\bsp\b"),
}


@pytest.mark.parametrize("target", TILES)
def test_register_tiles_stay_in_registers(target: str) -> None:
    rows, columns, lanes, multiply_add, stack = TILES[target]
    text = emitted(tile(rows, columns, lanes), target).assembly
    blocks = re.split(r"\n(?=\.?L[A-Z0-9_]+:)", text)
    inner = max(blocks, key=lambda block: len(re.findall(multiply_add, block)))
    lines = inner.splitlines()
    found = [at for at, line in enumerate(lines) if re.search(multiply_add, line)]
    vectors = 1 if target == "visionfive2" else lanes
    tile_size = rows * columns // vectors
    assert len(found) % tile_size == 0
    # Between the multiply-adds there is nothing but loads: no spill, no scalar tail.
    assert not [line for line in lines[found[0] : found[-1]] if re.search(stack, line)]


def test_what_llvm_refuses_is_an_error_of_ours() -> None:
    with pytest.raises(LoweringError, match="LLVM does not accept the module"):
        compile_parts([Part("define void @f() { ret i32 0 }")], Target.parse("native"))
    twice = [Part("define i32 @f() { ret i32 0 }", find) for find in (True, False)]
    with pytest.raises(LoweringError, match="LLVM does not accept the module: .*f"):
        compile_parts(twice, Target.parse("native"))


def plain(name: str) -> LoopFunction:
    """An addition that no schedule vectorised."""
    a, c = array("A", 1024), array("C", 1024)
    body = loop(AT, 1024, write(c, AT, value=read(a, AT) + 1.0))
    return replace(function(body, a, c), name=name)


def scheduled(name: str) -> LoopFunction:
    """A loop in vectors of the schedule's own, and one that it left plain."""
    a, c, d = array("A", 1024), array("C", 1024), array("D", 1024)
    lane = Var("v")
    vectors = loop(
        AT,
        128,
        loop(lane, 8, write(c, AT * 8 + lane, value=read(a, AT * 8 + lane) + 2.0), "vectorized"),
    )
    left = loop(K, 1024, write(d, K, value=read(a, K) * 3.0))
    return replace(function(Seq((vectors, left)), a, c, d), name=name)


def code_of(functions: list[LoopFunction]) -> str:
    """Give the assembly of the first function's body."""
    target = Target.parse("x86-64-v3")
    text = emit([passes.run(fn, target) for fn in functions], target).assembly
    return re.search(rf"\nfbk_{functions[0].name}\.body:.*?\n\s+ret", text, re.S)[0]  # type: ignore[index]


def test_llvm_looks_for_vectors_only_in_functions_whose_schedule_names_none() -> None:
    assert re.search(r"vaddps.*ymm", code_of([plain("first"), scheduled("second")]))
    # No vectors of LLVM's own beside another function, nor alone.
    assert re.search(r"vmulss", code_of([scheduled("first"), plain("second")]))
    for first, second in ((plain, scheduled), (scheduled, plain)):
        assert code_of([first("first"), second("second")]) == code_of([first("first")])
