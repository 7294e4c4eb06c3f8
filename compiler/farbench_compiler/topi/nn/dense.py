"""Products of matrices, one or a batch of them, with and without a bias."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike
from farbench_compiler.te import Tensor
from farbench_compiler.te.broadcast import broadcast_shapes
from farbench_compiler.topi.arguments import check_rank, check_same, refusal
from farbench_compiler.topi.nn.convolution import OutDtype
from farbench_compiler.topi.tag import BROADCAST


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: OutDtype = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:
    """Multiply [m, k] by [k, n] (either may be given transposed) and add a bias [n]."""
    return _product("nn.matmul", tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: OutDtype = None
) -> Tensor:
    """Multiply data [m, k] by a weight [n, k] along k and add a bias [n]."""
    return _product("nn.dense", data, weight, bias, out_dtype, False, True)


def _product(
    op: str, a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: OutDtype,
    transpose_a: bool, transpose_b: bool,
) -> Tensor:  # fmt: skip
    for x in (a, b):
        check_rank(op, x, 2)
    depth, m = a.shape if transpose_a else reversed(a.shape)
    n, inner = b.shape if transpose_b else reversed(b.shape)
    check_same(op, "sizes that are summed over", depth, inner)
    wide = out_dtype or a.dtype
    k = te.reduce_axis((0, depth), name="k")

    def element(i: Expr, j: Expr) -> Expr:
        x = a(k, i) if transpose_a else a(i, k)
        y = b(j, k) if transpose_b else b(k, j)
        return te.sum(x.astype(wide) * y.astype(wide), axis=k)

    name = op.removeprefix("nn.")
    out = te.compute((m, n), element, name=f"T_{name}", tag=name)
    if bias is None:
        return out
    check_rank(op, bias, 1)
    check_same(op, "columns and bias", n, bias.shape[0])
    return te.compute(
        (m, n), lambda i, j: out(i, j) + bias(j).astype(wide), name="T_add", tag=BROADCAST
    )


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Sequence[ExprLike] | None = None,
    out_dtype: OutDtype = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """Multiply matrices [b, m, k] by [b, n, k], as `transpose_b` says; a batch of 1 serves all.

    `oshape`, where given, is the shape of the output.
    """
    op = "nn.batch_matmul"
    for x in (tensor_a, tensor_b):
        check_rank(op, x, 3)
    (batch,) = broadcast_shapes(f"topi.{op}", [tensor_a.shape[:1], tensor_b.shape[:1]])
    depth, m = tensor_a.shape[1:] if transpose_a else reversed(tensor_a.shape[1:])
    n, inner = tensor_b.shape[1:] if transpose_b else reversed(tensor_b.shape[1:])
    check_same(op, "sizes that are summed over", depth, inner)
    wide = out_dtype or tensor_a.dtype
    k = te.reduce_axis((0, depth), name="k")
    shape = (batch, m, n)
    if oshape is not None and len(oshape) != 3:
        raise refusal(op, f"oshape has {len(oshape)} sizes, the product 3")
    for size, given in zip(shape, oshape or shape, strict=True):
        check_same(op, "oshape and the product's shape", size, given)

    def element(b: Expr, i: Expr, j: Expr) -> Expr:
        x, y = _batch(tensor_a, b), _batch(tensor_b, b)
        left = tensor_a(x, k, i) if transpose_a else tensor_a(x, i, k)
        right = tensor_b(y, j, k) if transpose_b else tensor_b(y, k, j)
        return te.sum(left.astype(wide) * right.astype(wide), axis=k)

    return te.compute(shape, element, name="T_batch_matmul_NT", tag="batch_matmul")


def _batch(x: Tensor, b: Expr) -> Expr:
    size = x.shape[0]
    return te.const(0, "int64") if isinstance(size, te.IntImm) and size.value == 1 else b
