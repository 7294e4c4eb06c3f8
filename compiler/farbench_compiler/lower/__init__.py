"""Lowering: from a schedule to loops, by bound inference, nests, guards and partitioning."""

from farbench_compiler.lower.function import check_types, lower

__all__ = ["check_types", "lower"]
