/* Memory: aligned blocks for callers, and a workspace that keeps what kernels took before. */
#include "internal.h"

#include <stdlib.h>
#include <sys/mman.h>

/* A block begins with its header, padded so that the data behind it is aligned as well. */
struct fb_block {
  fb_block *next;
  int64_t bytes;
  int32_t in_use;
} __attribute__((aligned(FB_CACHE_LINE)));

#define FB_HUGE (INT64_C(2) << 20)

void *fb_alloc(int64_t bytes, int64_t alignment) {
  int64_t least = (int64_t)sizeof(void *);
  if (bytes < 0 || alignment < 1 || (alignment & (alignment - 1))) return NULL;
  if ((uint64_t)bytes > (uint64_t)(SIZE_MAX / 2)) return NULL;
  int huge = bytes >= 2 * FB_HUGE;
  if (alignment < least) alignment = least;
  if (huge && alignment < FB_HUGE) alignment = FB_HUGE;
  void *pointer = NULL;
  if (posix_memalign(&pointer, (size_t)alignment, bytes > 0 ? (size_t)bytes : 1) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (huge) madvise(pointer, (size_t)(bytes & -FB_HUGE), MADV_HUGEPAGE); /* only a wish */
#endif
  return pointer;
}

void fb_free(void *pointer) { free(pointer); }

static void lock(fb_runtime *runtime) {
  while (atomic_flag_test_and_set_explicit(&runtime->blocks_lock, memory_order_acquire)) fb_pause();
}

static void unlock(fb_runtime *runtime) {
  atomic_flag_clear_explicit(&runtime->blocks_lock, memory_order_release);
}

/* The smallest free block that is large enough but not wastefully so. */
static fb_block *find(fb_runtime *runtime, int64_t bytes) {
  fb_block *best = NULL;
  for (fb_block *block = runtime->blocks; block; block = block->next) {
    if (block->in_use || block->bytes < bytes || block->bytes / 4 > bytes + 4096) continue;
    if (!best || block->bytes < best->bytes) best = block;
  }
  return best;
}

/* Give free blocks back to the system: those smaller than `below`. A kernel that asks for more
 * each time thus keeps one block, not one for each size. */
static void trim(fb_runtime *runtime, int64_t below) {
  fb_block **link = &runtime->blocks;
  while (*link) {
    fb_block *block = *link;
    if (block->in_use || block->bytes >= below) {
      link = &block->next;
    } else {
      *link = block->next;
      fb_free(block);
    }
  }
}

void *fb_workspace_take(fb_ctx *ctx, int64_t bytes) {
  fb_runtime *runtime = fb_runtime_of(ctx);
  if (bytes < FB_CACHE_LINE) bytes = FB_CACHE_LINE;
  if (bytes > INT64_MAX / 2) bytes = INT64_MAX / 2;
  lock(runtime);
  fb_block *block = find(runtime, bytes);
  if (!block) {
    int64_t whole = bytes + (int64_t)sizeof(fb_block);
    block = fb_alloc(whole, FB_CACHE_LINE);
    if (!block) {
      trim(runtime, INT64_MAX);
      block = fb_alloc(whole, FB_CACHE_LINE);
    }
    if (block) {
      trim(runtime, bytes);
      block->bytes = bytes;
      block->next = runtime->blocks;
      runtime->blocks = block;
    } else {
      fb_fail(ctx, FB_OUT_OF_MEMORY, "out of memory: a workspace of %lld bytes", (long long)bytes);
    }
  }
  if (block) block->in_use = 1;
  unlock(runtime);
  return block ? block + 1 : NULL;
}

void fb_workspace_release(fb_ctx *ctx, void *pointer) {
  if (!pointer) return;
  fb_runtime *runtime = fb_runtime_of(ctx);
  lock(runtime);
  ((fb_block *)pointer - 1)->in_use = 0;
  unlock(runtime);
}

void fb_workspace_drop(fb_runtime *runtime) {
  while (runtime->blocks) {
    fb_block *block = runtime->blocks;
    runtime->blocks = block->next;
    fb_free(block);
  }
}
