"""fmod, exact, by long division: each step takes as many bits of the quotient as fit a product."""

from __future__ import annotations

from farbench_compiler.llvm.vector_math.exact import fuses, product, scaled
from farbench_compiler.llvm.vector_math.formats import format_of, nearest
from farbench_compiler.llvm.vector_math.value import Value

_INFINITY = float("inf")
# Bits of a step's quotient; times the 24 of a float32 they fit one double.
_BITS = {32: 27, 64: 49}
_LIFT = 64
# Where Dekker's product is exact, and what brings others there.
_LARGE, _SMALL, _DOWN, _UP = 2.0**900, 2.0**-800, 2.0**-100, 2.0**160


def fmod(x: Value, y: Value) -> Value:
    """Write the rest of x / y, the quotient rounded towards zero; it has the sign of x."""
    single = x.dtype.bits == 32
    a, b = x.widened().magnitude(), y.widened().magnitude()
    divides = a.less(_INFINITY).both(b.greater(0.0))
    r = divides.choose(a, a.constant(0.0))
    r = _divided(r, divides.choose(b, b.constant(1.0)), _BITS[x.dtype.bits])
    r = r.cast("fptrunc", x.dtype.scalar) if single else r
    whole = divides.both(y.magnitude().less(_INFINITY))
    kept = y.magnitude().equal(_INFINITY).both(a.less(_INFINITY))
    result = whole.choose(r.with_sign(x), kept.choose(x, x.constant(float("nan"))))
    return x.unordered(y).choose(x + y, result)


def _divided(r: Value, b: Value, bits: int) -> Value:
    """Write the loop over the steps, ended when every lane is less than its divisor."""
    code = r.code
    before, (head, step, done) = code.block, (code.label(h) for h in ("steps", "step", "end"))
    code.jump(head)
    code.start(head)
    line, left = code.reserve(), r.like_text(code.fresh())
    more = b.greater(left).otherwise()
    code.branch(more.anywhere(), step, done)
    code.start(step)
    rest = more.choose(_step(left, b, bits), left)
    code.jump(head)
    code.fill(line, left.phi((r, before), (rest, step)))
    code.start(done)
    return left


def _step(r: Value, b: Value, bits: int) -> Value:
    """Take from r the largest multiple of b 2^k of a quotient of `bits` bits."""
    lifted, lift = _lifted(b)
    k = (_exponent(r) - _exponent(b) - bits).at_least_zero()
    divisor = scaled(lifted, k - lift)  # k alone can exceed two powers
    quotient, _ = nearest(r / divisor)
    rest = _less(r, quotient, divisor, exact=bits == _BITS[32])
    return rest.less(0.0).choose(rest + divisor, rest)


def _less(r: Value, quotient: Value, divisor: Value, *, exact: bool) -> Value:
    """Give r - quotient * divisor, which is a double."""
    if exact:
        return r.exact() - quotient.exact() * divisor
    if fuses(r):
        return quotient.fused(-divisor, r)
    one = r.constant(1.0)
    down = r.greater(_LARGE)
    scale = down.choose(_DOWN, r.less(_SMALL).choose(_UP, one))
    back = down.choose(1 / _DOWN, r.less(_SMALL).choose(1 / _UP, one))
    high, low = product(quotient, divisor * scale)
    return (((r * scale).exact() - high).exact() - low) * back


def _lifted(v: Value) -> tuple[Value, Value]:
    """Give v * 2^lift, which is normal, and lift."""
    tiny = v.less(2.0 ** (1 - format_of(v).bias))
    higher = tiny.choose(v * 2.0**_LIFT, v)
    return higher, tiny.choose(_LIFT, v.bits().constant(0))


def _exponent(v: Value) -> Value:
    """Give the exponent as it stands in the bits, less than 1 for subnormals."""
    higher, lift = _lifted(v)
    return (higher.bits() >> format_of(v).fraction) - lift
