"""What the inner loop of matmul costs on CPUs that are not here, as llvm-mca's models have it.

    python benchmarks/static_cost.py [--json]

For each target: the multiply-adds of one step of the loop, the cycles that the model gives it, and
their quotient beside what the CPU's pipes could do. Needs llvm-mca (Debian: `apt install llvm`).
A model knows no caches: it says whether the code keeps the pipes busy, not how long a matmul takes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from _common import ROOT, emit, note, parse_arguments

sys.path.insert(0, str(ROOT))

from farbench_compiler import ops  # noqa: E402
from farbench_compiler.build import build  # noqa: E402
from farbench_compiler.target import Target  # noqa: E402
from tests.compiler.ops.assembly import Loop, inner_loops  # noqa: E402

SIZE = 960  # a multiple of every tile's rows and columns
RUN_TIMEOUT_S = 60


@dataclass(frozen=True)
class Model:
    """A CPU that llvm-mca has a model of, and the vector multiply-adds it can start in a cycle."""

    cpu: str
    most_per_cycle: float


# A57 and A72 start one multiply-add of four floats a cycle, an A53 one every second cycle.
MODELS: Mapping[str, Model] = {
    "x86-64-v4": Model("skylake-avx512", 2),
    "x86-64-v3": Model("haswell", 2),
    "x86-64": Model("sandybridge", 1),  # one adder beside one multiplier
    "pi4": Model("cortex-a72", 1),
    "aarch64": Model("cortex-a53", 0.5),
    "pi4-32": Model("cortex-a57", 1),
    "visionfive2": Model("sifive-u74", 1),
}


@dataclass(frozen=True)
class Cost:
    """One step of a loop: its multiply-adds, its instructions, and its cycles by a model."""

    model: str
    sums: int
    instructions: int
    cycles: float
    sums_per_cycle: float
    share_of_most: float


def tool() -> str:
    """Find the newest llvm-mca; SystemExit says how to get one."""
    names = ["llvm-mca", *(f"llvm-mca-{version}" for version in range(14, 30))]
    found = [name for name in names if shutil.which(name)]
    if not found:
        raise SystemExit("static_cost: llvm-mca is not installed: apt install llvm")
    return found[-1]


def inner_loop(target: str) -> Loop:
    """Build a matmul for a target and give its loop with the most multiply-adds."""
    schedule, args = ops.matmul(SIZE, SIZE, SIZE, target=target)
    text = build(schedule, args, target=target).get_source("asm")
    return inner_loops(text, Target.parse(target).arch)[0]


def cycles(loop: Loop, target: Target, cpu: str, mca: str) -> float:
    """Ask the model for the cycles of one step, the mean of a hundred."""
    body = "\n".join(_plain(line) for line in loop.instructions[:-1])  # the branch is free
    features = {"armv7": "+neon,+vfp4,+thumb2", "aarch64": "+v8.2a"}.get(target.arch, "")
    command = [mca, f"-mtriple={target.triple}", f"-mcpu={cpu}", "-iterations=100"]
    done = subprocess.run(
        [*command, *([f"-mattr={features}"] if features else [])],
        input=body, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if found is None:
        raise SystemExit(f"static_cost: {mca} on {cpu}: {done.stderr.strip().splitlines()[0]}")
    return int(found[1]) / 100


def _plain(line: str) -> str:
    """Drop labels that an instruction refers to: only its kind matters here."""
    return re.sub(r"\.L\w+", "0", line)


def cost(target: str, mca: str) -> Cost:
    """Read one target's loop."""
    loop, model = inner_loop(target), MODELS[target]
    sums, taken = len(loop.sums), cycles(loop, Target.parse(target), model.cpu, mca)
    rate = sums / taken
    return Cost(model.cpu, sums, len(loop.instructions), taken, rate, rate / model.most_per_cycle)


def main() -> None:
    """Print the table, or JSON."""
    arguments = parse_arguments(__doc__.partition("\n")[0])
    mca = tool()
    found = {target: cost(target, mca) for target in MODELS}
    for target, one in found.items():
        note(
            f"{target:12} {one.model:15} {one.sums:3} sums, {one.cycles:6.1f} cycles: "
            f"{one.sums_per_cycle:.2f} a cycle, {one.share_of_most:.0%} of the most"
        )
    emit({target: asdict(one) for target, one in found.items()}, as_json=arguments.json)


if __name__ == "__main__":
    main()
