/* The context: made once a worker, passed to every kernel. */
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int32_t fb_abi_version(void) { return FB_ABI_VERSION; }

int32_t fb_fail(fb_ctx *ctx, int32_t code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ctx->error, sizeof ctx->error, format, arguments);
  va_end(arguments);
  return code;
}

fb_ctx *fb_ctx_create(int32_t threads, const int32_t *cores, int32_t core_count) {
  if (threads < 0 || threads > 4096 || core_count < 0 || (core_count > 0 && !cores)) {
    errno = EINVAL;
    return NULL;
  }
  fb_runtime *runtime = fb_alloc(sizeof *runtime, FB_CACHE_LINE);
  if (!runtime) {
    errno = ENOMEM;
    return NULL;
  }
  *runtime = (fb_runtime){.blocks_lock = ATOMIC_FLAG_INIT};
  runtime->public.abi = FB_ABI_VERSION;
  runtime->public.parallel_for = fb_parallel_for;
  runtime->public.workspace = fb_workspace_take;
  runtime->public.workspace_release = fb_workspace_release;
  runtime->public.threads = threads > 0 ? threads : fb_usable_cpus();
  runtime->pool = fb_pool_create(runtime, runtime->public.threads, cores, core_count);
  if (!runtime->pool) {
    int reason = errno;
    fb_free(runtime);
    errno = reason;
    return NULL;
  }
  return &runtime->public;
}

void fb_ctx_destroy(fb_ctx *ctx) {
  if (!ctx) return;
  fb_runtime *runtime = fb_runtime_of(ctx);
  fb_pool_destroy(runtime->pool);
  fb_workspace_drop(runtime);
  fb_free(runtime->flush_buffer);
  fb_free(runtime);
}

const char *fb_ctx_error(fb_ctx *ctx) { return ctx->error; }

void fb_ctx_clear(fb_ctx *ctx) { ctx->error[0] = 0; }

int32_t fb_ctx_bound(fb_ctx *ctx) { return fb_runtime_of(ctx)->bound; }
