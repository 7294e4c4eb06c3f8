"""Static programs: the same objects and runtime with a `main`, run where no library can be."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from farbench.boards import BoardUnavailable, find_emulator, run_static
from farbench_compiler.target import Target
from farbench_compiler.toolchain import LinkError, link_program
from farbench_rpc.manifest import read_elf
from tests.compiler.toolchain.kernels import EXP, KERNELS, compile_ir

MAIN = r"""
#include <stdio.h>
#include "farbench_runtime.h"
int32_t f32_to_f16(fb_ctx *, void *const *, const int64_t *);
int32_t f16_to_f32(fb_ctx *, void *const *, const int64_t *);
int32_t sdiv_64(fb_ctx *, void *const *, const int64_t *);

static int32_t square(fb_ctx *ctx, void *closure, int64_t begin, int64_t end) {
  (void)ctx;
  for (int64_t i = begin; i < end; i++) ((int64_t *)closure)[i] = i * i;
  return 0;
}

int main(void) {
  static int64_t squares[1000];
  fb_ctx *ctx = fb_ctx_create(2, NULL, 0);
  if (!ctx || ctx->parallel_for(ctx, square, squares, 0, 1000)) return 1;
  int64_t sum = 0;
  for (int i = 0; i < 1000; i++) sum += squares[i];
  float in[3] = {1.0009765625f, 65519.0f, 65520.0f}, back[3];
  uint16_t half[3];
  int64_t three = 3, total, start, a[3] = {-7, 7, INT64_MAX}, b[3] = {2, -2, 3}, q[3];
  f32_to_f16(ctx, (void *const[]){in, half}, &three);
  f16_to_f32(ctx, (void *const[]){half, back}, &three);
  sdiv_64(ctx, (void *const[]){a, b, q}, &three);
  float random[2];
  if (fb_fill(FB_FLOAT32, random, 2, 1234567, FB_UNIFORM, 0, 1)) return 2;
  if (fb_time_sample(fb_empty_kernel, ctx, NULL, NULL, 10, 0, &total, &start)) return 3;
  printf("%lld %.9g %g %g %lld %lld %lld %.9g %.9g %d\n", (long long)sum, back[0], back[1], back[2],
         (long long)q[0], (long long)q[1], (long long)q[2], random[0], random[1], total > 0);
  fb_ctx_destroy(ctx);
  return 0;
}
"""
SAID = "332833500 1.00097656 65504 inf -3 -3 3074457345618258602"


@pytest.mark.parametrize("arch", [pytest.param("riscv64", marks=pytest.mark.qemu)])
@pytest.mark.deadline(600)
def test_runs_with_a_main(arch: str, tmp_path: Path) -> None:
    try:
        find_emulator(arch)
    except BoardUnavailable as error:
        pytest.skip(str(error))
    target = Target.parse(f"llvm -mtriple={arch}-linux-musl")
    main = tmp_path / "main.c"
    main.write_text(MAIN)
    text = "\n".join([EXP, *(kernel.ir for kernel in KERNELS)])
    program = tmp_path / "program"
    program.write_bytes(link_program([compile_ir(text, target)], main, target))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    facts = read_elf(program)
    assert facts.type == "executable"
    assert facts.needed == ()
    done = run_static(arch, program, timeout_s=60)
    assert done.returncode == 0
    first, second = 6457827717110365317, 3203168211198807973
    drawn = [f"{(r >> 11) * 2.0**-53:.3f}" for r in (first, second)]
    words = done.stdout.decode().split()
    assert " ".join(words[:7]) == SAID
    assert [f"{float(word):.3f}" for word in words[7:9]] == drawn
    assert words[9] == "1"


def test_programs_are_for_musl(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="use -mtriple=armv7-linux-musleabihf"):
        link_program([], tmp_path / "main.c", Target.parse("armv7"))
