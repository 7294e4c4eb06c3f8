"""Lowering: from a schedule to loops, by bound inference, nests, guards and partitioning."""

from farbench_compiler.lower.function import lower

__all__ = ["lower"]
