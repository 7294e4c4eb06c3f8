/* What every library built by farbench exports beside its entries. A worker loads one library,
 * makes one context with it, and passes that context to the entries of all libraries it loads.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC_RAW (CLOCK_MONOTONIC where that is missing). Functions
 * that return int32_t give 0 for success. */
#ifndef FARBENCH_RUNTIME_H
#define FARBENCH_RUNTIME_H
#include "farbench.h"

#define FB_EXPORT __attribute__((visibility("default")))

/* Errors of the runtime itself; kernels use values of their own. */
#define FB_OUT_OF_MEMORY 1001
#define FB_BAD_ARGUMENT 1002
#define FB_NO_CLOCK 1003

/* dtype codes, in the order of farbench_rpc.manifest.DTYPES. A scalar argument lies in an 8-byte
 * slot: integers sign-extended (unsigned ones and bool zero-extended); floats as their
 * own bits in the low 2, 4 or 8 bytes, the rest zero. */
enum {
  FB_FLOAT16, FB_FLOAT32, FB_FLOAT64, FB_INT8, FB_INT16, FB_INT32, FB_INT64, FB_UINT8, FB_BOOL,
  FB_BFLOAT16, FB_UINT16, FB_UINT32, FB_UINT64, FB_DTYPES
};
enum { FB_UNIFORM, FB_CONSTANT };

FB_EXPORT int32_t fb_abi_version(void);

/* Make a context with `threads` threads (the caller is one of them; 0 = one for each CPU that the
 * process may use). With core_count > 0, thread i, the caller being thread 0, is bound to CPU
 * cores[i % core_count] where the kernel allows it. NULL with errno set: out of memory or threads.
 * Threads do not survive a fork: make the context after it. */
FB_EXPORT fb_ctx *fb_ctx_create(int32_t threads, const int32_t *cores, int32_t core_count);
FB_EXPORT void fb_ctx_destroy(fb_ctx *ctx);
/* The text of the last error, empty if there was none; fb_ctx_clear empties it. */
FB_EXPORT const char *fb_ctx_error(fb_ctx *ctx);
FB_EXPORT void fb_ctx_clear(fb_ctx *ctx);
/* How many threads were bound to a core. */
FB_EXPORT int32_t fb_ctx_bound(fb_ctx *ctx);

/* Memory aligned to `alignment` bytes (a power of two, at least that of a pointer); NULL if there
 * is none. Large blocks ask for huge pages. */
FB_EXPORT void *fb_alloc(int64_t bytes, int64_t alignment);
FB_EXPORT void fb_free(void *pointer);

/* Take one sample: `calls` calls of the kernel. flush_bytes > 0: before every call the caches are
 * filled with that many other bytes, outside of the time that is summed. A kernel that fails ends
 * the sample with its own value. */
FB_EXPORT int32_t fb_time_sample(fb_kernel kernel, fb_ctx *ctx, void *const *buffers,
                                 const int64_t *scalars, int64_t calls, int64_t flush_bytes,
                                 int64_t *total_ns, int64_t *start_ns);
/* The same with `sets` sets of buffer_count buffers each, one after the other in `buffers`; call i
 * takes set i % sets. */
FB_EXPORT int32_t fb_time_rotate(fb_kernel kernel, fb_ctx *ctx, void *const *buffers,
                                 int64_t buffer_count, int64_t sets, const int64_t *scalars,
                                 int64_t calls, int64_t *total_ns, int64_t *start_ns);
/* A kernel that does nothing: what a call costs by itself. */
FB_EXPORT int32_t fb_empty_kernel(fb_ctx *ctx, void *const *buffers, const int64_t *scalars);
/* From 2,000 reads: the least positive difference, and the median of all differences. */
FB_EXPORT int32_t fb_timer_probe(int64_t *resolution_ns, int64_t *overhead_ns);
FB_EXPORT int64_t fb_now_ns(void);
/* Fill the caches with `bytes` other bytes, on every thread of the pool and then on the caller. */
FB_EXPORT int32_t fb_flush(fb_ctx *ctx, int64_t bytes);

/* Fixed work whose time tells whether the machine is as fast as it was: a chain of `steps` dependent
 * 64-bit multiply-adds (its end value is returned, elapsed_ns set), and `rounds` copies of `bytes`. */
FB_EXPORT uint64_t fb_sentinel_chain(int64_t steps, int64_t *elapsed_ns);
FB_EXPORT int32_t fb_sentinel_copy(int64_t bytes, int64_t rounds, int64_t *elapsed_ns);

/* Fill `count` elements. Element i depends on seed and i alone:
 *
 *   z = seed + (i + 1) * 0x9E3779B97F4A7C15                 all in uint64, wrapping
 *   z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
 *   z = (z ^ (z >> 27)) * 0x94D049BB133111EB
 *   r = z ^ (z >> 31)                                       splitmix64
 *
 * FB_UNIFORM, floats: u = (double)(r >> 11) * 2^-53; value = low + u * (high - low), each operation
 * rounded to double by itself (no fused multiply-add); then rounded once to the dtype, to nearest
 * even. Rounding to a narrow dtype may give `high` itself.
 * FB_UNIFORM, integers: first = ceil(low), range = ceil(high) - first (doubles, range at most 2^64);
 *   range <= 2^32: value = first + (((r >> 32) * range) >> 32), else first + r % range (r itself if
 *   range is 2^64). FB_BAD_ARGUMENT unless first and the last value fit the dtype and range >= 1.
 * FB_UNIFORM, bool: r >> 63; low and high are not used.
 * FB_CONSTANT: low, rounded to the dtype; an integer must fit it; bool is low != 0. */
FB_EXPORT int32_t fb_fill(int32_t dtype, void *pointer, int64_t count, uint64_t seed, int32_t kind,
                          double low, double high);

#endif
