"""sin, cos and tan: x = n pi/2 + r by pi/2 in four parts; arguments too large for that go to libm.

The first parts have so few bits that their products with n are exact with no fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.code import Module
from farbench_compiler.llvm.types import mangled, value_type
from farbench_compiler.llvm.vector_math.formats import format_of, nearest
from farbench_compiler.llvm.vector_math.value import Value, polynomial

_TWO_OVER_PI = 0.6366197723675814
# n keeps 12 bits in float32 and 20 in float64.
_LARGEST = {32: 6000.0, 64: 1.5e6}


def _reduced(x: Value) -> tuple[Value, Value]:
    """Give r and n as an integer."""
    n, whole = nearest(x * _TWO_OVER_PI)
    r = x
    for part in format_of(x).table("HALF_PI"):
        r = r - n * part
    return r, whole


def _kernels(x: Value) -> tuple[Value, Value, Value]:
    """Give sin(r), cos(r) and n."""
    of = format_of(x)
    r, n = _reduced(x)
    z = r * r
    sine = r + r * (z * polynomial(z, of.table("SIN")))
    half = z * 0.5
    near = 1.0 - half
    # What 1 - half lost comes back with the higher powers.
    lost = (x.constant(1.0).exact() - near).exact() - half
    cosine = near + (z * z * polynomial(z, of.table("COS")) + lost)
    return sine, cosine, n


def _turned(value: Value, n: Value) -> Value:
    """Change the sign where n has its second bit."""
    sign = (n & 2) << (value.dtype.bits - 2)
    bits = value.bits()
    return bits.like(f"xor {value_type(bits.dtype)} {bits.text}, {sign.text}").as_float()


def sin(x: Value) -> Value:
    """Write the sine of an argument that is not huge."""
    sine, cosine, n = _kernels(x)
    result = _turned((n & 1).equal(0).choose(sine, cosine), n)
    return x.equal(0.0).choose(x, result)


def cos(x: Value) -> Value:
    """Write the cosine of an argument that is not huge."""
    sine, cosine, n = _kernels(x)
    return _turned((n & 1).equal(0).choose(cosine, sine), n + 1)


def tan(x: Value) -> Value:
    """Write the tangent of an argument that is not huge."""
    sine, cosine, n = _kernels(x)
    even = (n & 1).equal(0)
    result = even.choose(sine, -cosine) / even.choose(cosine, sine)
    return x.equal(0.0).choose(x, result)


def with_huge(name: str, write: Callable[[Value], Value], x: Value) -> Value:
    """Write a function with a branch to libm, taken when any lane is huge."""
    code, kind = x.code, value_type(x.dtype)
    huge = x.magnitude().greater(_LARGEST[x.dtype.bits])
    slow, fast, done = (code.label(hint) for hint in ("huge", "near", "done"))
    full = code.module.declare("llvm.expect.i1", "i1", ("i1", "i1"))
    code.branch(code.value(f"call i1 @{full}(i1 {huge.anywhere()}, i1 false)"), slow, fast)
    code.start(slow)
    by_libm = code.value(
        f"call fastcc {kind} @{_slow(code.module, name, x.dtype)}({kind} {x.text})"
    )
    code.jump(done)
    code.start(fast)
    near = write(x).text
    code.jump(done)
    code.start(done)
    return x.like(f"phi {kind} [ {by_libm}, %{slow} ], [ {near}, %{fast} ]")


def _slow(module: Module, name: str, of: DType) -> str:
    """Define the function that calls libm lane by lane, once a module."""
    symbol, kind, one = f"fbm.{name}_huge.{mangled(of)}", value_type(of), value_type(of.scalar)
    if not module.first_use(symbol):
        return symbol
    libm = name if of.bits == 64 else f"{name}f"
    module.declare(libm, one, (one,))
    lines, result = [], "poison"
    if of.lanes == 1:
        lines.append(f"  %r = call {one} @{libm}({one} %x)")
        result = "%r"
    else:
        for lane in range(of.lanes):
            lines.append(f"  %x{lane} = extractelement {kind} %x, i32 {lane}")
            lines.append(f"  %y{lane} = call {one} @{libm}({one} %x{lane})")
            lines.append(f"  %r{lane} = insertelement {kind} {result}, {one} %y{lane}, i32 {lane}")
            result = f"%r{lane}"
    header = f"define internal fastcc {kind} @{symbol}({kind} %x) cold noinline nounwind"
    body = "\n".join((*lines, f"  ret {kind} {result}"))
    module.functions.append(f"{header} {{\n{body}\n}}")
    return symbol
