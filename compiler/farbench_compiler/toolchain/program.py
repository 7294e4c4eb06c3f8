"""Static programs: objects, the C runtime and a `main` in one executable that needs no libc.

The way to run compiled functions where no library can be loaded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from farbench_compiler.errors import LinkError
from farbench_compiler.target import Target
from farbench_compiler.toolchain.objects import check_object
from farbench_compiler.toolchain.runtime import FOLDER, runtime_objects
from farbench_compiler.toolchain.zig import C_FLAGS, Progress, locate


def link_program(
    objects: Sequence[bytes], main: Path, target: Target, progress: Progress | None = None
) -> bytes:
    """Link objects and a C file with `main` into a static executable of a musl target.

    The C file may include `farbench_runtime.h`. The first program of a target takes a minute, for
    its C library is built then; `progress` gets a line before.
    """
    if target.libc != "musl":
        advice = f"-mtriple={target.arch}-linux-musl{'eabihf' if target.arch == 'armv7' else ''}"
        raise LinkError(f"static programs are linked for musl, {target} is not; use {advice}")
    for index, data in enumerate(objects):
        check_object(data, target, f"object {index}")
    runtime = runtime_objects(target, progress)
    if progress is not None:
        progress(f"linking a static program for {target.zig_target} (the first takes a minute)")
    with tempfile.TemporaryDirectory(prefix="farbench-link-") as folder:
        room = Path(folder)
        paths = [room / f"{index}.o" for index in range(len(objects))]
        for path, data in zip(paths, objects, strict=True):
            path.write_bytes(data)
        command = ["cc", "-target", target.zig_target, "-static", *C_FLAGS, f"-I{FOLDER}"]
        command += [str(main.resolve()), *(str(path) for path in (*paths, *runtime))]
        locate().run([*command, "-o", "program"], room)
        return (room / "program").read_bytes()
