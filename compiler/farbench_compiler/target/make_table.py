"""Write the tables of CPUs and features, one JSON file an architecture, from ziglang's own lists.

    python -m farbench_compiler.target.make_table

`zig targets` prints the same lists but neither LLVM's spelling nor what a feature implies; the
package's std/Target/*.zig, which are generated from LLVM's tables, have both. Run it again when
the pinned versions of ziglang and llvmlite move, and look at the difference before committing.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

FILES = {"x86_64": "x86", "aarch64": "aarch64", "armv7": "arm", "riscv64": "riscv"}
TABLES = Path(__file__).with_name("tables")
# What a CPU must have to run user land of the architecture; the others are left out.
NEEDS = {
    "x86_64": {"64bit", "sse2"},
    "aarch64": {"neon"},
    "armv7": {"v7", "aclass"},
    "riscv64": {"64bit", "i", "m", "a", "f", "d", "c"},
}
# LLVM leaves these to the triple or to the ABI; farbench states them.
BASELINES = {
    "armv7": ("generic", "armv7-a"),
    "riscv64": ("generic-rv64", "64bit a c d i m zicsr zifencei"),
}

_NAME = r'(?:@"([^"]+)"|(\w+))'
_FEATURE = re.compile(
    rf"result\[@\w+\(Feature\.{_NAME}\)\] = \.\{{\s*\.llvm_name = (null|\"[^\"]*\"),"
    r".*?\.dependencies = featureSet\(&\[_\]Feature\{(.*?)\}\)",
    re.DOTALL,
)
_CPU = re.compile(
    rf"pub const {_NAME}: CpuModel = \.\{{\s*\.name = \"[^\"]*\","
    r"\s*\.llvm_name = (null|\"[^\"]*\"),"
    r"\s*\.features = featureSet\(&\[_\]Feature\{(.*?)\}\)",
    re.DOTALL,
)
_ITEM = re.compile(rf"\.{_NAME}")


def _items(text: str) -> list[str]:
    return [quoted or plain for quoted, plain in _ITEM.findall(text)]


def _closed(names: str, features: dict[str, str]) -> set[str]:
    found: set[str] = set()
    todo = names.split()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += features[name].split()
    return found


def make_table(source: str, arch: str) -> dict[str, dict[str, str]]:
    """Read an architecture's file; features and CPUs by LLVM name, each with what it has."""
    spelled: dict[str, str | None] = {}
    implied: dict[str, list[str]] = {}
    for quoted, plain, llvm, items in _FEATURE.findall(source):
        name = quoted or plain
        spelled[name] = None if llvm == "null" else llvm.strip('"')
        implied[name] = _items(items)

    def in_llvm(names: list[str]) -> str:
        """Spell features as LLVM does; what only zig knows is replaced by what it implies."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            known = spelled[name]
            if known is None:
                todo += implied[name]
            else:
                found.add(known)
        return " ".join(sorted(found))

    features = {known: in_llvm(implied[name]) for name, known in spelled.items() if known}
    cpus = {
        llvm.strip('"'): in_llvm(_items(items))
        for _, _, llvm, items in _CPU.findall(source)
        if llvm != "null"
    }
    if arch in BASELINES:
        name, has = BASELINES[arch]
        cpus[name] = in_order(f"{cpus[name]} {has}")
    cpus = {name: has for name, has in cpus.items() if _closed(has, features) >= NEEDS[arch]}
    return {"features": dict(sorted(features.items())), "cpus": dict(sorted(cpus.items()))}


def in_order(names: str) -> str:
    """Sort names and drop repeats."""
    return " ".join(sorted(set(names.split())))


def main() -> None:
    """Write every table beside this file."""
    import ziglang

    folder = Path(str(ziglang.__file__)).parent / "lib" / "std" / "Target"
    TABLES.mkdir(exist_ok=True)
    for arch, name in FILES.items():
        table = make_table((folder / f"{name}.zig").read_text(encoding="utf-8"), arch)
        text = json.dumps(table, indent=0, ensure_ascii=True)
        (TABLES / f"{arch}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
