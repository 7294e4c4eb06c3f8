"""Operations as tables: what each arithmetic operation of the loop IR is in LLVM.

Integers wrap. A division by a divisor that is no constant gives 0 for 0 (as numpy does) and wraps
for the least number by -1, instead of trapping; shifts by the width or more give 0 or the sign.
Floats may be contracted to fused multiply-adds, nothing more; min and max give NaN if either
operand is NaN, and of two zeros either.
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm import vector_math
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.convert import convert
from farbench_compiler.llvm.types import constant, value_type

INTEGER = {
    "add": "add", "sub": "sub", "mul": "mul", "bitand": "and", "bitor": "or", "bitxor": "xor",
}  # fmt: skip
FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_CONTRACTED = frozenset(("add", "sub", "mul"))
_INTEGER_EXTREME = {
    ("min", "int"): "llvm.smin", ("max", "int"): "llvm.smax",
    ("min", "uint"): "llvm.umin", ("max", "uint"): "llvm.umax",
    ("min", "bool"): "llvm.umin", ("max", "bool"): "llvm.umax",
}  # fmt: skip
_FLOAT_EXTREME = {"min": "llvm.minimum", "max": "llvm.maximum"}
# round is to even, as numpy's and ONNX's (no program changes the rounding mode).
ROUNDINGS = {
    "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": "llvm.trunc", "round": "llvm.rint",
}  # fmt: skip
_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def _literal(text: str) -> int | None:
    """Read an integer constant, or the one that all lanes have."""
    word = text[:-1].split()[-1] if text.startswith("splat") else text
    return int(word) if word.lstrip("-").isdigit() else None


@dataclass
class Arithmetic:
    """Writes operations on values of one dtype."""

    code: Code
    fast_math: bool = False

    def flags(self, op: str, reassociate: bool = False) -> str:
        """Give the fast-math flags that an operation may have, with a space behind."""
        if self.fast_math:
            return "fast "
        contract = "contract " if op in _CONTRACTED else ""
        return f"reassoc {contract}" if reassociate else contract

    def binary(self, op: str, a: str, b: str, of: DType, reassociate: bool = False) -> str:
        """Write arithmetic of `BinaryOp`."""
        if of.is_float:
            return self._float(op, a, b, of, reassociate)
        if op in INTEGER:
            return self.code.value(f"{INTEGER[op]} {value_type(of)} {a}, {b}")
        if op in ("min", "max"):
            return self.code.intrinsic(_INTEGER_EXTREME[op, of.kind], of, a, b)
        if op in ("shl", "shr"):
            return self._shift(op, a, b, of)
        return self._divide(op, a, b, of)

    def compare(self, op: str, a: str, b: str, of: DType) -> str:
        """Write a comparison of two values of dtype `of`."""
        if of.is_bfloat:
            single = DType("float", 32, of.lanes)
            a, b = (convert(self.code, value, of, single, True) for value in (a, b))
            of = single
        if of.is_float:
            fast = "fast " if self.fast_math else ""
            return self.code.value(f"fcmp {fast}{_ORDERED[op]} {value_type(of)} {a}, {b}")
        table = _SIGNED if of.kind == "int" else _UNSIGNED
        return self.code.value(f"icmp {table[op]} {value_type(of)} {a}, {b}")

    def select(self, cond: str, a: str, b: str, of: DType, lanes: int | None = None) -> str:
        """Write a choice; `lanes` is how many conditions there are (those of `of` by default)."""
        count = of.lanes if lanes is None else lanes
        bits = "i1" if count == 1 else f"<{count} x i1>"
        kind = value_type(of)
        return self.code.value(f"select {bits} {cond}, {kind} {a}, {kind} {b}")

    def _float(self, op: str, a: str, b: str, of: DType, reassociate: bool) -> str:
        kind = value_type(of)
        if of.is_bfloat:
            return self._in_single(op, a, b, of)
        if op in FLOAT:
            return self.code.value(f"{FLOAT[op]} {self.flags(op, reassociate)}{kind} {a}, {b}")
        if op in _FLOAT_EXTREME:
            flags = "fast " if self.fast_math else "nsz "
            return self.code.intrinsic(_FLOAT_EXTREME[op], of, a, b, flags=flags)
        if of.bits == 16:
            return self._in_single(op, a, b, of)
        if op == "truncdiv":
            return self.rounded("trunc", self._float("div", a, b, of, False), of)
        rest = vector_math.call(self.code, "fmod", [a, b], of)
        if op == "truncmod":
            return rest
        return self._floor_float(op, a, b, rest, of)

    def _in_single(self, op: str, a: str, b: str, of: DType) -> str:
        """Compute in single precision and round once, as numpy divides halves."""
        single = DType("float", 32, of.lanes)
        x, y = (convert(self.code, value, of, single, True) for value in (a, b))
        return convert(self.code, self._float(op, x, y, single, False), single, of, True)

    def _floor_float(self, op: str, a: str, b: str, rest: str, of: DType) -> str:
        """Floor division and remainder with the divisor's sign, as numpy computes them."""
        zero = constant(0, of)
        left = self.compare("ne", rest, zero, of)
        signs = [self.compare("lt", x, zero, of) for x in (rest, b)]
        bits = DType("bool", 1, of.lanes)
        differ = self.binary("bitxor", signs[0], signs[1], bits)
        fix = self.binary("bitand", left, differ, bits)
        if op == "floormod":
            fixed = self._float("add", rest, b, of, False)
            signed_zero = self.code.intrinsic("llvm.copysign", of, zero, b)
            whole = self.select(fix, fixed, rest, of)
            return self.select(left, whole, signed_zero, of)
        quotient = self._float("div", self._float("sub", a, rest, of, False), b, of, False)
        less = self._float("sub", quotient, constant(1, of), of, False)
        chosen = self.select(fix, less, quotient, of)
        return self.rounded("round", chosen, of)

    def rounded(self, name: str, value: str, of: DType, flags: str = "") -> str:
        """Round a float32 or float64 to an integer, by an instruction where the target has one."""
        if vector_math.writes(name, self.code.module.features):
            return vector_math.call(self.code, name, [value], of)
        return self.code.intrinsic(ROUNDINGS[name], of, value, flags=flags)

    def _shift(self, op: str, a: str, b: str, of: DType) -> str:
        kind, most = value_type(of), constant(of.bits - 1, of)
        name = "shl" if op == "shl" else ("ashr" if of.kind == "int" else "lshr")
        known = _literal(b)
        if known is not None and 0 <= known < of.bits:
            return self.code.value(f"{name} {kind} {a}, {b}")
        amount = self.code.intrinsic("llvm.umin", of, b, most)
        shifted = self.code.value(f"{name} {kind} {a}, {amount}")
        if name == "ashr":
            return shifted
        fits = self.code.value(f"icmp ule {kind} {b}, {most}")
        return self.select(fits, shifted, constant(0, of), of)

    def _divide(self, op: str, a: str, b: str, of: DType) -> str:
        kind = value_type(of)
        sign = "s" if of.kind == "int" else "u"
        divide = op in ("floordiv", "truncdiv")
        known = _literal(b)
        if known is not None and known > 0 and not known & (known - 1) and op.startswith("floor"):
            if divide:
                return self._shift("shr", a, constant(known.bit_length() - 1, of), of)
            return self.code.value(f"and {kind} {a}, {constant(known - 1, of)}")
        divisor, problem = self._safe_divisor(b, of)
        quotient = self.code.value(f"{sign}div {kind} {a}, {divisor}") if divide else ""
        needs_rest = not divide or (op == "floordiv" and sign == "s")
        rest = self.code.value(f"{sign}rem {kind} {a}, {divisor}") if needs_rest else ""
        result = quotient if divide else rest
        if sign == "s" and op in ("floordiv", "floormod"):
            result = self._round_down(op, result, rest, divisor, of)
        return result if problem is None else self._repaired(divide, result, a, b, problem, of)

    def _safe_divisor(self, b: str, of: DType) -> tuple[str, str | None]:
        """Put 1 in place of a divisor that would trap; None where the divisor is a constant."""
        if _literal(b) not in (None, 0, -1):
            return b, None
        bits = DType("bool", 1, of.lanes)
        trap = self.compare("eq", b, constant(0, of), of)
        if of.kind == "int":
            minus_one = self.compare("eq", b, constant(-1, of), of)
            trap = self.binary("bitor", trap, minus_one, bits)
        return self.select(trap, constant(1, of), b, of), trap

    def _repaired(self, divide: bool, result: str, a: str, b: str, trap: str, of: DType) -> str:
        zero = constant(0, of)
        if divide and of.kind == "int":
            negative = self.code.value(f"sub {value_type(of)} {zero}, {a}")
            is_zero = self.compare("eq", b, zero, of)
            special = self.select(is_zero, zero, negative, of)
        else:
            special = zero
        return self.select(trap, special, result, of)

    def _round_down(self, op: str, result: str, rest: str, divisor: str, of: DType) -> str:
        """Correct truncation to floor where the rest and the divisor differ in sign."""
        kind, zero = value_type(of), constant(0, of)
        bits = DType("bool", 1, of.lanes)
        signs = self.code.value(f"xor {kind} {rest}, {divisor}")
        differ = self.compare("lt", signs, zero, of)
        left = self.compare("ne", rest, zero, of)
        fix = self.binary("bitand", differ, left, bits)
        if op == "floormod":
            return self.code.value(f"add {kind} {rest}, {self.select(fix, divisor, zero, of)}")
        one = self.select(fix, constant(1, of), zero, of)
        return self.code.value(f"sub {kind} {result}, {one}")
