"""The toolchain: zig's C compiler and linker, the C runtime and stub libraries, all cached."""

from farbench_compiler.errors import LinkError
from farbench_compiler.toolchain.cache import cache_dir, cached, digest
from farbench_compiler.toolchain.link import link_runtime, link_shared
from farbench_compiler.toolchain.objects import check_object, data_object
from farbench_compiler.toolchain.program import link_program
from farbench_compiler.toolchain.runtime import runtime_objects
from farbench_compiler.toolchain.stubs import c_library
from farbench_compiler.toolchain.zig import Progress, Zig, compile_c, locate

__all__ = [
    "LinkError",
    "Progress",
    "Zig",
    "c_library",
    "cache_dir",
    "cached",
    "check_object",
    "compile_c",
    "data_object",
    "digest",
    "link_program",
    "link_runtime",
    "link_shared",
    "locate",
    "runtime_objects",
]
