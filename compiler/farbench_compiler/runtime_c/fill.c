/* Seeded fill of arrays; farbench_runtime.h has the formulas, which others repeat bit for bit. */
#include "internal.h"

#include <math.h>

#include "half.h"

#pragma STDC FP_CONTRACT OFF

static inline uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static inline double uniform(uint64_t seed, int64_t index, double low, double width) {
  double u = (double)(random_bits(seed, (uint64_t)index) >> 11) * 0x1p-53;
  double scaled = u * width;
  return low + scaled;
}

static void fill_float(int32_t dtype, void *pointer, int64_t count, uint64_t seed, int32_t kind,
                       double low, double high) {
  double width = kind == FB_UNIFORM ? high - low : 0;
  for (int64_t i = 0; i < count; i++) {
    double value = kind == FB_UNIFORM ? uniform(seed, i, low, width) : low;
    if (dtype == FB_BFLOAT16) ((uint16_t *)pointer)[i] = fb_double_to_bfloat(value);
    else if (dtype == FB_FLOAT16) ((uint16_t *)pointer)[i] = fb_double_to_half(value);
    else if (dtype == FB_FLOAT32) ((float *)pointer)[i] = (float)value;
    else ((double *)pointer)[i] = value;
  }
}

static void store_int(int32_t dtype, void *pointer, int64_t i, uint64_t value) {
  switch (dtype) {
    case FB_INT16: case FB_UINT16: ((uint16_t *)pointer)[i] = (uint16_t)value; break;
    case FB_INT32: case FB_UINT32: ((uint32_t *)pointer)[i] = (uint32_t)value; break;
    case FB_INT64: case FB_UINT64: ((uint64_t *)pointer)[i] = value; break;
    default: ((uint8_t *)pointer)[i] = (uint8_t)value; break;
  }
}

/* Limits as doubles: first <= x < past. */
static int limits(int32_t dtype, double *first, double *past) {
  switch (dtype) {
    case FB_INT8: *first = -0x1p7, *past = 0x1p7; return 1;
    case FB_INT16: *first = -0x1p15, *past = 0x1p15; return 1;
    case FB_INT32: *first = -0x1p31, *past = 0x1p31; return 1;
    case FB_INT64: *first = -0x1p63, *past = 0x1p63; return 1;
    case FB_UINT8: *first = 0, *past = 0x1p8; return 1;
    case FB_UINT16: *first = 0, *past = 0x1p16; return 1;
    case FB_UINT32: *first = 0, *past = 0x1p32; return 1;
    case FB_UINT64: *first = 0, *past = 0x1p64; return 1;
    default: return 0;
  }
}

static int32_t fill_int(int32_t dtype, void *pointer, int64_t count, uint64_t seed, int32_t kind,
                        double low, double high) {
  double least, past;
  if (!limits(dtype, &least, &past)) return FB_BAD_ARGUMENT;
  double first = ceil(low), end = kind == FB_UNIFORM ? ceil(high) : first;
  if (!(first >= least && first < past && end <= past)) return FB_BAD_ARGUMENT;
  uint64_t base = first < 0 ? (uint64_t)(int64_t)first : (uint64_t)first;
  if (kind == FB_CONSTANT) {
    if (low != first) return FB_BAD_ARGUMENT;
    for (int64_t i = 0; i < count; i++) store_int(dtype, pointer, i, base);
    return 0;
  }
  double width = end - first;
  if (!(width >= 1)) return FB_BAD_ARGUMENT;
  uint64_t range = width >= 0x1p64 ? 0 : (uint64_t)width;
  for (int64_t i = 0; i < count; i++) {
    uint64_t r = random_bits(seed, (uint64_t)i);
    if (width <= 0x1p32) r = ((r >> 32) * range) >> 32;
    else if (range) r %= range;
    store_int(dtype, pointer, i, base + r);
  }
  return 0;
}

static void fill_bool(uint8_t *pointer, int64_t count, uint64_t seed, int32_t kind, double low) {
  for (int64_t i = 0; i < count; i++)
    pointer[i] = kind == FB_UNIFORM ? random_bits(seed, (uint64_t)i) >> 63 : low != 0;
}

int32_t fb_fill(int32_t dtype, void *pointer, int64_t count, uint64_t seed, int32_t kind,
                double low, double high) {
  if (dtype < 0 || dtype >= FB_DTYPES || kind < FB_UNIFORM || kind > FB_CONSTANT || count < 0)
    return FB_BAD_ARGUMENT;
  if (dtype == FB_BOOL) {
    fill_bool(pointer, count, seed, kind, low);
    return 0;
  }
  if (dtype > FB_FLOAT64 && dtype != FB_BFLOAT16)
    return fill_int(dtype, pointer, count, seed, kind, low, high);
  if (kind == FB_UNIFORM && !(low < high && high - low <= 0x1.fffffffffffffp1023))
    return FB_BAD_ARGUMENT;
  fill_float(dtype, pointer, count, seed, kind, low, high);
  return 0;
}
