"""From the text of a module to an object: LLVM's passes and code generator for a target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import llvmlite.binding as llvm
from llvmlite.binding import newpassmanagers

from farbench_compiler.errors import LoweringError
from farbench_compiler.llvm.forking import wait_at_forks

wait_at_forks()


class Machine(Protocol):
    """What code generation asks of a target; CPU and features are known to LLVM."""

    @property
    def triple(self) -> str:
        """LLVM's triple."""

    @property
    def llvm_cpu(self) -> str:
        """LLVM's name of the CPU that it schedules for."""

    @property
    def llvm_features(self) -> str:
        """Features as `+name,-name`."""

    @property
    def llvm_abi(self) -> str:
        """Name of the ABI where the triple does not say it."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An object file and the optimised module that it was made from."""

    object: bytes
    llvm_ir: str


@dataclass(frozen=True, slots=True)
class Part:
    """The text of a module; with `find_vectors` LLVM looks for vectors and loops to unroll.

    `inlines` tells that it has functions which are to become a part of their callers.
    """

    text: str
    find_vectors: bool = True
    inlines: bool = True


def compile_parts(parts: Sequence[Part], target: Machine) -> Compiled:
    """Optimise each part by itself and emit one relocatable object; there is one part at least.

    LoweringError where LLVM refuses one, or where two define the same symbol.
    """
    machine = machine_of(target)
    # A context of its own: what a module leaves behind in a shared one is never freed.
    context = llvm.create_context()
    # Known before parsing: the size of a pointer and the alignment of a plain load follow from it.
    layout = f'target datalayout = "{machine.target_data}"\n'
    try:
        whole, *others = [llvm.parse_assembly(layout + p.text, context=context) for p in parts]
        for module, part in zip((whole, *others), parts, strict=True):
            module.verify()
            _optimise(module, machine, part)
        for other in others:
            whole.link_in(other)
    except RuntimeError as cause:
        first = str(cause).strip().splitlines()[0]
        raise LoweringError(f"LLVM does not accept the module: {first}") from cause
    with whole:
        return Compiled(machine.emit_object(whole), str(whole))


def assembly(llvm_ir: str, target: Machine) -> str:
    """Print optimised LLVM IR as the target's assembly."""
    machine = machine_of(target)
    with llvm.parse_assembly(llvm_ir, context=llvm.create_context()) as module:
        return machine.emit_assembly(module)


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, part: Part) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3 if part.find_vectors else 2)
    options.loop_vectorization = part.find_vectors
    options.slp_vectorization = part.find_vectors
    options.loop_unrolling = part.find_vectors
    options.loop_interleaving = part.find_vectors
    builder = llvm.create_pass_builder(machine, options)
    try:
        if part.find_vectors or part.inlines:
            with _closing(builder.getModulePassManager()) as passes:
                passes.run(module, builder)
        else:
            # What is vectorised already gains nothing from LLVM's passes between functions, nor
            # from those around its vectoriser: code as fast in two thirds of the time.
            with _closing(builder.getFunctionPassManager()) as steps:
                for function in module.functions:
                    if not function.is_declaration:
                        steps.run(function, builder)
    finally:
        builder.close()
        options.close()


_Passes = TypeVar("_Passes", bound=newpassmanagers.NewPassManager)


@contextmanager
def _closing(passes: _Passes) -> Iterator[_Passes]:
    """Free a pass manager at the end.

    In llvmlite 0.50 closing one frees none of its passes (80 KiB a build): its first base class
    hides the method that does.
    """
    try:
        yield passes
    finally:
        newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()


@lru_cache(maxsize=1)
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # ARM's own list scheduler lifts all loads of a register tile to its top and spills it; the
    # other targets take the order of the source already.
    llvm.set_option("farbench", "-pre-RA-sched=source")


def machine_of(target: Machine) -> llvm.TargetMachine:
    """Give LLVM's machine of a target; equal ones share it."""
    return _machine(target.triple, target.llvm_cpu, target.llvm_features, target.llvm_abi)


@lru_cache(maxsize=32)
def _machine(triple: str, cpu: str, features: str, abi: str) -> llvm.TargetMachine:
    _initialise()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default", abiname=abi
    )
