"""Pack the device server into one file to copy to a board: build_pyz.py farbench-device.pyz."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("rpc/farbench_rpc", "device_runtime/farbench_device_runtime")


def build(target: Path) -> None:
    """Write the archive to `target`; it is whole or absent."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        leave_out = shutil.ignore_patterns("__pycache__", "*.pyc", "py.typed")
        for package in PACKAGES:
            source = ROOT / package
            shutil.copytree(source, folder / source.name, ignore=leave_out)
        shutil.copy(ROOT / "scripts/pyz_main.py", folder / "__main__.py")
        partial = target.with_name(target.name + ".partial")
        zipapp.create_archive(folder, partial, "/usr/bin/env python3", compressed=True)
        partial.replace(target)


def main() -> None:
    """Build the archive that the command line names and print its size."""
    if len(sys.argv) != 2:
        sys.exit("usage: build_pyz.py TARGET")
    target = Path(sys.argv[1]).resolve()
    build(target)
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
