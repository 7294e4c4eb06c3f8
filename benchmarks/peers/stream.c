/* The bandwidth of this machine's memory: copy and triad over arrays that no cache holds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* c[i] = a[i] */
void stream_copy(float *restrict c, const float *restrict a, int64_t n) {
  for (int64_t i = 0; i < n; i++) c[i] = a[i];
}

/* c[i] = a[i] + s * b[i] */
void stream_triad(float *restrict c, const float *restrict a, const float *restrict b, float s,
                  int64_t n) {
  for (int64_t i = 0; i < n; i++) c[i] = a[i] + s * b[i];
}
