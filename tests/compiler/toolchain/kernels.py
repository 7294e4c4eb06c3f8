"""Small kernels in LLVM IR, to prove linking and helpers without the rest of the compiler."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from llvmlite import binding

from farbench_compiler.artifact import Artifact
from farbench_compiler.target import Target
from farbench_rpc.manifest import Entry, Manifest, TensorArg

_TYPES = {
    "float16": "half", "float32": "float", "float64": "double",
    "int32": "i32", "int64": "i64", "uint32": "i32", "uint64": "i64",
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """An elementwise kernel: `operation` is an LLVM instruction over the elements of the inputs."""

    name: str
    inputs: tuple[str, ...]
    output: str
    operation: str

    @property
    def ir(self) -> str:
        """The kernel as a function of the calling convention: inputs, output; n = scalars[0]."""
        count = len(self.inputs)
        lines = [f"define i32 @{self.name}(ptr %ctx, ptr %buffers, ptr %scalars) {{", "entry:"]
        for index in range(count + 1):
            lines.append(f"  %s{index} = getelementptr ptr, ptr %buffers, i32 {index}")
            lines.append(f"  %b{index} = load ptr, ptr %s{index}")
        lines += ["  %n = load i64, ptr %scalars", "  br label %loop", "loop:"]
        lines.append("  %i = phi i64 [0, %entry], [%next, %loop]")
        for index, dtype in enumerate((*self.inputs, self.output)):
            kind = _TYPES[dtype]
            lines.append(f"  %p{index} = getelementptr {kind}, ptr %b{index}, i64 %i")
            if index < count:
                lines.append(f"  %x{index} = load {kind}, ptr %p{index}")
        lines.append(f"  %y = {self.operation}")
        lines.append(f"  store {_TYPES[self.output]} %y, ptr %p{count}")
        lines += ["  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n"]
        lines += ["  br i1 %more, label %loop, label %end", "end:", "  ret i32 0", "}"]
        return "\n".join(lines)


def _divisions(bits: int) -> list[Kernel]:
    kinds = (("int", "sdiv", "srem"), ("uint", "udiv", "urem"))
    found = []
    for prefix, *operations in kinds:
        dtype = f"{prefix}{bits}"
        for op in operations:
            text = f"{op} i{bits} %x0, %x1"
            found.append(Kernel(f"{op}_{bits}", (dtype, dtype), dtype, text))
    return found


CONVERSIONS = [
    Kernel("f32_to_f16", ("float32",), "float16", "fptrunc float %x0 to half"),
    Kernel("f64_to_f16", ("float64",), "float16", "fptrunc double %x0 to half"),
    Kernel("f16_to_f32", ("float16",), "float32", "fpext half %x0 to float"),
    Kernel("i64_to_f32", ("int64",), "float32", "sitofp i64 %x0 to float"),
    Kernel("u64_to_f32", ("uint64",), "float32", "uitofp i64 %x0 to float"),
    Kernel("i64_to_f64", ("int64",), "float64", "sitofp i64 %x0 to double"),
    Kernel("u64_to_f64", ("uint64",), "float64", "uitofp i64 %x0 to double"),
    Kernel("f32_to_i64", ("float32",), "int64", "fptosi float %x0 to i64"),
    Kernel("f64_to_i64", ("float64",), "int64", "fptosi double %x0 to i64"),
    Kernel("f32_to_u64", ("float32",), "uint64", "fptoui float %x0 to i64"),
    Kernel("f64_to_u64", ("float64",), "uint64", "fptoui double %x0 to i64"),
]
KERNELS = [*CONVERSIONS, *_divisions(32), *_divisions(64)]

EXP = """
declare float @expf(float)
define i32 @exp_one(ptr %ctx, ptr %buffers, ptr %scalars) {
  %b = load ptr, ptr %buffers
  %x = load float, ptr %b
  %y = call float @expf(float %x)
  store float %y, ptr %b
  ret i32 0
}
"""


def compile_ir(text: str, target: Target) -> bytes:
    """Compile LLVM IR for a target into an object."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = binding.parse_assembly(f'target triple = "{target.triple}"\n{text}')
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.llvm_features,
        opt=3,
        reloc="pic",
        abiname=target.llvm_abi,
    )
    return bytes(machine.emit_object(module))


def artifact(target: Target) -> Artifact:
    """Build all kernels for a target, as a build would."""
    text = "\n".join([EXP, *(kernel.ir for kernel in KERNELS)])
    data = compile_ir(text, target)
    entry = Entry("exp_one", "exp_one", (TensorArg("x", "float32", (1,), 4, True),))
    manifest = Manifest((entry,), target.facts, hashlib.sha256(data).hexdigest())
    return Artifact((data,), manifest, target, text)
