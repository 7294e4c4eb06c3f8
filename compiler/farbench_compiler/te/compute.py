"""What a tensor program is written with: sizes, placeholders, constants and computations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from farbench_compiler.errors import ScheduleError, ValueTypeError
from farbench_compiler.ir import expr as ir
from farbench_compiler.ir.dtypes import FLOAT32, INT32, INT64, DType
from farbench_compiler.ir.dtypes import dtype as as_dtype
from farbench_compiler.ir.expr import Expr, ExprLike, IntImm, Scalar, Var, as_expr
from farbench_compiler.te.axis import IterVar, Range, as_index
from farbench_compiler.te.operation import ComputeOp, ConstantOp, PlaceholderOp
from farbench_compiler.te.tags import current_tag
from farbench_compiler.te.tensor import Tensor

Shape = Sequence[ExprLike] | ExprLike
Body = Callable[..., ExprLike | Sequence[ExprLike]]


# A size or parameter that was given no name; several may be, in one program.
UNNAMED = "tindex"


def var(name: str = UNNAMED, dtype: str | DType = INT64) -> Var:
    """Make a size (int64, found from the shapes of the arguments) or a scalar parameter."""
    return Var(name, as_dtype(dtype))


def size_var(name: str = "size", dtype: str | DType = INT64) -> Var:
    """Make a size; sizes are never negative."""
    return var(name, dtype)


def const(value: Scalar, dtype: str | DType | None = None) -> Expr:
    """Make a constant: of `dtype`, else bool, int32 or float32 by the Python type."""
    return ir.const(value, dtype) if dtype is not None else _plain(value)


def _plain(value: ExprLike) -> Expr:
    x = as_expr(value)
    # A Python int in a body means what it means to te's users: int32, not an index.
    if not isinstance(value, Expr) and isinstance(x, IntImm) and x.dtype == INT64:
        return ir.const(x.value, INT32) if abs(x.value) < 1 << 31 else x
    return x


def _shape(name: str, shape: Shape) -> tuple[Expr, ...]:
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple(as_index(n) for n in given)
    for i, n in enumerate(sizes):
        if isinstance(n, IntImm) and n.value < 0:
            raise ScheduleError(f"{name}: dimension {i} has the negative size {n.value}")
    return sizes


def placeholder(shape: Shape, dtype: str | DType = FLOAT32, name: str = "placeholder") -> Tensor:
    """Make a tensor that the caller of the function gives."""
    return PlaceholderOp(name, _shape(name, shape), as_dtype(dtype)).output(0)


def constant(array: npt.ArrayLike, name: str = "constant") -> Tensor:
    """Make a tensor of an array's elements, which become part of the library: no argument."""
    if isinstance(array, (Expr, Tensor)):
        raise ValueTypeError(f"constant {name}: give an array of numbers, not {array!r}")
    given = np.ascontiguousarray(array)
    if given.dtype.byteorder == ">":
        given = given.astype(given.dtype.newbyteorder("<"))
    shape = _shape(name, [int(n) for n in np.shape(array)])
    return ConstantOp(name, shape, as_dtype(given.dtype.name), given.tobytes()).output(0)


def compute(
    shape: Shape,
    fcompute: Body,
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor:
    """Make the tensor whose element at (i, j, ...) is `fcompute(i, j, ...)`.

    The axes take the names of the function's parameters. A function that gives several values
    makes an operation of several outputs: then this gives all of them, as `compute_all` does.
    """
    made = compute_all(shape, fcompute, name, tag, attrs, varargs_names)
    # The type says one tensor, which it nearly always is; compute_all is typed for several.
    return made[0] if len(made) == 1 else made  # type: ignore[return-value]


def compute_all(
    shape: Shape,
    fcompute: Body,
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> tuple[Tensor, ...]:
    """Make one tensor for each value that `fcompute(i, j, ...)` gives."""
    sizes = _shape(name, shape)
    names = _axis_names(name, fcompute, len(sizes), varargs_names)
    zero = ir.const(0)
    axes = tuple(IterVar(n, dom=Range(zero, size)) for n, size in zip(names, sizes, strict=True))
    value = fcompute(*axes)
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not values:
        raise ScheduleError(f"compute {name}: the function gives no value")
    try:
        body = tuple(_plain(v) for v in values)
    except TypeError as error:
        raise ScheduleError(f"compute {name}: {error}") from error
    return ComputeOp(name, axes, body, tag or current_tag(), attrs or {}).outputs


def _axis_names(
    name: str, fcompute: Body, ndim: int, varargs_names: Sequence[str] | None
) -> tuple[str, ...]:
    """Name the axes after the parameters of the function; `*args` stand for all that remain."""
    kinds = inspect.Parameter
    parameters = list(inspect.signature(fcompute).parameters.values())
    plain = [
        p.name
        for p in parameters
        if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        and p.default is kinds.empty
    ]
    variadic = [p for p in parameters if p.kind is kinds.VAR_POSITIONAL]
    rest = ndim - len(plain)
    if rest < 0 or (rest > 0 and not variadic):
        raise ScheduleError(
            f"compute {name}: the function takes {len(plain)} indices, the shape has {ndim}"
        )
    if varargs_names is not None and len(varargs_names) != rest:
        raise ScheduleError(f"compute {name}: varargs_names must hold {rest} names")
    return (*plain, *(varargs_names or [f"i{k}" for k in range(len(plain), ndim)]))
