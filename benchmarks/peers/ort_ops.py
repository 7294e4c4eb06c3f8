"""onnxruntime on softmax, layer norm and gelu: float32 arrays, IO binding."""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from _ort import serve_ort, session, time_bound

NODES = {
    "softmax": ("Softmax", ["x"], {"axis": -1}),
    "layer_norm": ("LayerNormalization", ["x", "gamma", "beta"], {"axis": -1, "epsilon": 1e-5}),
    "gelu": ("Gelu", ["x"], {}),
}


def model(op: str, shape: tuple[int, ...]) -> ort.InferenceSession:
    """Build a model of one operator; scale and offset of layer norm are seeded constants."""
    kind, inputs, attributes = NODES[op]
    random = np.random.default_rng(1)
    constants = [
        numpy_helper.from_array(random.standard_normal(shape[-1:], np.float32), name)
        for name in inputs[1:]
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, ["y"], **attributes)],
        op,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        constants,
    )
    return session(graph, 20)


_ready: dict[tuple[str, tuple[int, ...]], tuple[ort.InferenceSession, ort.IOBinding]] = {}


def run(request: dict) -> dict:
    """Time `samples` runs of the operator {op, shape}."""
    op, shape = str(request["op"]), tuple(int(extent) for extent in request["shape"])
    if (op, shape) not in _ready:
        made = model(op, shape)
        binding = made.io_binding()
        x = ort.OrtValue.ortvalue_from_numpy(
            np.random.default_rng(0).standard_normal(shape, np.float32)
        )
        y = ort.OrtValue.ortvalue_from_numpy(np.empty(shape, np.float32))
        binding.bind_ortvalue_input("x", x)
        binding.bind_ortvalue_output("y", y)
        made.run_with_iobinding(binding)
        _ready[op, shape] = made, binding
    made, binding = _ready[op, shape]
    return time_bound(made, binding, request)


if __name__ == "__main__":
    serve_ort(run=run)
