"""Modules of the compiler under the names that programs import: `import farbench.te`."""

from __future__ import annotations

import sys

from farbench.extras import load


def stand_for(alias: str, real: str) -> None:
    """Let `alias` and all below it be the very modules that `real` is; MissingExtra as `load`."""
    load(real)
    for name, module in list(sys.modules.items()):
        if name == real or name.startswith(f"{real}."):
            sys.modules[alias + name.removeprefix(real)] = module
