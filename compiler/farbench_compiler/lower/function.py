"""Lower a schedule to a function of the loop IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from farbench_compiler.depth import of_any_depth
from farbench_compiler.errors import LoweringError
from farbench_compiler.ir.expr import Buffer, Cast, ConstBuffer, Expr, Var
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.stmt import For, Let, LoopFunction, Stmt
from farbench_compiler.ir.visit import free_vars, walk
from farbench_compiler.lower.alignment import check_aligned
from farbench_compiler.lower.bounds import infer_bounds
from farbench_compiler.lower.buffering import Ring, only_new, rings_of
from farbench_compiler.lower.emit import Emitter
from farbench_compiler.lower.inline import inline_stages
from farbench_compiler.lower.inside import check_inside
from farbench_compiler.lower.memory import Memory, argument, embedded, temporary
from farbench_compiler.lower.nest import Nest
from farbench_compiler.lower.partition import partition
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.scan import held_by
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.operation import ConstantOp, PlaceholderOp
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor

Arg = Tensor | Var


@of_any_depth
def lower(sch: Schedule, args: Sequence[Arg], name: str = "main") -> LoopFunction:
    """Turn a schedule into loops over the given arguments, tensors and scalars in calling order.

    ScheduleError where the schedule is not legal, LoweringError where the arguments do not fit.
    """
    check_types(sch, args, name)
    args = [sch.as_it_lies(arg) if isinstance(arg, Tensor) else arg for arg in args]
    tensors = _check_args(sch, args)
    placement = Placement(inline_stages(sch))
    placement.check()
    held = held_by(placement, tensors)
    check_aligned(placement, tensors)
    _check_given(sch, placement, (*tensors, *held))
    symbols = _symbols(tensors)
    variables = Variables(symbols)
    nests = infer_bounds(placement, set(tensors), variables)
    rings = rings_of(placement, nests, variables)
    nests |= {stage: only_new(nests[stage], *ring) for stage, ring in rings.items()}
    memory = {**_memory(tensors, nests, held, rings), **_embedded(placement)}
    body = Emitter(placement, nests, memory, variables).root()
    sizes = {size: variables.ranges[size] for size in symbols}
    body = simplify(partition(simplify(body, sizes), sizes), sizes)
    given = tuple(_argument(a, memory) for a in args)
    buffers = (place.buffer for place in memory.values())
    constants = tuple(b for b in buffers if isinstance(b, ConstBuffer))
    function = LoopFunction(name, given, symbols, body, constants)
    _check_sizes(function, [a for a in args if isinstance(a, Var)])
    check_inside(function)
    return function


def _argument(arg: Arg, memory: dict[Tensor, Memory]) -> Buffer | Var:
    return memory[arg].buffer if isinstance(arg, Tensor) else arg


def check_types(sch: object, args: object, name: object) -> None:
    """Raise LoweringError where something else than a schedule, a list and a name is given."""
    if not isinstance(sch, Schedule):
        raise LoweringError(f"give a schedule first, as te.create_schedule makes it, not {sch!r}")
    if isinstance(args, (str, Tensor, Var)) or not isinstance(args, Sequence):
        raise LoweringError(f"give the arguments as a list of tensors, not {args!r}")
    if not isinstance(name, str):
        raise LoweringError(f"the name of a function is a text, not {name!r}")


def _check_args(sch: Schedule, args: Sequence[Arg]) -> tuple[Tensor, ...]:
    """Give the tensors among the arguments."""
    for i, arg in enumerate(args):
        if not isinstance(arg, (Tensor, Var)):
            raise LoweringError(f"argument {i} is {arg!r}; give tensors and te.var alone")
        if any(arg is other for other in args[:i]):
            raise LoweringError(f"argument {i}, {arg.name}, is given twice")
        if isinstance(arg, Tensor) and isinstance(arg.op, ConstantOp):
            raise LoweringError(f"argument {i}, {arg.name}, is a constant; leave it out")
        # One that nothing reads, or that is inlined, is taken and left alone, as TVM does.
        if isinstance(arg, Tensor) and arg not in sch and not isinstance(arg.op, PlaceholderOp):
            raise LoweringError(f"argument {i}, {arg.name}, is not part of the schedule")
    return tuple(arg for arg in args if isinstance(arg, Tensor))


def _check_given(sch: Schedule, placement: Placement, tensors: Sequence[Tensor]) -> None:
    """Raise LoweringError where a tensor that must come from the caller is not an argument."""
    made = {t for op in placement.ops.values() for t in op.outputs}
    for op in placement.ops.values():
        for tensor in op.input_tensors:
            held = isinstance(tensor.op, ConstantOp)
            if tensor not in made and tensor not in tensors and not held:
                raise LoweringError(
                    f"{tensor.name} is read by {op.name} but is not among the arguments; add it"
                )
    for tensor in (t for op in sch.outputs for t in op.outputs):
        if tensor not in tensors:
            raise LoweringError(f"output {tensor.name} is not among the arguments; add it")


def _symbols(tensors: Sequence[Tensor]) -> tuple[Var, ...]:
    """List the sizes that are found from the shapes, in order of their first appearance."""
    sizes = (_size_var(n) for tensor in tensors for n in tensor.shape)
    return tuple(dict.fromkeys(size for size in sizes if size is not None))


def _size_var(size: Expr) -> Var | None:
    inner = size.value if isinstance(size, Cast) else size
    return inner if isinstance(inner, Var) else None


def _nontemporal(nest: Nest | None) -> bool:
    return nest is not None and any(p.kind == "nontemporal" for p in nest.stage.pragmas)


def _memory(
    tensors: Sequence[Tensor],
    nests: dict[Stage, Nest],
    held: Mapping[Tensor, Tensor],
    rings: Mapping[Stage, tuple[Ring, Var]],
) -> dict[Tensor, Memory]:
    made = {t: nest for nest in nests.values() for t in nest.op.outputs}
    memory = {t: argument(t, t in made, _nontemporal(made.get(t))) for t in tensors}
    for tensor, nest in made.items():
        if tensor not in memory and tensor not in held:
            ring = rings.get(nest.stage)
            memory[tensor] = temporary(tensor, nest, None if ring is None else ring[0])
    memory.update((tensor, memory[of]) for tensor, of in held.items())
    return memory


def _embedded(placement: Placement) -> dict[Tensor, Memory]:
    """Give the memory of the constants that some stage reads."""
    found = {}
    for op in placement.ops.values():
        for tensor in op.input_tensors:
            if isinstance(tensor.op, ConstantOp):
                found[tensor] = embedded(tensor, tensor.op.data)
    return found


def _check_sizes(function: LoopFunction, scalars: Sequence[Var]) -> None:
    """Raise LoweringError for a variable that the caller gives in no way."""
    known = {*function.symbols, *scalars}
    shapes = (n for buffer in function.buffers for n in buffer.shape)
    for var in (*_free(function.body), *(v for n in shapes for v in free_vars(n))):
        if var not in known:
            raise LoweringError(
                f"{var.name} is neither a dimension of an argument nor an argument; add it"
            )


def _free(body: Stmt) -> Iterator[Var]:
    nodes = list(walk(body))
    bound = {n.var for n in nodes if isinstance(n, (For, Let))}
    return (n for n in nodes if isinstance(n, Var) and n not in bound)
