"""What the peers of onnxruntime share: a model of one node on the threads that the asker gives."""

import os

import onnx
import onnxruntime as ort
from onnx import helper

from _lines import serve, timed

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def session(graph: onnx.GraphProto, opset: int) -> ort.InferenceSession:
    """Make a session of a graph."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def time_bound(made: ort.InferenceSession, binding: ort.IOBinding, request: dict) -> dict:
    """Time `samples` of `calls` runs each, inputs and outputs bound."""
    samples, calls = int(request.get("samples", 5)), int(request.get("calls", 1))
    return timed(lambda: made.run_with_iobinding(binding), samples, calls)


def serve_ort(**handlers) -> None:
    """Answer requests until the input ends."""
    serve({"peer": "onnxruntime", "version": ort.__version__, "threads": THREADS}, handlers)
