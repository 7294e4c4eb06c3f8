"""Derive the polynomials of the vector math and print them as a Python module (needs mpmath).

Remez's exchange in 60 digits on the error times a weight: `python scripts/polynomials.py`.
The tables are what the functions' kernels read; the last digits lost by rounding a coefficient
are within the bounds that the tests hold.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[Any], Any]


def remez(f: Function, weight: Function, low: Any, high: Any, powers: list[int]) -> list[Any]:
    """Fit `sum c_k x**powers[k]` to f on [low, high] so that the weighted error is least."""
    n = len(powers) + 1
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    coefficients: list[Any] = []
    for _ in range(8):
        rows = mp.matrix(n, n)
        sides = mp.matrix(n, 1)
        for i, x in enumerate(points):
            for k, power in enumerate(powers):
                rows[i, k] = x**power
            rows[i, n - 1] = (-1) ** i / weight(x)
            sides[i] = f(x)
        solved = mp.lu_solve(rows, sides)
        coefficients = [solved[k] for k in range(n - 1)]
        points = _extrema(f, weight, low, high, powers, coefficients, n)
    return coefficients


def _extrema(
    f: Function, weight: Function, low: Any, high: Any, powers: list[int], c: list[Any], n: int
) -> list[Any]:
    def error(x: Any) -> Any:
        return weight(x) * (f(x) - sum(a * x**p for a, p in zip(c, powers, strict=True)))

    count = 24 * n
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / count) for i in range(count + 1)
    ]
    runs: list[tuple[Any, Any]] = []
    for x in grid:
        e = error(x)
        if runs and (e > 0) == (runs[-1][0] > 0):
            runs[-1] = max(runs[-1], (e, x), key=lambda pair: abs(pair[0]))
        else:
            runs.append((e, x))
    while len(runs) > n:
        runs.pop(0 if abs(runs[0][0]) < abs(runs[-1][0]) else -1)
    if len(runs) < n:
        raise ValueError("the error has too few extrema; take fewer coefficients")
    return [x for _, x in runs]


def rounded(value: Any, bits: int) -> float:
    """Round to a double, or to a float32 given as the double that equals it."""
    if bits == 64:
        return float(value)
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def fit(
    f: Function, weight: Function, low: Any, high: Any, powers: list[int], bits: int
) -> tuple[float, ...]:
    """Fit and round the coefficients, lowest power first."""
    found = remez(f, weight, mpf(low), mpf(high), powers)
    return tuple(rounded(c, bits) for c in found)


def split(value: Any, widths: list[int], bits: int) -> tuple[float, ...]:
    """Cut a constant into parts of so many bits each; the last is rounded to the dtype."""
    parts: list[float] = []
    for width in widths:
        exponent = int(mp.floor(mp.log(abs(value), 2)))
        unit = mpf(2) ** (exponent - width + 1)
        part = mp.floor(value / unit) * unit
        parts.append(float(part))
        value -= part
    return (*parts, rounded(value, bits))


def _series(f: Function, taylor: Function, x: Any) -> Any:
    return taylor(x) if abs(x) < mpf(10) ** -12 else f(x)


def _expm1_rest(x: Any) -> Any:  # (exp(x) - 1 - x) / x^2
    return _series(lambda v: (mp.expm1(v) - v) / v**2, lambda v: mpf(1) / 2 + v / 6, x)


def _over_square(odd: Function, first: Any, second: Any) -> Function:
    """Give ((odd(x) / x) - 1) / x^2 as a function of z = x^2; the series begins as given."""
    return lambda z: _series(
        lambda v: (odd(mp.sqrt(v)) / mp.sqrt(v) - 1) / v, lambda v: mpf(first) + v * second, z
    )


def _cos_rest(z: Any) -> Any:  # (cos(x) - 1 + x^2/2) / x^4
    return _series(
        lambda v: (mp.cos(mp.sqrt(v)) - 1 + v / 2) / v**2, lambda v: mpf(1) / 24 - v / 720, z
    )


def _erf_over_x(z: Any) -> Any:
    return _series(
        lambda v: mp.erf(mp.sqrt(v)) / mp.sqrt(v), lambda v: 2 / mp.sqrt(mp.pi) * (1 - v / 3), z
    )


def tables(bits: int) -> dict[str, tuple[float, ...]]:
    """Derive every table of a dtype."""
    wide = bits == 64
    sine = _over_square(mp.sin, mpf(-1) / 6, mpf(1) / 120)
    arc_tangent = _over_square(mp.atan, mpf(-1) / 3, mpf(1) / 5)
    arc_sine = _over_square(mp.asin, mpf(1) / 6, mpf(3) / 40)
    quarter = (mp.pi / 4 * mpf("1.001")) ** 2
    tangent = mp.tan(mp.pi / 8) ** 2 * mpf("1.001")

    def near_zero(f: Function, high: Any, single: int, double: int) -> tuple[float, ...]:
        """Fit what is small against a leading term, so that its error may be larger near 0."""
        count = double if wide else single
        return fit(f, lambda z: z + mpf("1e-3"), mpf(0), high, list(range(count)), bits)

    half = mp.log(2) / 2 * mpf("1.001")
    exp_terms = list(range(10 if wide else 5))
    erf_terms = list(range(13 if wide else 7))
    return {
        "EXP": fit(_expm1_rest, lambda x: abs(x) + mpf("1e-3"), -half, half, exp_terms, bits),
        "SIN": near_zero(sine, quarter, 4, 7),
        "COS": near_zero(_cos_rest, quarter, 3, 6),
        "ATAN": near_zero(arc_tangent, tangent, 5, 12),
        "ASIN": near_zero(arc_sine, mpf("0.2505"), 6, 13),
        "ERF": fit(_erf_over_x, lambda _: mpf(1), mpf(0), mpf("1.001"), erf_terms, bits),
        "ERFC": erfc(bits),
        "HALF_PI": split(mp.pi / 2, [33, 33, 33] if wide else [12, 12, 12], bits),
        "QUARTER_PI": split(mp.pi / 4, [53 if wide else 24], bits),
    }


def erfc(bits: int) -> tuple[float, ...]:
    """Fit log(erfc(x)) beyond 1 in powers of x - centre, weighted by erfc(x)."""
    # About 1.25: there the weight is large, and far away errors of rounding do not count.
    top, centre, count = mpf(6 if bits == 64 else 4), mpf("1.25"), 21 if bits == 64 else 9

    def shifted(u: Any) -> Any:
        return mp.log(mp.erfc(u + centre))

    def weight(u: Any) -> Any:
        return mp.erfc(u + centre) + mpf("1e-19" if bits == 64 else "1e-9")

    found = remez(shifted, weight, 1 - centre, top - centre, list(range(count)))
    return tuple(rounded(c, bits) for c in found)


if __name__ == "__main__":
    print('"""Coefficients of the vector math, lowest power first (scripts/polynomials.py)."""\n')
    print("from __future__ import annotations\n")
    print("TABLES: dict[int, dict[str, tuple[float, ...]]] = {")
    for size in (32, 64):
        print(f"    {size}: {{")
        for name, values in tables(size).items():
            print(f'        "{name}": (')
            for value in values:
                print(f"            {value!r},")
            print("        ),")
        print("    },")
    print("}")
