"""Any computation on whole tensors as a program: sizes in, schedule and arguments out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ops.default import default_schedule
from farbench_compiler.target import Target
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

_NAMES = "ABCDEFGH"


def program(
    compute: Callable[..., Tensor | Sequence[Tensor]],
    *shapes: Sequence[int],
    dtype: str | Sequence[str] = "float32",
    target: str | Target = "native",
    parallel: bool = False,
    **options: object,
) -> tuple[Schedule, list[Tensor]]:
    """Give `compute` of tensors of these shapes, as in `program(topi.sum, (64, 1000), axis=1)`.

    `dtype` is that of all or of each; `options` go to `compute`. Arguments: the tensors, then what
    is computed of them. The schedule is the default one; ScheduleError where nothing is computed.
    """
    kinds = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    if len(kinds) != len(shapes):
        raise ScheduleError(f"program: {len(kinds)} dtypes for {len(shapes)} shapes; give each one")
    inputs = [
        te.placeholder(tuple(shape), kind, name=_NAMES[i] if i < len(_NAMES) else f"A{i}")
        for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
    ]
    found = compute(*inputs, **options)
    several = [found] if isinstance(found, Tensor) else list(found)
    made = [tensor for tensor in several if not any(tensor is given for given in inputs)]
    if not made:
        raise ScheduleError("program: the function gives its arguments back; nothing to compute")
    return default_schedule(made, target, parallel=parallel), [*inputs, *made]
