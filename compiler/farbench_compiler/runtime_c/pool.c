/* Parallel loops: threads that stay, spin for a moment between loops, then sleep in a futex.
 *
 * The range is cut into a few pieces a thread, taken in turn by whoever is free, so that a slow
 * core or a neighbour's load costs little. A loop within a loop, or on a busy pool, runs serially
 * on its caller. */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FB_PIECES 8                  /* pieces a thread; more balance better, fewer cost less */
#define FB_SPINS 4000                /* about 50 us: the pause between two loops of one kernel */
#define FB_STACK (INT32_C(4) << 20)  /* kernels keep small arrays on the stack */
#define FB_FUTEX_WAIT_PRIVATE 128
#define FB_FUTEX_WAKE_PRIVATE 129

typedef struct {
  fb_pool *pool;
  pthread_t thread;
  int32_t core; /* -1: anywhere */
} fb_worker;

struct fb_pool {
  fb_runtime *runtime;
  int32_t count; /* workers, without the caller */
  int32_t spins;
  atomic_uint bound;
  /* The current loop; written by the caller before `round` moves. */
  fb_body body;
  void *closure;
  int64_t begin, end, step;
  _Alignas(FB_CACHE_LINE) atomic_uint round;
  atomic_uint sleepers;
  atomic_bool stop;
  _Alignas(FB_CACHE_LINE) atomic_uint next; /* piece */
  _Alignas(FB_CACHE_LINE) atomic_uint running;
  atomic_int failed;
  _Alignas(FB_CACHE_LINE) atomic_bool busy;
  fb_worker workers[];
};

static void futex_wait(atomic_uint *word, unsigned seen) {
  syscall(SYS_futex, word, FB_FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word) {
  syscall(SYS_futex, word, FB_FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static int bind_to(int32_t core) {
  cpu_set_t set;
  if (core < 0 || core >= CPU_SETSIZE) return 0;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void work(fb_pool *pool) {
  fb_ctx *ctx = &pool->runtime->public;
  for (;;) {
    unsigned piece = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    int64_t offset = (int64_t)piece * pool->step;
    if (offset >= pool->end - pool->begin) return;
    if (atomic_load_explicit(&pool->failed, memory_order_relaxed)) return;
    int64_t begin = pool->begin + offset;
    int64_t end = pool->end - begin > pool->step ? begin + pool->step : pool->end;
    int32_t code = pool->body(ctx, pool->closure, begin, end);
    if (code) atomic_store_explicit(&pool->failed, code, memory_order_relaxed);
  }
}

/* Wait until `word` is no longer `seen`. */
static void await_change(fb_pool *pool, atomic_uint *word, unsigned seen, atomic_uint *sleepers) {
  for (int32_t i = 0; i < pool->spins; i++) {
    if (atomic_load_explicit(word, memory_order_acquire) != seen) return;
    fb_pause();
  }
  atomic_fetch_add(sleepers, 1);
  while (atomic_load(word) == seen) futex_wait(word, seen);
  atomic_fetch_sub(sleepers, 1);
}

static void *worker_main(void *argument) {
  fb_worker *worker = argument;
  fb_pool *pool = worker->pool;
  if (bind_to(worker->core)) atomic_fetch_add(&pool->bound, 1);
  /* The first round is known, so that one that starts before this thread does is not missed. */
  unsigned seen = 0;
  atomic_uint *running = &pool->running;
  if (atomic_fetch_sub(running, 1) == 1) futex_wake(running);
  for (;;) {
    await_change(pool, &pool->round, seen, &pool->sleepers);
    seen++;
    if (atomic_load(&pool->stop)) return NULL;
    work(pool);
    if (atomic_fetch_sub(running, 1) == 1) futex_wake(running);
  }
}

static void await_workers(fb_pool *pool) {
  for (int32_t i = 0; i < pool->spins; i++) {
    if (atomic_load_explicit(&pool->running, memory_order_acquire) == 0) return;
    fb_pause();
  }
  unsigned left;
  while ((left = atomic_load(&pool->running)) != 0) futex_wait(&pool->running, left);
}

static void start_round(fb_pool *pool) {
  atomic_fetch_add(&pool->round, 1);
  if (atomic_load(&pool->sleepers) > 0) futex_wake(&pool->round);
}

int32_t fb_parallel_for(fb_ctx *ctx, fb_body body, void *closure, int64_t begin, int64_t end) {
  fb_pool *pool = fb_runtime_of(ctx)->pool;
  if (end <= begin) return 0;
  if (pool->count == 0 || end - begin == 1 || atomic_exchange(&pool->busy, 1))
    return body(ctx, closure, begin, end);
  int64_t pieces = (int64_t)(pool->count + 1) * FB_PIECES;
  pool->body = body;
  pool->closure = closure;
  pool->begin = begin;
  pool->end = end;
  pool->step = (end - begin + pieces - 1) / pieces;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  atomic_store_explicit(&pool->failed, 0, memory_order_relaxed);
  atomic_store_explicit(&pool->running, (unsigned)pool->count, memory_order_relaxed);
  start_round(pool);
  work(pool);
  await_workers(pool);
  int32_t code = atomic_load_explicit(&pool->failed, memory_order_relaxed);
  atomic_store(&pool->busy, 0);
  return code;
}

static int start_worker(fb_pool *pool, int32_t index, int32_t core) {
  fb_worker *worker = &pool->workers[index];
  worker->pool = pool;
  worker->core = core;
  pthread_attr_t attributes;
  int code = pthread_attr_init(&attributes);
  if (code) return code;
  code = pthread_attr_setstacksize(&attributes, FB_STACK);
  if (!code) code = pthread_create(&worker->thread, &attributes, worker_main, worker);
  pthread_attr_destroy(&attributes);
  return code;
}

int32_t fb_usable_cpus(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int32_t count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > 0 ? count : 1;
}

fb_pool *fb_pool_create(fb_runtime *runtime, int32_t threads, const int32_t *cores,
                        int32_t core_count) {
  int64_t bytes = (int64_t)sizeof(fb_pool) + (int64_t)threads * (int64_t)sizeof(fb_worker);
  fb_pool *pool = fb_alloc(bytes, FB_CACHE_LINE);
  if (!pool) {
    errno = ENOMEM;
    return NULL;
  }
  *pool = (fb_pool){.runtime = runtime};
  /* With more threads than CPUs a spinning thread would only keep a working one from its CPU. */
  pool->spins = threads <= fb_usable_cpus() ? FB_SPINS : 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the threads of the host program */
  int code = 0;
  for (int32_t i = 0; i < threads - 1 && !code; i++) {
    atomic_fetch_add(&pool->running, 1);
    code = start_worker(pool, i, core_count > 0 ? cores[(i + 1) % core_count] : -1);
    if (code) atomic_fetch_sub(&pool->running, 1);
    else pool->count++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code) {
    fb_pool_destroy(pool);
    errno = code;
    return NULL;
  }
  if (core_count > 0 && bind_to(cores[0])) atomic_fetch_add(&pool->bound, 1);
  await_workers(pool);
  runtime->bound = (int32_t)atomic_load(&pool->bound);
  return pool;
}

void fb_pool_destroy(fb_pool *pool) {
  if (!pool) return;
  await_workers(pool);
  atomic_store(&pool->stop, 1);
  start_round(pool);
  for (int32_t i = 0; i < pool->count; i++) pthread_join(pool->workers[i].thread, NULL);
  fb_free(pool);
}
