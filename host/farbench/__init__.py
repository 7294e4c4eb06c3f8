"""Compile tensor programs here, run and time them there.

    import farbench as fb
    from farbench import te

Names are loaded when first used, so that `import farbench` works with what a board has; what
needs more says `pip install 'farbench[host]'`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from farbench.extras import load

if TYPE_CHECKING:
    from farbench import errors, fill, nd, stats
    from farbench.compiling import build, lower
    from farbench.devices import Device, cpu
    from farbench.local import local
    from farbench.module import Module, load_module
    from farbench.result import TimingResult
    from farbench.session import Session
    from farbench.tracker import Tracker, connect_tracker
    from farbench_compiler import te, tir, topi
    from farbench_compiler.target import Target

__version__ = "0.1.0"

# Public name -> (module, attribute); an empty attribute is the module itself.
_EXPORTS: dict[str, tuple[str, str]] = {
    "te": ("farbench_compiler.te", ""),
    "topi": ("farbench_compiler.topi", ""),
    "tir": ("farbench_compiler.tir", ""),
    "nd": ("farbench.nd", ""),
    "errors": ("farbench.errors", ""),
    "fill": ("farbench.fill", ""),
    "stats": ("farbench.stats", ""),
    "lower": ("farbench.compiling", "lower"),
    "build": ("farbench.compiling", "build"),
    "Target": ("farbench_compiler.target", "Target"),
    "Module": ("farbench.module", "Module"),
    "load_module": ("farbench.module", "load_module"),
    "Device": ("farbench.devices", "Device"),
    "cpu": ("farbench.devices", "cpu"),
    "local": ("farbench.local", "local"),
    "Session": ("farbench.session", "Session"),
    "Tracker": ("farbench.tracker", "Tracker"),
    "TimingResult": ("farbench.result", "TimingResult"),
    "connect_tracker": ("farbench.tracker", "connect_tracker"),
}

__all__ = [
    "Device",
    "Module",
    "Session",
    "Target",
    "TimingResult",
    "Tracker",
    "__version__",
    "build",
    "connect_tracker",
    "cpu",
    "errors",
    "fill",
    "load_module",
    "local",
    "lower",
    "nd",
    "stats",
    "te",
    "tir",
    "topi",
]


def __getattr__(name: str) -> object:
    try:
        module, attribute = _EXPORTS[name]
    except KeyError:
        # With `name` and `obj`, Python itself names what comes near.
        raise AttributeError(
            f"module 'farbench' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        ) from None
    found = load(module)
    value: object = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
