"""`import farbench.tir`: bodies written by hand, which are the compiler's own."""

from farbench.aliases import stand_for

stand_for(__name__, "farbench_compiler.tir")

from farbench_compiler.tir import *  # noqa: E402, F403 - what type checkers see of it
