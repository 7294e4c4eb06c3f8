"""Intrinsics as tables: LLVM's own, and the few that are put together, our own functions."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm import vector_math
from farbench_compiler.llvm.arithmetic import ROUNDINGS, Arithmetic
from farbench_compiler.llvm.convert import convert
from farbench_compiler.llvm.types import constant, value_type

_FLOAT_UNARY = {"sqrt": "llvm.sqrt", "abs": "llvm.fabs"}


def call(ops: Arithmetic, name: str, args: list[str], of: DType, result: DType) -> str:
    """Write an intrinsic on arguments of dtype `of`."""
    if not of.is_float:
        return _integer(ops, name, args, of, result)
    if of.is_bfloat or (of.bits == 16 and name != "abs"):
        # Halves are computed in single precision and rounded once.
        single = DType("float", 32, of.lanes)
        wide = [convert(ops.code, arg, of, single, wide_halves=True) for arg in args]
        value = call(ops, name, wide, single, single if result.is_float else result)
        if not result.is_float:
            return value
        return convert(ops.code, value, single, result, wide_halves=True)
    flags = "fast " if ops.fast_math else ""
    if name in ROUNDINGS:
        return ops.rounded(name, args[0], of, flags)
    if vector_math.writes(name, ops.code.module.features):
        return vector_math.call(ops.code, name, args, of)
    if name in _FLOAT_UNARY:
        return ops.code.intrinsic(_FLOAT_UNARY[name], of, *args, flags=flags)
    return _COMPOSED[name](ops, args, of)


def _integer(ops: Arithmetic, name: str, args: list[str], of: DType, result: DType) -> str:
    code, kind = ops.code, value_type(of)
    if name in ROUNDINGS:  # an integer stays
        return args[0]
    if name == "popcount":
        return convert(code, code.intrinsic("llvm.ctpop", of, args[0]), of, result, True)
    if name in ("clz", "abs"):
        if name == "abs" and of.kind != "int":
            return args[0]
        base = "llvm.ctlz" if name == "clz" else "llvm.abs"
        suffix = f"v{of.lanes}i{of.bits}" if of.lanes > 1 else f"i{of.bits}"
        full = code.module.declare(f"{base}.{suffix}", kind, (kind, "i1"))
        value = code.value(f"call {kind} @{full}({kind} {args[0]}, i1 false)")
        return convert(code, value, of, result, True)
    if name in ("isnan", "isinf", "isfinite"):
        return constant(name == "isfinite", result)
    wide = DType("float", 64, of.lanes)
    floats = [convert(code, arg, of, wide, True) for arg in args]
    return convert(code, call(ops, name, floats, wide, wide), wide, result, False)


def _rsqrt(ops: Arithmetic, args: list[str], of: DType) -> str:
    root = ops.code.intrinsic("llvm.sqrt", of, args[0])
    return ops.binary("div", constant(1, of), root, of)


def _copysign(ops: Arithmetic, args: list[str], of: DType) -> str:
    return ops.code.intrinsic("llvm.copysign", of, *args)


def _fused(ops: Arithmetic, args: list[str], of: DType) -> str:
    return ops.code.intrinsic("llvm.fma", of, *args)


def _is_nan(ops: Arithmetic, args: list[str], of: DType) -> str:
    return ops.code.value(f"fcmp uno {value_type(of)} {args[0]}, {args[0]}")


def _size_against_infinity(op: str) -> Callable[[Arithmetic, list[str], DType], str]:
    def write(ops: Arithmetic, args: list[str], of: DType) -> str:
        size = ops.code.intrinsic("llvm.fabs", of, args[0])
        infinity = constant(float("inf"), of)
        return ops.code.value(f"fcmp {op} {value_type(of)} {size}, {infinity}")

    return write


_COMPOSED: dict[str, Callable[[Arithmetic, list[str], DType], str]] = {
    "rsqrt": _rsqrt,
    "copysign": _copysign,
    "fma": _fused,
    "isnan": _is_nan,
    "isinf": _size_against_infinity("oeq"),
    "isfinite": _size_against_infinity("olt"),
}
