"""The schedules of `topi.generic` shared among threads; they suit every CPU, not x86 alone."""

from __future__ import annotations

from farbench_compiler.given import check_what_is_given
from farbench_compiler.te import Schedule
from farbench_compiler.topi.generic import Outputs, scheduled


def schedule_injective(outs: Outputs) -> Schedule:
    """Schedule what computes each element by itself, shared among the threads."""
    return scheduled(outs, parallel=True)


def schedule_pool(outs: Outputs, layout: str = "NCHW") -> Schedule:
    """Schedule pooling of any layout, shared among the threads."""
    return scheduled(outs, parallel=True)


schedule_concatenate = schedule_reduce = schedule_softmax = schedule_injective
schedule_dense_nopack = schedule_dense_pack = schedule_matmul_nopack = schedule_injective
schedule_batch_matmul = schedule_injective
schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_injective
schedule_conv2d_nchw = schedule_conv2d_nhwc = schedule_conv2d_NCHWc = schedule_injective
schedule_group_conv2d_nchw = schedule_injective
schedule_depthwise_conv2d_nchw = schedule_depthwise_conv2d_NCHWc = schedule_injective
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_injective
schedule_conv2d_transpose_nchw = schedule_conv3d_transpose_ncdhw = schedule_injective
schedule_adaptive_pool = schedule_injective

check_what_is_given(globals(), [n for n in globals() if "schedule_" in n], "topi.x86")
