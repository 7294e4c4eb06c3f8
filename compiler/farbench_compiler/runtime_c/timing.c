/* Taking time: the clock, one sample, the flushing of caches before a cold one, sentinels. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FB_READS 2000

#ifndef CLOCK_MONOTONIC_RAW
#define CLOCK_MONOTONIC_RAW CLOCK_MONOTONIC
#endif

static inline int64_t now(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_MONOTONIC_RAW, &time) != 0 && clock_gettime(CLOCK_MONOTONIC, &time) != 0)
    return -1;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t fb_now_ns(void) { return now(); }

int32_t fb_empty_kernel(fb_ctx *ctx, void *const *buffers, const int64_t *scalars) {
  (void)ctx;
  (void)buffers;
  (void)scalars;
  return 0;
}

/* Read and write one byte of each cache line. */
static int32_t stream(fb_ctx *ctx, void *closure, int64_t begin, int64_t end) {
  (void)ctx;
  volatile unsigned char *bytes = closure;
  for (int64_t line = begin; line < end; line++) bytes[line * FB_CACHE_LINE]++;
  return 0;
}

int32_t fb_flush(fb_ctx *ctx, int64_t bytes) {
  fb_runtime *runtime = fb_runtime_of(ctx);
  if (bytes <= 0) return 0;
  if (runtime->flush_bytes < bytes) {
    fb_free(runtime->flush_buffer);
    runtime->flush_bytes = 0;
    runtime->flush_buffer = fb_alloc(bytes, FB_CACHE_LINE);
    if (!runtime->flush_buffer)
      return fb_fail(ctx, FB_OUT_OF_MEMORY, "out of memory: %lld bytes to flush the caches with",
                     (long long)bytes);
    memset(runtime->flush_buffer, 1, (size_t)bytes); /* real pages, not the zero page */
    runtime->flush_bytes = bytes;
  }
  /* The pool's threads empty the caches of their own cores, the caller all that they share. */
  int64_t lines = bytes / FB_CACHE_LINE;
  if (ctx->threads > 1) fb_parallel_for(ctx, stream, runtime->flush_buffer, 0, lines);
  return stream(ctx, runtime->flush_buffer, 0, lines);
}

static int32_t sample_cold(fb_kernel kernel, fb_ctx *ctx, void *const *buffers,
                           const int64_t *scalars, int64_t calls, int64_t flush_bytes,
                           int64_t *total_ns) {
  for (int64_t call = 0; call < calls; call++) {
    int32_t code = fb_flush(ctx, flush_bytes);
    if (code) return code;
    int64_t begin = now();
    code = kernel(ctx, buffers, scalars);
    *total_ns += now() - begin;
    if (code) return code;
  }
  return 0;
}

int32_t fb_time_sample(fb_kernel kernel, fb_ctx *ctx, void *const *buffers, const int64_t *scalars,
                       int64_t calls, int64_t flush_bytes, int64_t *total_ns, int64_t *start_ns) {
  *total_ns = 0;
  *start_ns = now();
  if (*start_ns < 0) return fb_fail(ctx, FB_NO_CLOCK, "the system has no monotonic clock");
  if (flush_bytes > 0)
    return sample_cold(kernel, ctx, buffers, scalars, calls, flush_bytes, total_ns);
  int32_t code = 0;
  int64_t begin = now();
  for (int64_t call = 0; call < calls && !code; call++) code = kernel(ctx, buffers, scalars);
  *total_ns = now() - begin;
  return code;
}

int32_t fb_time_rotate(fb_kernel kernel, fb_ctx *ctx, void *const *buffers, int64_t buffer_count,
                       int64_t sets, const int64_t *scalars, int64_t calls, int64_t *total_ns,
                       int64_t *start_ns) {
  *total_ns = 0;
  *start_ns = now();
  if (*start_ns < 0) return fb_fail(ctx, FB_NO_CLOCK, "the system has no monotonic clock");
  if (sets < 1) return fb_fail(ctx, FB_BAD_ARGUMENT, "%lld sets of inputs", (long long)sets);
  int32_t code = 0;
  int64_t set = 0;
  int64_t begin = now();
  for (int64_t call = 0; call < calls && !code; call++) {
    code = kernel(ctx, buffers + set * buffer_count, scalars);
    if (++set == sets) set = 0;
  }
  *total_ns = now() - begin;
  return code;
}

static int compare(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

int32_t fb_timer_probe(int64_t *resolution_ns, int64_t *overhead_ns) {
  int64_t differences[FB_READS];
  int64_t last = now();
  if (last < 0) return FB_NO_CLOCK;
  for (int i = 0; i < FB_READS; i++) {
    int64_t next = now();
    differences[i] = next - last;
    last = next;
  }
  qsort(differences, FB_READS, sizeof differences[0], compare);
  *overhead_ns = differences[FB_READS / 2];
  int first = 0;
  while (first < FB_READS && differences[first] <= 0) first++;
  /* A clock that stood still for 2,000 reads: wait for its next tick, at most a second's worth. */
  for (int64_t begin = last, spins = 0; first == FB_READS && spins < 100000000; spins++) {
    if ((last = now()) > begin) {
      *resolution_ns = last - begin;
      return 0;
    }
  }
  if (first == FB_READS) return FB_NO_CLOCK;
  *resolution_ns = differences[first];
  return 0;
}

uint64_t fb_sentinel_chain(int64_t steps, int64_t *elapsed_ns) {
  uint64_t value = 1;
  int64_t begin = now();
  for (int64_t i = 0; i < steps; i++) {
    value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    __asm__ volatile("" : "+r"(value)); /* one step after the other: no closed form, no unrolling */
  }
  *elapsed_ns = now() - begin;
  return value;
}

int32_t fb_sentinel_copy(int64_t bytes, int64_t rounds, int64_t *elapsed_ns) {
  unsigned char *from = fb_alloc(bytes, FB_CACHE_LINE), *to = fb_alloc(bytes, FB_CACHE_LINE);
  int32_t code = from && to ? 0 : FB_OUT_OF_MEMORY;
  if (!code) {
    memset(from, 1, (size_t)bytes);
    memset(to, 2, (size_t)bytes);
    int64_t begin = now();
    for (int64_t i = 0; i < rounds; i++) {
      memcpy(to, from, (size_t)bytes);
      __asm__ volatile("" : : "r"(to) : "memory");
    }
    *elapsed_ns = now() - begin;
  }
  fb_free(from);
  fb_free(to);
  return code;
}
