/* The calling convention between compiled tensor programs, the runtime linked into each of them,
 * and the worker that loads them. ABI version 1: fields are only ever added at the end. */
#ifndef FARBENCH_H
#define FARBENCH_H
#include <stdint.h>

#define FB_ABI_VERSION 1
#define FB_ERROR_TEXT 256

typedef struct fb_ctx fb_ctx;

/* An entry of a library: 0 is success, anything else is an error with text in ctx->error.
 * `buffers` are the array arguments in order. `scalars` are 8-byte slots: the sizes, then the number
 * arguments that are not sizes themselves. In its slot an integer is sign-extended (uint8 and bool
 * zero-extended); floats are their own bits in the low 2, 4 or 8 bytes, and
 * the rest is zero. Every target is little-endian. */
typedef int32_t (*fb_kernel)(fb_ctx *ctx, void *const *buffers, const int64_t *scalars);
/* The body of a parallel loop over [begin, end). */
typedef int32_t (*fb_body)(fb_ctx *ctx, void *closure, int64_t begin, int64_t end);

/* Made by the first library loaded in a process and passed to the kernels of all, so that the
 * pool, workspace and error text are shared. Generated code reaches the runtime through these
 * pointers alone (offsets 8, 16 and 24 on 64-bit targets; 4, 8 and 12 bytes on 32-bit ones ->
 * `abi` is pointer-sized so that every target has the same order of slots). */
struct fb_ctx {
  uintptr_t abi;
  int32_t (*parallel_for)(fb_ctx *ctx, fb_body body, void *closure, int64_t begin, int64_t end);
  void *(*workspace)(fb_ctx *ctx, int64_t bytes); /* 64-byte aligned; NULL sets error text */
  void (*workspace_release)(fb_ctx *ctx, void *pointer);
  int32_t threads;
  char error[FB_ERROR_TEXT];
  /* private fields of the runtime follow */
};

#endif
