"""The zig binary of the `ziglang` package: a C compiler and linker for every target."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from farbench_compiler.errors import LinkError
from farbench_compiler.target import Target
from farbench_compiler.toolchain.cache import cache_dir, cached, digest

RUN_TIMEOUT_S = 300.0
# zig checks C for undefined behaviour by default, which would need its own support library; and the
# atomics of old ARM64 cores must not go through helpers either.
C_FLAGS = (
    "-std=c11",
    "-O2",
    "-fPIC",
    "-fno-sanitize=undefined",
    "-fno-stack-protector",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
)
_ARCH_FLAGS = {"aarch64": ("-mno-outline-atomics",)}

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Zig:
    """A zig binary and its version."""

    path: Path
    version: str

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Run zig in a folder; LinkError with the first lines of what it said if it fails."""
        kept = cache_dir() / "zig"
        env = {
            **os.environ,
            "ZIG_GLOBAL_CACHE_DIR": str(kept),
            "ZIG_LOCAL_CACHE_DIR": str(kept),
            **(environment or {}),
        }
        try:
            done = subprocess.run(
                [str(self.path), *arguments],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=RUN_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as cause:
            raise LinkError(f"zig {arguments[0]} took longer than {RUN_TIMEOUT_S:.0f} s") from cause
        except OSError as cause:
            raise LinkError(f"cannot run {self.path}: {cause.strerror}; {_ADVICE}") from cause
        if done.returncode:
            raise LinkError(f"zig {arguments[0]} failed: {_first_lines(done.stderr)}")


_ADVICE = "reinstall it: pip install --force-reinstall ziglang"


def _first_lines(raw: bytes, count: int = 3) -> str:
    lines = raw.decode("utf-8", "replace").splitlines()
    said = [line.strip() for line in lines if "error" in line] or [s for s in lines if s.strip()]
    more = f" (and {len(said) - count} more)" if len(said) > count else ""
    return ("; ".join(said[:count]) or "it said nothing") + more


@lru_cache(maxsize=1)
def locate() -> Zig:
    """Find zig; LinkError says how to install it."""
    spec = importlib.util.find_spec("ziglang")
    for folder in spec.submodule_search_locations or () if spec else ():
        for name in ("zig", "zig.exe"):
            path = Path(folder) / name
            if path.is_file():
                return Zig(path, _version(path))
    raise LinkError("linking needs zig, which is not installed: pip install 'farbench[host]'")


def _version(path: Path) -> str:
    """Read the version from the package's name on disk, since starting zig for it takes longer."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ziglang")
    except PackageNotFoundError:
        stat = path.stat()
        return f"{stat.st_size:x}-{int(stat.st_mtime):x}"


def compile_c(
    name: str,
    sources: Sequence[Path],
    target: Target,
    flags: Sequence[str] = (),
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Compile C files for a target into cached objects, in the order of the sources.

    `progress` gets a line when there is something to compile; headers beside the sources count as
    part of them. `flags` come behind `C_FLAGS`.
    """
    zig = locate()
    folder = sources[0].parent
    headers = sorted(folder.glob("*.h"))
    texts = [path.read_bytes() for path in (*headers, *sources)]
    options = (*C_FLAGS, *_ARCH_FLAGS.get(target.arch, ()), *flags)
    key = digest(zig.version, target.zig_target, " ".join(options), *texts)[:16]

    def make(part: Path) -> None:
        if progress is not None:
            progress(f"compiling {name} for {target.zig_target} (once)")
        for path in sources:
            command = ["cc", "-target", target.zig_target, *options, "-c", str(path.resolve())]
            zig.run([*command, "-o", f"{path.stem}.o"], part)

    made = cached(f"{target.zig_target}/{name}-{key}", make)
    return tuple(made / f"{path.stem}.o" for path in sources)
