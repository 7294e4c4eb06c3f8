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
    from farbench import errors, fill, module, nd, runtime, stats, target, testing
    from farbench.compiling import build, lower
    from farbench.devices import Device, cpu, device
    from farbench.devices import device as context
    from farbench.local import local
    from farbench.module import Module, load_module
    from farbench.result import TimingResult
    from farbench.runtime import TVMError, convert
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
    "module": ("farbench.module", ""),
    "runtime": ("farbench.runtime", ""),
    "target": ("farbench.target", ""),
    "testing": ("farbench.testing", ""),
    "context": ("farbench.devices", "device"),
    "device": ("farbench.devices", "device"),
    "load_module": ("farbench.module", "load_module"),
    "Device": ("farbench.devices", "Device"),
    "cpu": ("farbench.devices", "cpu"),
    "local": ("farbench.local", "local"),
    "Session": ("farbench.session", "Session"),
    "Tracker": ("farbench.tracker", "Tracker"),
    "TimingResult": ("farbench.result", "TimingResult"),
    "connect_tracker": ("farbench.tracker", "connect_tracker"),
    "convert": ("farbench.runtime", "convert"),
    "TVMError": ("farbench.runtime", "TVMError"),
}

# What programs of TVM may ask for, and what there is instead.
_INSTEAD = {
    **dict.fromkeys(
        ("register_func", "get_global_func", "get_packed_func"), "a library calls no Python"
    ),
    "relay": "build operators of farbench.topi by ops.default_schedule",
    "rpc": "request devices from farbench.local() or farbench.connect_tracker()",
    "autotvm": "ops.default_schedule is fast without a search",
}

__all__ = [
    "Device",
    "Module",
    "Session",
    "TVMError",
    "Target",
    "TimingResult",
    "Tracker",
    "__version__",
    "build",
    "connect_tracker",
    "context",
    "convert",
    "cpu",
    "device",
    "errors",
    "fill",
    "load_module",
    "local",
    "lower",
    "module",
    "nd",
    "runtime",
    "stats",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
]


# What stood at TVM's top level until 2019 and is te's own here.
_OF_TE = frozenset(
    [
        *("placeholder", "compute", "create_schedule", "var", "const", "reduce_axis", "sum", "max"),
        *("min", "prod", "all", "any", "if_then_else", "select", "comm_reducer", "min_value"),
        *("max_value", "exp", "log", "sqrt", "tanh", "sigmoid", "floor", "ceil", "trunc", "round"),
        *("abs", "power", "thread_axis", "scan", "extern", "tag_scope", "decl_buffer"),
        *("decl_tensor_intrin", "size_var", "erf", "popcount", "truncdiv", "truncmod", "floordiv"),
        *("floormod", "indexdiv", "indexmod", "rsqrt", "cos", "sin"),
    ]
)


def _older(name: str) -> tuple[str, str]:
    """Find a name of TVM's early years; KeyError where it is none."""
    if name not in _OF_TE:
        raise KeyError(name)
    return "farbench_compiler.te", name


def __getattr__(name: str) -> object:
    try:
        module, attribute = _EXPORTS.get(name) or _older(name)
    except KeyError:
        said = f"module 'farbench' has no attribute {name!r}"
        if name in _INSTEAD:
            raise AttributeError(f"{said}: {_INSTEAD[name]}") from None
        # With `name` and `obj`, Python itself names what comes near.
        raise AttributeError(said, name=name, obj=sys.modules[__name__]) from None
    found = load(module)
    value: object = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
