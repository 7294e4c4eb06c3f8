"""`import farbench.topi`: operators on whole tensors, which are the compiler's own."""

from farbench.aliases import stand_for

stand_for(__name__, "farbench_compiler.topi")

from farbench_compiler.topi import *  # noqa: E402, F403 - what type checkers see of it
