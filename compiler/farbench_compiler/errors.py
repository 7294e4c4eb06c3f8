"""Errors of the compiler wing: what happened, where, what to try, in one line each."""

from __future__ import annotations


class CompilerError(Exception):
    """Base of everything that the compiler refuses or fails at."""


class ScheduleError(CompilerError):
    """A tensor expression or schedule that is not legal; names the primitive and the axis."""


class DTypeError(ScheduleError, ValueError):
    """A dtype that is unknown; lists those that exist."""


class ValueTypeError(ScheduleError, TypeError):
    """A value of a kind that an expression cannot hold, or an operator that its dtype has not."""


class UnknownNameError(ScheduleError, AttributeError):
    """A primitive that does not exist; lists near matches."""


class TargetError(CompilerError):
    """A target, CPU or feature that is unknown; lists near matches."""


class LoweringError(CompilerError):
    """A legal program that cannot be turned into loops or machine code."""


class LinkError(CompilerError):
    """Objects that could not be linked, or a tool for it that is missing."""


class VerifyError(CompilerError):
    """A pass left loop IR that is not legal at its stage; names the pass and the node."""
