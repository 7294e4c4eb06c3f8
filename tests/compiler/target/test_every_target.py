"""Code for every CPU and every feature of the tables: made, or refused by a typed error."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from farbench_compiler import ops, te
from farbench_compiler.build import build
from farbench_compiler.errors import CompilerError
from farbench_compiler.target.table import ARCHES, table
from farbench_compiler.te import Schedule, Tensor

TRIPLES = {arch: f"{arch}-linux-gnu{'eabihf' if arch == 'armv7' else ''}" for arch in ARCHES}
Program = Callable[[str], tuple[Schedule, list[Tensor]]]


def functions(target: str) -> tuple[Schedule, list[Tensor]]:
    """Doubles of symbolic extent in vectors and threads, through functions written here."""
    n = te.var("n")
    x = te.placeholder((n,), "float64", name="X")
    y = te.compute((n,), lambda i: te.pow(x[i], te.exp(x[i])), name="Y")
    schedule = te.create_schedule(y.op)
    outer, inner = schedule[y].split(y.op.axis[0], factor=8)
    schedule[y].vectorize(inner)
    schedule[y].parallel(outer)
    return schedule, [x, y]


def product(target: str) -> tuple[Schedule, list[Tensor]]:
    """A product of sizes that divide nothing."""
    return ops.matmul(37, 41, 13, "float32", target)


def halves(target: str) -> tuple[Schedule, list[Tensor]]:
    """A sum of halves."""
    x = te.placeholder((33,), "float16", name="X")
    k = te.reduce_axis((0, 33), name="k")
    y = te.compute((1,), lambda i: te.sum(x[k], axis=k), name="Y")
    return te.create_schedule(y.op), [x, y]


PROGRAMS: tuple[Program, ...] = (functions, product, halves)


def status_of(target: str) -> int:
    """Build for a target in a child, whose end says whether LLVM stood it."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 0
        for program in PROGRAMS:
            try:
                build(*program(target), target, cache=False)
            except CompilerError:
                status = 0
            except BaseException:
                status = 1
                break
        os._exit(status)
    return os.waitpid(child, 0)[1]


@pytest.mark.linux
@pytest.mark.parametrize("wish", ["+zvl256b", "+soft-float", "+mve", "+reserve-x10"])
def test_features_that_llvm_cannot_stand(wish: str) -> None:
    for arch, triple in TRIPLES.items():
        if wish[1:] in table(arch).features:
            assert status_of(f"llvm -mtriple={triple} -mattr={wish}") == 0


@pytest.mark.linux
@pytest.mark.parametrize(
    ("arch", "cpu"), [("aarch64", "ampere1b"), ("aarch64", "oryon-1"), ("riscv64", "andes-ax45mpv")]
)
def test_cpus_that_llvm_cannot_schedule(arch: str, cpu: str) -> None:
    assert status_of(f"llvm -mtriple={TRIPLES[arch]} -mcpu={cpu}") == 0


@pytest.mark.slow
@pytest.mark.linux
@pytest.mark.deadline(3600)
@pytest.mark.parametrize("arch", ARCHES)
def test_every_cpu_and_every_feature(arch: str) -> None:
    flags = [f"-mcpu={cpu}" for cpu in table(arch).cpus]
    flags += [f"-mattr={sign}{name}" for name in table(arch).features for sign in "+-"]
    ended = [flag for flag in flags if status_of(f"llvm -mtriple={TRIPLES[arch]} {flag}")]
    assert not ended
