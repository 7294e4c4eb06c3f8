"""Operators of neural networks on whole tensors: convolutions, pooling, normalisation and more."""

from farbench_compiler.given import check_what_is_given
from farbench_compiler.topi.nn.activation import leaky_relu, prelu, relu, softplus
from farbench_compiler.topi.nn.blocks import (
    batch_to_space_nd,
    depth_to_space,
    flatten,
    space_to_batch_nd,
    space_to_depth,
)
from farbench_compiler.topi.nn.convolution import (
    conv,
    conv1d,
    conv1d_ncw,
    conv1d_nwc,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    group_conv1d_ncw,
    group_conv1d_nwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from farbench_compiler.topi.nn.dense import batch_matmul, dense, matmul
from farbench_compiler.topi.nn.depthwise import depthwise_conv2d_nchw, depthwise_conv2d_nhwc
from farbench_compiler.topi.nn.mapping import (
    bias_add,
    scale_shift_nchw,
    scale_shift_nchwc,
    scale_shift_nhwc,
)
from farbench_compiler.topi.nn.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    l2_normalize,
    layer_norm,
    lrn,
    rms_norm,
)
from farbench_compiler.topi.nn.packed_convolution import conv2d_NCHWc
from farbench_compiler.topi.nn.padding import dilate, mirror_pad, pad
from farbench_compiler.topi.nn.pooling import (
    adaptive_pool,
    adaptive_pool1d,
    adaptive_pool3d,
    global_pool,
    pool,
    pool1d,
    pool2d,
    pool3d,
)
from farbench_compiler.topi.nn.softmax import fast_softmax, log_softmax, softmax
from farbench_compiler.topi.nn.transposed_convolution import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
)
from farbench_compiler.topi.nn.upsampling import upsampling, upsampling3d

__all__ = [
    "adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "batch_matmul", "batch_norm",
    "batch_to_space_nd", "bias_add", "conv", "conv1d", "conv1d_ncw", "conv1d_nwc",
    "conv1d_transpose_ncw", "conv2d", "conv2d_NCHWc", "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc",
    "conv2d_transpose_nchw", "conv3d_ncdhw", "conv3d_ndhwc", "conv3d_transpose_ncdhw", "dense",
    "depth_to_space", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "dilate", "fast_softmax",
    "flatten", "global_pool", "group_conv1d_ncw", "group_conv1d_nwc",
    "group_conv1d_transpose_ncw", "group_conv2d_nchw", "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw", "group_norm", "instance_norm", "l2_normalize", "layer_norm",
    "leaky_relu", "log_softmax", "lrn", "matmul", "mirror_pad", "pad", "pool", "pool1d", "pool2d",
    "pool3d", "prelu", "relu", "rms_norm", "scale_shift_nchw", "scale_shift_nchwc",
    "scale_shift_nhwc", "softmax", "softplus", "space_to_batch_nd", "space_to_depth",
    "upsampling", "upsampling3d",
]  # fmt: skip

check_what_is_given(globals(), __all__, "topi.nn")
