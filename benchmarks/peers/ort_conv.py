"""onnxruntime on one conv2d at a time: NCHW in and out, constant weights, IO binding."""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from _ort import serve_ort, session, time_bound


def model(
    height: int, channels: int, filters: int, kernel: int, stride: int, groups: int
) -> ort.InferenceSession:
    """Build a model of one convolution (batch 1, padding kernel // 2) with seeded weights."""
    pad = kernel // 2
    out = (height + 2 * pad - kernel) // stride + 1
    weights = np.random.default_rng(1).standard_normal(
        (filters, channels // groups, kernel, kernel), np.float32
    )
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4, group=groups
    )
    graph = helper.make_graph(
        [node],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, height, height))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, filters, out, out))],
        [numpy_helper.from_array(weights, "w")],
    )
    return session(graph, 17)


_ready: dict[tuple[int, ...], tuple[ort.InferenceSession, ort.IOBinding]] = {}


def conv(request: dict) -> dict:
    """Time `samples` runs of the layer {height, channels, filters, kernel, stride, groups}."""
    names = ("height", "channels", "filters", "kernel", "stride", "groups")
    layer = tuple(int(request[name]) for name in names)
    if layer not in _ready:
        made = model(*layer)
        shape = (1, layer[1], layer[0], layer[0])
        binding = made.io_binding()
        binding.bind_cpu_input("x", np.random.default_rng(0).standard_normal(shape, np.float32))
        binding.bind_output("y")
        made.run_with_iobinding(binding)
        _ready[layer] = made, binding
    made, binding = _ready[layer]
    return time_bound(made, binding, request)


if __name__ == "__main__":
    serve_ort(conv=conv)
