"""What becomes of vectorised loops: vectors, masks, strips, or loops where those are wrong."""

from __future__ import annotations

from farbench_compiler import passes
from farbench_compiler.ir.expr import Buffer, Cast, Expr, IfThenElse, IntImm, Var, binary, const
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import Allocate, For, IfThen, LoopFunction, Seq

from .programs import F32, Unit, array, function, loop, read, write

AT, J, K, N = Var("i"), Var("j"), Var("k"), Var("n")
A, B, C = (array(name, 64) for name in "ABC")


def body_of(fn: LoopFunction, unit: Unit | None = None) -> list[str]:
    """Run all passes; the lines behind the head of the function."""
    text = to_text(passes.run(fn, unit or Unit()))
    return [line[2:] for line in text.splitlines()[1:]]


def vectorized(value: Expr, extent: int = 8) -> LoopFunction:
    return function(loop(AT, extent, write(C, AT, value=value), "vectorized"), A, B, C)


def test_contiguous_access_becomes_ramps() -> None:
    fn = vectorized(read(A, AT) + read(B, IntImm(3)))
    assert body_of(fn) == ["C[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] + broadcast(B[3], 8)"]


def test_strides_and_digits_are_found_by_simplification() -> None:
    fn = vectorized(read(A, AT * 3 + 1) + read(B, (J * 8 + AT) // 8))
    fn = function(loop(J, 8, fn.body), A, B, C)
    assert body_of(fn)[1] == ("  C[ramp(0, 1, 8)] = A[ramp(1, 3, 8)] + broadcast(B[j], 8)")


def test_what_is_no_ramp_is_a_vector_of_indices() -> None:
    fn = vectorized(read(A, AT * AT))
    assert body_of(fn) == ["C[ramp(0, 1, 8)] = A[ramp(0, 1, 8) * ramp(0, 1, 8)]"]


def test_the_lane_as_a_value() -> None:
    fn = vectorized(Cast(F32, AT))
    assert body_of(fn) == ["C[ramp(0, 1, 8)] = float32x8(ramp(0, 1, 8))"]


def guarded() -> LoopFunction:
    at = J * 8 + AT
    body = IfThen(at < N, write(C, at, value=read(A, at)))
    inner = loop(AT, 8, body, "vectorized")
    return function(loop(J, (N + 7) // 8, inner), A, C, N)


def test_a_guarded_end_is_masked() -> None:
    assert body_of(guarded())[1:] == [
        "  if j * 8 + 7 < n:",
        "    C[ramp(j * 8, 1, 8)] = A[ramp(j * 8, 1, 8)]",
        "  else:",
        "    if ramp(j * 8, 1, 8) < broadcast(n, 8):",
        "      C[ramp(j * 8, 1, 8)] = A[ramp(j * 8, 1, 8)]",
    ]


def test_a_guarded_end_runs_one_by_one_without_masks() -> None:
    assert body_of(guarded(), Unit(128, ()))[4:] == [
        "    for i in serial(0, 8):",
        "      if j * 8 + i < n:",
        "        C[j * 8 + i] = A[j * 8 + i]",
    ]


def test_guarded_values_are_free_of_guards_away_from_the_edge() -> None:
    at = J * 8 + AT
    padded = IfThenElse(at >= 3, read(A, at - 3), const(0.0, F32), F32)
    inner = loop(AT, 8, write(C, at, value=padded), "vectorized")
    lines = body_of(function(loop(J, 8, inner), A, C))
    assert lines[1] == "  if j >= 1:"
    assert lines[2] == "    C[ramp(j * 8, 1, 8)] = A[ramp(j * 8 - 3, 1, 8)]"
    assert lines[3] == "  else:"
    assert "A[ramp(j * 8 - 3, 1, 8)] if ramp(j * 8, 1, 8) >= broadcast(3, 8) else" in lines[4]


def test_long_loops_run_in_strips() -> None:
    long_a, long_c = array("A", 1000), array("C", 1000)
    body = write(long_c, AT, value=read(long_a, AT))
    lines = body_of(function(loop(AT, 1000, body, "vectorized"), long_a, long_c))
    assert lines == [
        "for i.strip in serial(0, 31):",
        "  C[ramp(i.strip * 32, 1, 32)] = A[ramp(i.strip * 32, 1, 32)]",
        "C[ramp(992, 1, 8)] = A[ramp(992, 1, 8)]",
    ]


def test_symbolic_loops_run_in_strips_and_a_rest() -> None:
    body = write(C, AT, value=read(A, AT))
    lines = body_of(function(loop(AT, N, body, "vectorized"), A, C, N))
    assert lines == [
        "for i.strip in serial(0, n // 32):",
        "  C[ramp(i.strip * 32, 1, 32)] = A[ramp(i.strip * 32, 1, 32)]",
        "for i in serial(n // 32 * 32, n % 32):",
        "  C[i] = A[i]",
    ]


def test_without_vectors_short_loops_are_unrolled() -> None:
    fn = vectorized(read(A, AT), extent=2)
    assert body_of(fn, Unit(64, ())) == ["C[0] = A[0]", "C[1] = A[1]"]


def test_a_sum_over_lanes_stays_a_loop_for_llvm() -> None:
    total = read(C, J)
    update = write(C, J, value=total + read(A, K))
    lines = body_of(function(loop(J, 4, loop(K, 16, update, "vectorized")), A, C))
    assert lines[1:] == ["  for k in vectorized(0, 16):", "    C[j] = C[j] + A[k]"]


def test_lanes_that_update_one_element_are_no_vector() -> None:
    half = AT // 2
    update = write(C, half, value=read(C, half) + read(A, AT))
    fn = function(loop(AT, 8, update, "vectorized"), A, C)
    assert body_of(fn)[0] == "for i in serial(0, 8):"


def test_what_is_allocated_inside_is_a_lane_s_own() -> None:
    own = Buffer("t", F32, (IntImm(2),), "local")
    body = Allocate(own, Seq((
        write(own, IntImm(1), value=read(A, AT)),
        write(C, AT, value=read(own, IntImm(1))),
    )))  # fmt: skip
    lines = body_of(function(loop(AT, 8, body, "vectorized"), A, C))
    assert lines == [
        "allocate t: float32[16] in local",
        "t[ramp(8, 1, 8)] = A[ramp(0, 1, 8)]",
        "C[ramp(0, 1, 8)] = t[ramp(8, 1, 8)]",
    ]


def test_an_inner_loop_that_differs_from_lane_to_lane_keeps_the_outer_one() -> None:
    inner = For(K, IntImm(0), binary("add", AT, 1), "serial", write(C, AT, value=read(A, K)))
    lines = body_of(function(loop(AT, 8, inner, "vectorized"), A, C))
    assert lines[0] == "for i in serial(0, 8):"


def test_the_outer_of_two_vectorised_loops_becomes_serial() -> None:
    inner = loop(J, 8, write(C, AT * 8 + J, value=read(A, AT * 8 + J)), "vectorized")
    lines = body_of(function(loop(AT, 8, inner, "vectorized"), A, C))
    assert lines[0] == "for i in serial(0, 8):"


def reduction(outer: int | Expr, at: Expr, kind: str = "vectorized") -> LoopFunction:
    """A sum over J, in steps of 8 over AT."""
    element = read(C, IntImm(0))
    inner = loop(AT, 8, write(C, IntImm(0), value=element + read(A, at)), kind)  # type: ignore[arg-type]
    return function(loop(J, outer, inner), A, C, N, symbols=(N,))


def test_a_split_reduction_is_joined_so_that_its_sums_stay_in_a_vector() -> None:
    assert body_of(reduction(6, J * 8 + AT)) == [
        "for i in vectorized(0, 48):",
        "  C[0] = C[0] + A[i]",
    ]
    assert body_of(reduction(N, J * 8 + AT))[0] == "for i in vectorized(0, n * 8):"


def test_loops_split_twice_are_joined_twice() -> None:
    inner = reduction(4, K * 32 + J * 8 + AT).body
    assert body_of(function(loop(K, 3, inner), A, C)) == [
        "for i in vectorized(0, 96):",
        "  C[0] = C[0] + A[i]",
    ]


def test_a_reduction_in_rows_of_their_own_is_not_joined() -> None:
    assert body_of(reduction(6, J * 10 + AT))[:2] == [
        "for j in serial(0, 6):",
        "  for i in vectorized(0, 8):",
    ]


def test_vectors_are_as_long_as_the_widest_value_allows() -> None:
    """Bytes that are compared as 64-bit numbers in between: not vectors of 64 registers each."""
    narrow = array("A", 4096, of="int8"), array("C", 4096, of="int8")
    value = Cast(narrow[1].dtype, Cast(K.dtype, read(narrow[0], AT)) * K)
    fn = function(loop(AT, 4096, write(narrow[1], AT, value=value), "vectorized"), *narrow, K)
    assert "int8x32" in body_of(fn)[1]
