"""LLVM's intrinsics by their names: the checked list that a body may call.

Each is an intrinsic of the loop IR, so that the reference interpreter knows it and a target
without the instruction computes the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import dots
from farbench_compiler.ir.dtypes import DType, dtype
from farbench_compiler.ir.expr import Call, Expr, ExprLike, as_expr


@dataclass(frozen=True, slots=True)
class _Exact:
    """One of a target's own: what it computes, on which dtypes."""

    name: str
    args: tuple[str, ...]
    result: str


_OVERLOADED = {
    **{f"llvm.{n}": n for n in ("exp", "exp2", "log", "log2", "log10", "sqrt", "pow", "fma")},
    **{f"llvm.{n}": n for n in ("sin", "cos", "floor", "ceil", "trunc")},
    "llvm.fabs": "abs", "llvm.rint": "round", "llvm.ctpop": "popcount", "llvm.ctlz": "clz",
}  # fmt: skip


def _dot4(lanes: int, left: str, right: str) -> _Exact:
    sums = f"int32x{lanes}"
    return _Exact("dot4", (sums, f"{left}x{4 * lanes}", f"{right}x{4 * lanes}"), sums)


def _dot2(lanes: int) -> _Exact:
    sums, pairs = f"float32x{lanes}", f"bfloat16x{2 * lanes}"
    return _Exact("dot2", (sums, pairs, pairs), sums)


_EXACT = {
    **{f"llvm.x86.avx512.vpdpbusd.{32 * n}": _dot4(n, "uint8", "int8") for n in (4, 8, 16)},
    **{f"llvm.x86.avx512bf16.dpbf16ps.{32 * n}": _dot2(n) for n in (4, 8, 16)},
    "llvm.aarch64.neon.sdot.v4i32.v16i8": _dot4(4, "int8", "int8"),
    "llvm.aarch64.neon.udot.v4i32.v16i8": _dot4(4, "uint8", "uint8"),
    "llvm.aarch64.neon.usdot.v4i32.v16i8": _dot4(4, "uint8", "int8"),
    "llvm.aarch64.neon.bfdot.v4f32.v8bf16": _dot2(4),
}


def call_llvm_pure_intrin(
    result: str | DType, name: str, num_signature: int = 0, *args: ExprLike
) -> Expr:
    """Call an intrinsic of LLVM; ScheduleError for one that is not on the list, or other dtypes.

    `num_signature`, the number of types in LLVM's overloaded name, is found from the arguments.
    """
    of, given = dtype(result), tuple(as_expr(arg) for arg in args)
    exact = _EXACT.get(name)
    if exact is not None:
        found = tuple(str(arg.dtype) for arg in given)
        if found != exact.args or str(of) != exact.result:
            raise ScheduleError(
                f"{name} takes {', '.join(exact.args)} and gives {exact.result}; got "
                f"{', '.join(found)} for {of}"
            )
        return Call(exact.name, given, of)
    plain = name
    while plain not in _OVERLOADED and "." in plain.removeprefix("llvm."):
        plain = plain.rpartition(".")[0]  # `llvm.fma.v8f32` is `llvm.fma`
    if plain not in _OVERLOADED:
        raise ScheduleError(f"{name} is not on the list: {', '.join((*_OVERLOADED, *_EXACT))}")
    if not given or any(arg.dtype != given[0].dtype for arg in given):
        raise ScheduleError(f"{name}: the arguments must have one dtype")
    return Call(_OVERLOADED[plain], given, of)


call_llvm_intrin = call_llvm_pure_intrin
dot2, dot4, interleave = dots.dot2, dots.dot4, dots.interleave
