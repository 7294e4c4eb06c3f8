"""`import farbench.te`: tensor expressions and their schedules, which are the compiler's own."""

from farbench.aliases import stand_for

stand_for(__name__, "farbench_compiler.te")

from farbench_compiler.te import *  # noqa: E402, F403 - what type checkers see of it
