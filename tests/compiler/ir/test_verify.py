"""What is legal at each stage, and how the verifier names what is not."""

from __future__ import annotations

import pytest

from farbench_compiler.errors import VerifyError
from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Ramp,
    Select,
    Var,
    const,
)
from farbench_compiler.ir.stmt import (
    Allocate,
    For,
    IfThen,
    Let,
    LoopFunction,
    LoopKind,
    Seq,
    Stmt,
    Store,
)
from farbench_compiler.ir.verify import Stage, verify

F32, INT64 = dtype("float32"), dtype("int64")
X, Y = Var("x"), Var("y")
A = Buffer("A", F32, (IntImm(4), IntImm(4)), "arg")
B = Buffer("B", F32, (IntImm(16),), "arg", writable=False)
C = Buffer("C", F32, (IntImm(16),), "arg")
ZERO = FloatImm(0.0)
FIRST, FOUR = IntImm(0), IntImm(4)


def check(body: Stmt, stage: Stage = "lowered", after: str = "lowering") -> None:
    verify(LoopFunction("f", (A, B, C), (), body), stage, after)


def loop(body: Stmt, kind: LoopKind = "serial", extent: Expr = FOUR) -> Stmt:
    return For(X, IntImm(0), extent, kind, body)


def store(value: Expr, index: Expr = FIRST) -> Stmt:
    return Store(C, (index,), value)


def test_legal_programs() -> None:
    check(loop(Store(A, (X, X), ZERO), "vectorized"))
    lanes = Ramp(IntImm(0), IntImm(1), 8, INT64.with_lanes(8))
    zeros = Broadcast(ZERO, 8, F32.with_lanes(8))
    check(store(zeros, lanes), "flat")
    check(store(Load(B, (lanes,), F32.with_lanes(8)), lanes), "linear")


ILLEGAL: list[tuple[Stmt, str]] = [
    (store(ZERO, X), "bound nowhere: x"),
    (loop(loop(store(ZERO))), "x is bound twice: for x"),
    (Store(B, (IntImm(0),), ZERO), "B is read only"),
    (Store(A, (IntImm(0),), ZERO), "2 indices expected: A[0] = 0.0"),
    (store(const(1, "int32")), "int32 does not fit float32"),
    (store(Load(Buffer("D", F32, (IntImm(1),)), (IntImm(0),), F32)), "D is not allocated here"),
    (store(Binary("add", ZERO, FloatImm(1.0, dtype("float64")), F32)), "float32 and float64"),
    (IfThen(X, store(ZERO)), "the condition is int64"),
    (store(Select(IntImm(1), ZERO, ZERO, F32)), "int64 chooses between"),
    (store(Call("frobnicate", (ZERO,), F32)), "frobnicate is no intrinsic"),
    (IfThen(Compare("lt", X, const(1, "int32")), store(ZERO)), "are compared"),
    (store(ZERO, FloatImm(0.0)), "the index is float32"),
    (loop(store(ZERO), extent=const(4, "int32")), "int64 loop to int32"),
    (Let(Y, ZERO, store(ZERO)), "int64 bound to float32"),
    (Allocate(Buffer("L", F32, (Y,), "local"), store(ZERO)), "bound nowhere: y"),
    (
        loop(Allocate(Buffer("L", F32, (X,), "local"), store(ZERO))),
        "a local buffer has no constant size",
    ),
    (
        Allocate(Buffer("L", F32, (IntImm(1),), "arg"), store(ZERO)),
        "an argument or a constant is allocated",
    ),
]


@pytest.mark.parametrize(("body", "message"), ILLEGAL)
def test_illegal_programs(body: Stmt, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        check(body)
    text = str(caught.value)
    assert message in text
    assert text.startswith("f: after lowering (lowered): ")
    assert "\n" not in text


def test_loops_that_a_stage_no_longer_has() -> None:
    with pytest.raises(VerifyError, match="no unrolled loop belongs here"):
        check(loop(store(ZERO), "unrolled"), "flat", after="unroll")


def test_the_pass_is_named() -> None:
    with pytest.raises(VerifyError, match=r"f: after flatten \(linear\): 1 indices expected"):
        check(Store(A, (IntImm(0), IntImm(0)), ZERO), "linear", after="flatten")


def test_a_shared_expression_is_checked_again_outside_of_its_loop() -> None:
    shared = X + 1
    with pytest.raises(VerifyError, match="bound nowhere"):
        check(Seq((loop(store(ZERO, shared)), store(ZERO, shared))))
