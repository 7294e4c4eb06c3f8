"""The programs run where the operator library's do."""

from tests.compiler.ops.conftest import place

__all__ = ["place"]
