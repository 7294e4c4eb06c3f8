"""Schedules for every CPU under the names that programs of topi call.

    with target:
        schedule = topi.generic.schedule_injective(outputs)

One schedule serves all of them: it looks at the stages and not at the name. It is made for the
current target, or for this machine where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler.given import check_what_is_given
from farbench_compiler.ops.default import default_schedule as _default
from farbench_compiler.target import Target
from farbench_compiler.te import Schedule, Tensor

Outputs = Tensor | Sequence[Tensor]


def scheduled(outs: Outputs, *, parallel: bool) -> Schedule:
    """Give the default schedule of what computes the outputs, for the current target."""
    return _default(outs, Target.current() or "native", parallel=parallel)


def default_schedule(outs: Outputs, auto_inline: bool = True) -> Schedule:
    """Schedule any program, on one thread; `auto_inline` changes nothing."""
    return scheduled(outs, parallel=False)


def schedule_injective(outs: Outputs) -> Schedule:
    """Schedule what computes each element by itself, on one thread."""
    return scheduled(outs, parallel=False)


def schedule_pool(outs: Outputs, layout: str = "NCHW") -> Schedule:
    """Schedule pooling of any layout, on one thread."""
    return scheduled(outs, parallel=False)


schedule_elemwise = schedule_broadcast = schedule_concatenate = schedule_injective
schedule_extern = schedule_reduce = schedule_injective
schedule_softmax = schedule_dense = schedule_matmul = schedule_batch_matmul = schedule_injective
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_injective
schedule_group_conv1d_ncw = schedule_group_conv1d_nwc = schedule_injective
schedule_conv2d_nchw = schedule_conv2d_nhwc = schedule_conv2d_hwcn = schedule_injective
schedule_conv2d_NCHWc = schedule_injective
schedule_group_conv2d_nchw = schedule_group_conv2d_nhwc = schedule_injective
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_nhwc = schedule_injective
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_injective
schedule_conv1d_transpose_ncw = schedule_conv2d_transpose_nchw = schedule_injective
schedule_conv3d_transpose_ncdhw = schedule_injective
schedule_adaptive_pool = schedule_lrn = schedule_l2_normalize = schedule_injective
schedule_argsort = schedule_topk = schedule_sort = schedule_scatter = schedule_injective

check_what_is_given(globals(), [n for n in globals() if "schedule_" in n], "topi.generic")
