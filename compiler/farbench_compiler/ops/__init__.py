"""The operator library: tensor programs with a schedule that is fast without tuning.

Every operator gives `(schedule, arguments)`, ready for `build`. The schedules follow the target's
vector width and number of registers; sizes are Python integers.
"""

from farbench_compiler.given import check_what_is_given
from farbench_compiler.ops.activation import gelu, sigmoid
from farbench_compiler.ops.batch_matmul import batch_matmul, dense
from farbench_compiler.ops.conv2d import conv2d
from farbench_compiler.ops.default import default_schedule
from farbench_compiler.ops.depthwise import depthwise_conv2d
from farbench_compiler.ops.elementwise import vector_add
from farbench_compiler.ops.matmul import matmul
from farbench_compiler.ops.normalization import layer_norm
from farbench_compiler.ops.program import program
from farbench_compiler.ops.softmax import log_softmax, softmax

__all__ = [
    "batch_matmul",
    "conv2d",
    "default_schedule",
    "dense",
    "depthwise_conv2d",
    "gelu",
    "layer_norm",
    "log_softmax",
    "matmul",
    "program",
    "sigmoid",
    "softmax",
    "vector_add",
]

check_what_is_given(globals(), __all__, "ops")
