"""Pragmas: wishes about a loop and all that is inside it, by the names of TVM's te and one more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from farbench_compiler.errors import ScheduleError
from farbench_compiler.te.axis import IterVar, whole_number

PragmaKind = Literal[
    "auto_unroll_max_step",  # unroll loops in it while they come to at most so many steps
    "unroll_explicit",  # 0: leave unrolled loops in it to LLVM
    "parallel_launch_point",  # parallel loops in it start here
    "parallel_stride_pattern",  # threads take steps far apart in turn
    "parallel_barrier_when_finish",  # wait for all threads behind it
    "debug_skip_region",  # leave it out
    "nontemporal",  # write the output past the caches: it is larger than they are
]
KINDS: tuple[PragmaKind, ...] = get_args(PragmaKind)
_ELSEWHERE = {
    "import_c": "C code",
    "import_llvm": "LLVM code",
}


@dataclass(frozen=True, slots=True, eq=False)
class Pragma:
    """A wish about the loop of an axis; `value` is 1 where none is given."""

    axis: IterVar
    kind: PragmaKind
    value: int


def pragma_of(stage: str, axis: IterVar, name: str, value: object) -> Pragma:
    """Make a pragma; ScheduleError lists the names where this one is unknown."""
    what = f"pragma: {name!r} on axis {axis.name} of stage {stage}"
    if not isinstance(name, str):
        raise ScheduleError(f"{what} is unknown; there are {', '.join(KINDS)}")
    if name in _ELSEWHERE:
        raise ScheduleError(
            f"{what} would link {_ELSEWHERE[name]} of another compiler, which libraries here do "
            "not hold; write it as a te.extern or a te.decl_tensor_intrin with tir.ir_builder"
        )
    kind = next((known for known in KINDS if known == name), None)
    if kind is None:
        raise ScheduleError(f"{what} is unknown; there are {', '.join(KINDS)}")
    number = 1 if value is None else whole_number(value)
    if number is None:
        raise ScheduleError(f"{what} has the value {value!r}; give an integer")
    if number < 0:
        raise ScheduleError(f"{what} has the negative value {number}")
    return Pragma(axis, kind, number)
