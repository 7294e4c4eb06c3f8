"""Names of the pure intrinsics that a `Call` may have."""

from __future__ import annotations

INTRINSICS: frozenset[str] = frozenset(
    [
        *("exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "pow", "sigmoid", "erf", "fma"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "round", "trunc", "abs"),
        *("asin", "acos", "atan", "atan2", "expm1", "fmod", "copysign"),
        *("asinh", "acosh", "atanh", "log1p", "hypot"),
        *("isnan", "isinf", "isfinite", "popcount", "clz"),
    ]
)
