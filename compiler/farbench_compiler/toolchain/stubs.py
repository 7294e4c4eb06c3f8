"""The C library of a target as the linker sees it: names and versions of symbols, no code.

zig makes these stub libraries for the glibc version in the target when it links for the first time;
they are kept, so that later links ask the linker alone, which takes a tenth of the time. On musl
the program that loads a library always has libc, under a name of the distribution's own choice:
libraries for it name none.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from farbench_compiler.errors import LinkError
from farbench_compiler.target import Target
from farbench_compiler.toolchain.cache import cached
from farbench_compiler.toolchain.zig import Progress, locate

_NAMES = ("libc.so.6", "libm.so.6")
# glibc before 2.34 keeps threads in a library of their own.
_THREADS = "libpthread.so.0"


def c_library(target: Target, progress: Progress | None = None) -> tuple[Path, ...]:
    """Give the stub libraries that a library for the target is linked against."""
    if target.libc != "gnu":
        return ()
    zig = locate()

    def make(part: Path) -> None:
        if progress is not None:
            progress(f"preparing the C library of {target.zig_target} (once)")
        scratch = part / "scratch"
        scratch.mkdir()
        (scratch / "empty.c").write_text("int farbench_probe(void) { return 0; }\n")
        own = {"ZIG_GLOBAL_CACHE_DIR": str(scratch), "ZIG_LOCAL_CACHE_DIR": str(scratch)}
        command = ["cc", "-target", target.zig_target, "-nostdlib", "-shared", "-fPIC", "empty.c"]
        zig.run([*command, "-o", "empty.so", "-lc", "-lm", "-lpthread"], scratch, own)
        for name in (*_NAMES, _THREADS):
            made = next(scratch.rglob(name), None)
            if made is not None:
                shutil.copyfile(made, part / name)
            elif name in _NAMES:
                raise LinkError(f"zig {zig.version} made no {name} for {target.zig_target}")
        shutil.rmtree(scratch)

    made = cached(f"{target.zig_target}/libc-{zig.version}", make)
    return tuple(path for name in (*_NAMES, _THREADS) if (path := made / name).is_file())
