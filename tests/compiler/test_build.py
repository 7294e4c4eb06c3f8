"""From schedules to artifacts: what the manifest says, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench_compiler import te
from farbench_compiler.build import build, build_functions, lower_text
from farbench_compiler.errors import LoweringError, TargetError
from farbench_compiler.ir.expr import IntImm, Var
from farbench_compiler.lower import lower
from farbench_rpc.manifest import ScalarArg, TensorArg, read_manifest
from tests.compiler.passes.programs import array, function, loop, read, write


def vector_add(dtype: str = "float32") -> tuple[te.Schedule, list[te.Tensor]]:
    n = te.var("n")
    a = te.placeholder((n,), dtype, name="A")
    b = te.placeholder((n,), dtype, name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    return te.create_schedule(c.op), [a, b, c]


def test_the_manifest_says_what_the_function_takes(tmp_path: Path) -> None:
    sch, args = vector_add("float16")
    artifact = build(sch, args, target="pi4", name="vector_add")
    (entry,) = artifact.manifest.entries
    assert (entry.name, entry.symbol, entry.symbols) == ("vector_add", "fbk_vector_add", ("n",))
    assert entry.args[0] == TensorArg("A", "float16", ("n",), 64, writable=False)
    assert entry.args[2] == TensorArg("C", "float16", ("n",), 64, writable=True)
    assert (entry.contracted, entry.reassociated, entry.fast_math) == (True, False, False)
    assert artifact.manifest.target.cpu == "cortex-a72"
    assert read_manifest(artifact.export_library(tmp_path / "add.so")) == artifact.manifest


def test_sizes_are_expressions_and_parameters_are_scalars() -> None:
    n, scale = te.var("n"), te.var("scale", "float32")
    a = te.placeholder((n + 2, 3), name="A")
    wide = te.placeholder((n,), name="W")
    c = te.compute((n // 2,), lambda i: (a[i, 0] + wide[i]) * scale, name="C")
    artifact = build(te.create_schedule(c.op), [a, wide, scale, c])
    (entry,) = artifact.manifest.entries
    shapes = [arg.shape for arg in entry.args if isinstance(arg, TensorArg)]
    assert shapes == [("n + 2", 3), ("n",), ("n // 2",)]
    assert entry.args[2] == ScalarArg("scale", "float32")


def test_what_was_allowed_to_floats_stands_in_the_manifest() -> None:
    values, total = array("A", 64), array("C", 1)
    first, k = IntImm(0), Var("k")
    update = write(total, first, value=read(total, first) + read(values, k))
    fn = function(loop(k, 64, update, "vectorized"), values, total)
    (entry,) = build(fn, target="native -fast-math").manifest.entries
    assert entry.reassociated
    assert entry.fast_math


def test_workspace_is_summed_up() -> None:
    a = te.placeholder((100,), name="A")
    b = te.compute((100,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((100,), lambda i: b[99 - i], name="C")
    (entry,) = build(te.create_schedule(c.op), [a, c]).manifest.entries
    assert entry.workspace_bytes == 400


def test_several_functions_in_one_library() -> None:
    functions = [lower(*vector_add(of), name=f"add_{of}") for of in ("int8", "float64")]
    artifact = build(functions, target="riscv64")
    assert [e.name for e in artifact.manifest.entries] == ["add_int8", "add_float64"]
    assert "fbk_add_int8" in artifact.get_source("asm")
    assert "@fbk_add_float64" in artifact.get_source("ll")


def test_equal_programs_give_equal_digests() -> None:
    digests = {build(*vector_add()).manifest.digest for _ in range(2)}
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["", "2nd", "a-b", "a.b"])
def test_names_that_no_symbol_can_have(name: str) -> None:
    with pytest.raises(LoweringError, match="is no name for a function"):
        build(*vector_add(), name=name)


def test_functions_of_one_name_are_refused() -> None:
    fn = lower(*vector_add())
    with pytest.raises(LoweringError, match="two functions are called 'main'"):
        build_functions([fn, fn])
    with pytest.raises(LoweringError, match="at least one function"):
        build_functions([])


def test_parameters_of_one_name_are_refused() -> None:
    x, y = te.var("x", "float32"), te.var("x", "float32")
    c = te.compute((4,), lambda i: x + y, name="C")
    with pytest.raises(LoweringError, match="parameters are called 'x'"):
        build(te.create_schedule(c.op), [x, y, c])


def test_sizes_without_a_name_are_numbered() -> None:
    a = te.placeholder((te.var(), te.var()), name="A")
    b = te.compute((a.shape[1], a.shape[0]), lambda i, j: a[j, i], name="B")
    (entry,) = build(te.create_schedule(b.op), [a, b]).manifest.entries
    assert entry.symbols == ("tindex_0", "tindex_1")
    assert [arg.shape for arg in entry.args if isinstance(arg, TensorArg)] == [
        ("tindex_0", "tindex_1"),
        ("tindex_1", "tindex_0"),
    ]


def test_a_shape_may_hang_on_a_parameter() -> None:
    n, step = te.var("n"), te.var("step")
    a = te.placeholder((n,), name="A")
    b = te.compute((n // step,), lambda i: a[i * step], name="B")
    (entry,) = build(te.create_schedule(b.op), [a, b, step]).manifest.entries
    assert entry.symbols == ("n",)
    assert entry.args[1:] == (
        TensorArg("B", "float32", ("n // step",), 64, writable=True),
        ScalarArg("step", "int64"),
    )


def test_a_wrong_target_is_told_first() -> None:
    with pytest.raises(TargetError):
        build(*vector_add(), target="pi44")
    with pytest.raises(LoweringError, match="give the arguments"):
        build(vector_add()[0])


def test_lowered_text() -> None:
    assert lower_text(*vector_add(), name="add").splitlines() == [
        "def add(A: float32[n], B: float32[n], C: float32[n]) for n: int64:",
        "  for i in serial(0, n):",
        "    C[i] = A[i] + B[i]",
    ]


def test_a_schedule_that_is_none_is_refused() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i], name="B")
    with pytest.raises(LoweringError, match="give a schedule first"):
        build([a, b], te.create_schedule(b.op))  # type: ignore[arg-type, list-item]
