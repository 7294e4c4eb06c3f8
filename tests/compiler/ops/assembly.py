"""Read the inner loops of a target's assembly: multiply-adds, their registers, and spills."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Architecture -> (mnemonics that add to a sum, which operand names the sum).
_ADDS = {
    "x86_64": (r"vfn?madd\d+[ps][sd]|v?add[ps][sd]", -1),
    "aarch64": (r"fmla|fmadd", 0),
    "armv7": (r"vmla\.f32|vfma\.f32|vadd\.f32", 0),
    "riscv64": (r"fmadd\.s|vfmacc\.vf", 0),
}
_BRANCH = re.compile(r"(?:j\w+|b[.\w]*|cbn?z|tbn?z)\s")
_STACK = re.compile(r"\[sp\b|\(%rsp\)|\(sp\)")
# Instructions that move numbers, not addresses, between the stack and registers.
_MOVES = {
    "x86_64": re.compile(r".*%[xyz]mm"),
    "aarch64": re.compile(r"(?:ld|st)\w+\s+\{?[qdsv]\d"),
    "armv7": re.compile(r"v(?:ld|st)"),
    "riscv64": re.compile(r"f[ls][wd]\s|v[ls]\w+\.v\s"),
}


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its instructions on one architecture."""

    arch: str
    instructions: tuple[str, ...]

    @property
    def sums(self) -> list[str]:
        """The register of the sum of each multiply-add."""
        mnemonic, operand = _ADDS[self.arch]
        found = []
        for line in self.instructions:
            name, _, rest = line.partition(" ")
            if re.fullmatch(mnemonic, name):
                found.append(re.split(r",\s*", rest)[operand].split(".")[0])
        return found

    @property
    def spills(self) -> list[str]:
        """Instructions that keep numbers on the stack."""
        moves = _MOVES[self.arch]
        return [i for i in self.instructions if _STACK.search(i) and moves.match(i)]


def inner_loops(assembly: str, arch: str) -> list[Loop]:
    """List the loops without a loop inside, those with the most multiply-adds first."""
    lines = [_bare(line) for line in assembly.splitlines()]
    lines = [line for line in lines if line and (line.endswith(":") or not line.startswith("."))]
    places: dict[str, int] = {}
    loops = []
    for at, line in enumerate(lines):
        if line.endswith(":"):
            places[line[:-1]] = at
        elif _BRANCH.match(line) and re.split(r"[\s,]+", line)[-1] in places:
            begin = places[re.split(r"[\s,]+", line)[-1]]
            body = [part for part in lines[begin : at + 1] if not part.endswith(":")]
            if not any(_BRANCH.match(part) for part in body[:-1]):
                loops.append(Loop(arch, tuple(body)))
    return sorted(loops, key=lambda loop: -len(loop.sums))


def _bare(line: str) -> str:
    """Drop comments and make blanks one space each."""
    line = re.split(r"\s*(?:##|#(?=\s)|//|@(?=\s))", line)[0]
    return " ".join(line.split())
