"""One program serves every size: joined, cut, sorted and placed with symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.ir import interp
from farbench_compiler.lower import lower

from .evaluate import Array, numbers

Make = Callable[[te.Tensor, te.Tensor], te.Tensor]
CASES: dict[str, tuple[Make, Callable[[Array, Array], Any]]] = {
    "concatenate": (lambda a, b: topi.concatenate([a, b], 1), lambda x, y: np.hstack([x, y])),
    "stack": (lambda a, b: topi.stack([a, b], 1), lambda x, y: np.stack([x, y], 1)),
    "split": (lambda a, _: topi.split(a, [2], 1)[1], lambda x, _: x[:, 2:]),
    "strided_slice": (
        lambda a, _: topi.strided_slice(a, [0, -1], [-1, 0], [1, -2]), lambda x, _: x[:-1, -1:0:-2]
    ),
    "sort": (lambda a, _: topi.sort(a, 0), lambda x, _: np.sort(x, 0)),
    "scatter_elements": (
        lambda a, b: topi.scatter_elements(a, topi.full(b.shape, "int32", 1), b, 1, "max"),
        lambda x, y: np.hstack([x[:, :1], np.maximum(x[:, 1:2], y.max(1)[:, None]), x[:, 2:]]),
    ),
    "cumsum": (lambda a, _: topi.cumsum(a), lambda x, _: np.cumsum(x)),
    "argmax": (lambda a, _: topi.argmax(a), lambda x, _: x.argmax()),
    "tile": (lambda a, _: topi.tile(a, (2, 3)), lambda x, _: np.tile(x, (2, 3))),
    "trilu": (lambda a, _: topi.trilu(a, 0, True), lambda x, _: np.triu(x)),
    "einsum": (lambda a, b: topi.einsum("ij,kj->ik", a, b), lambda x, y: x @ y.T),
    "layout_transform": (lambda a, _: topi.layout_transform(a, "NC", "CN"), lambda x, _: x.T),
    "reshape": (lambda a, _: topi.reshape(a, (-1,)), lambda x, _: x.reshape(-1)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_numpy_does(case: tuple[Make, Callable[[Array, Array], Any]]) -> None:
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n, m), name="A"), te.placeholder((n, m), name="B")
    out = case[0](a, b)
    schedule = te.create_schedule(out.op)
    args = [t for t in (a, b) if t in schedule]
    function = lower(schedule, [*args, out])
    for shape in ((3, 5), (4, 2)):
        x, y = numbers(*shape), numbers(*shape, seed=1)
        wanted = np.asarray(case[1](x, y))
        got = np.full(wanted.shape, 77, str(out.dtype))
        interp.run(function, [*([x, y][: len(args)]), got])
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
