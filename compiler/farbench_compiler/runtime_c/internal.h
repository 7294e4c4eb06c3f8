/* What the files of the runtime share; nothing here is exported. */
#ifndef FARBENCH_INTERNAL_H
#define FARBENCH_INTERNAL_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stddef.h>

#include "farbench_runtime.h"

#define FB_CACHE_LINE 64

typedef struct fb_pool fb_pool;
typedef struct fb_block fb_block;

/* The context as the runtime sees it: the public part first. */
typedef struct {
  fb_ctx public;
  fb_pool *pool;
  fb_block *blocks; /* workspace, in use or kept for the next call */
  atomic_flag blocks_lock;
  unsigned char *flush_buffer;
  int64_t flush_bytes;
  int32_t bound;
} fb_runtime;

static inline fb_runtime *fb_runtime_of(fb_ctx *ctx) { return (fb_runtime *)ctx; }

static inline void fb_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#else
  atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* pool.c */
int32_t fb_usable_cpus(void);
fb_pool *fb_pool_create(fb_runtime *runtime, int32_t threads, const int32_t *cores,
                        int32_t core_count);
void fb_pool_destroy(fb_pool *pool);
int32_t fb_parallel_for(fb_ctx *ctx, fb_body body, void *closure, int64_t begin, int64_t end);

/* workspace.c */
void *fb_workspace_take(fb_ctx *ctx, int64_t bytes);
void fb_workspace_release(fb_ctx *ctx, void *pointer);
void fb_workspace_drop(fb_runtime *runtime);

/* context.c */
int32_t fb_fail(fb_ctx *ctx, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
