"""The wings that run on laptops import nothing that only Linux has; those for boards, no extras."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house._files import ROOT, source_files

# Taken away after numpy and its like have been imported: what macOS does not have.
WITHOUT_LINUX = """
import ctypes, importlib, multiprocessing, os, select, socket, subprocess, sys, tempfile
for name in ("click", "jinja2", "llvmlite.binding", "llvmlite.ir", "matplotlib", "msgpack",
             "numpy", "platformdirs", "psutil", "rich.console", "rich.progress", "rich.table",
             "zmq", "ziglang"):
    importlib.import_module(name)
for name in dir(os):
    if name.startswith(("memfd_", "MFD_", "pidfd_", "PIDFD_", "eventfd", "EFD_", "sched_set",
                        "sched_get", "timerfd", "splice", "copy_file_range", "getrandom",
                        "posix_fadvise", "prlimit", "sendfile", "unshare", "setns")):
        delattr(os, name)
for name in ("epoll", "EPOLLIN"):
    delattr(select, name)
for module in sys.argv[1:]:
    importlib.import_module(module)
"""

# Only the standard library, pyzmq and msgpack may be imported; psutil is used where present.
BOARD_ONLY = """
import importlib, sys
allowed = set(sys.stdlib_module_names) | {"zmq", "msgpack", "farbench_rpc",
                                          "farbench_device_runtime"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"a board has no {name}", name=name)
sys.meta_path.insert(0, Refuse())
for module in sys.argv[1:]:
    importlib.import_module(module)
"""


def modules(*wings: str) -> list[str]:
    """List the modules of the wings, without the ones that run as programs."""
    found = []
    for path in source_files(".py"):
        if path.parts[0] in wings and path.name != "__main__.py":
            parts = path.with_suffix("").parts[1:]
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def run(program: str, names: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.linux
@pytest.mark.parametrize("wing", ["rpc", "compiler", "host"])
def test_imports_without_what_only_linux_has(wing: str) -> None:
    run(WITHOUT_LINUX, modules(wing))


def test_device_and_rpc_import_what_boards_have() -> None:
    run(BOARD_ONLY, modules("rpc", "device_runtime"))


def test_compiler_imports_nothing_of_the_wire() -> None:
    program = BOARD_ONLY.replace(
        '"zmq", "msgpack"', '"numpy", "ml_dtypes", "llvmlite", "ziglang"'
    ).replace('"farbench_device_runtime"', '"farbench_compiler", "platformdirs", "msgpack"')
    run(program, modules("compiler"))
