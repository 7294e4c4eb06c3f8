"""Random legal schedules of any program, drawn from a source of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Var
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower
from farbench_compiler.te.attach import Inline, Root

FACTORS = (1, 2, 3, 4, 7, 16)


def _shape_loops(rng: Random, stage: te.Stage) -> None:
    """Split, tile, fuse, reorder and mark the loops of a stage."""
    constant: set[te.IterVar] = set()
    for _ in range(rng.randint(0, 3)):
        loops = stage.leaf_iter_vars
        action = rng.choice(("split", "nparts", "fuse", "reorder", "tile"))
        at = rng.randrange(len(loops))
        if action == "split":
            constant.add(stage.split(loops[at], factor=rng.choice(FACTORS))[1])
        elif action == "nparts":
            constant.add(stage.split(loops[at], nparts=rng.choice(FACTORS))[0])
        elif at + 1 == len(loops) or isinstance(stage.op, te.ScanOp):
            continue
        elif action == "fuse" and loops[at].kind == loops[at + 1].kind:
            stage.fuse(loops[at], loops[at + 1])
        elif action == "tile":
            made = stage.tile(loops[at], loops[at + 1], rng.choice(FACTORS), rng.choice(FACTORS))
            constant |= {made[2], made[3]}
        elif action == "reorder":
            stage.reorder(*rng.sample(loops, len(loops)))
    for axis in stage.leaf_iter_vars:
        _mark(rng, stage, axis, axis in constant)


def _mark(rng: Random, stage: te.Stage, axis: te.IterVar, constant: bool) -> None:
    kinds = ["serial"] if axis.kind == "scan" else ["serial", "vectorize"]
    kinds += ["parallel"] * (axis.kind == "data") + ["unroll"] * constant
    kind = rng.choice(kinds)
    if kind != "serial":
        getattr(stage, kind)(axis)
    elif rng.randint(0, 5) == 0:
        stage.pragma(axis, "auto_unroll_max_step", rng.randint(0, 40))
    given = [t for t in stage.op.input_tensors if not t.op.input_tensors]
    if given and kind != "vectorize" and rng.randint(0, 5) == 0:
        stage.prefetch(rng.choice(given), axis, rng.randint(1, 3))


def _readers(sch: te.Schedule, stage: te.Stage) -> list[te.Stage]:
    """List who reads a stage, through inlined ones."""
    found: dict[te.Stage, None] = {}
    for output in stage.op.outputs:
        for reader in sch.readers(output):
            inlined = isinstance(reader.attach, Inline)
            found |= dict.fromkeys(_readers(sch, reader) if inlined else [reader])
    return list(found)


def _place(rng: Random, sch: te.Schedule, stage: te.Stage) -> None:
    """Inline a producer or attach it to a loop of its reader; pad its rows."""
    if not isinstance(stage.home, Root):  # in a scan, which places it
        return
    if len(stage.op.axis) > 1 and rng.randint(0, 3) == 0:
        axis = rng.choice(stage.op.axis[:-1])
        stage.storage_align(axis, rng.choice((4, 16)), 0)
    readers = _readers(sch, stage)
    choices = ["root"]
    if not stage.op.ordered_axis and not stage.is_scheduled and len(stage.op.outputs) == 1:
        choices.append("inline")
    loops = [iv for iv in readers[0].leaf_iter_vars if readers[0].kinds.get(iv) != "vectorized"]
    if len(readers) == 1 and loops:
        choices += ["at", "at"]
    choice = rng.choice(choices)
    if choice == "inline":
        stage.compute_inline()
    elif choice == "at":
        stage.compute_at(readers[0], rng.choice(loops))
        if rng.randint(0, 3) == 0:
            stage.set_scope("local")


def _rfactor(rng: Random, sch: te.Schedule, stage: te.Stage) -> None:
    """Make partial results of a reduction over a part of one of its loops."""
    axis = rng.choice(stage.op.ordered_axis)
    outer, inner = stage.split(axis, factor=rng.choice(FACTORS))
    sch.rfactor(stage.op.output(0), rng.choice((outer, inner)))


def random_schedule(
    rng: Random, outputs: Sequence[te.Tensor], inputs: Sequence[te.Tensor]
) -> te.Schedule:
    """Draw caches, partial results, loops and places for all stages."""
    sch = te.create_schedule(outputs[0].op)
    computed = [s for s in sch.stages if isinstance(s.op, te.ComputeOp)]
    for stage in computed:
        reduces = bool(stage.op.ordered_axis) and not isinstance(stage.op, te.ScanOp)
        if reduces and len(stage.op.outputs) == 1 and rng.randint(0, 4) == 0:
            _rfactor(rng, sch, stage)
    if rng.randint(0, 1):
        sch.cache_write(list(outputs) if len(outputs) > 1 else outputs[0], "global")
    if inputs and rng.randint(0, 3) == 0:
        tensor = rng.choice(inputs)
        sch.cache_read(tensor, "global", rng.choice(list(sch.readers(tensor))).op)
    computed = [s for s in sch.stages if isinstance(s.op, te.ComputeOp)]
    for stage in reversed(computed):
        if rng.randint(0, 1):
            _shape_loops(rng, stage)
        if not stage.is_output:
            _place(rng, sch, stage)
    return sch


def lowered(sch: te.Schedule, args: Sequence[te.Tensor | Var]) -> LoopFunction | None:
    """Lower and verify; None where a prefetch has nothing to fetch or local memory no bound."""
    try:
        fn = lower(sch, args, "kernel")
    except ScheduleError as refused:
        if str(refused).startswith(("prefetch:", "set_scope:")):
            return None
        raise
    verify(fn, "lowered")
    return fn
