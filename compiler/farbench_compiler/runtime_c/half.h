/* IEEE half precision and bfloat16 by integers alone, so that no conversion calls the very helper it is in. */
#ifndef FARBENCH_HALF_H
#define FARBENCH_HALF_H
#include <stdint.h>
#include <string.h>

/* Round a double to half precision, to nearest even; a NaN keeps the top of its payload. */
static inline uint16_t fb_double_to_half(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  uint64_t magnitude = bits & INT64_MAX;
  if (magnitude > UINT64_C(0x7FF0000000000000))
    return sign | 0x7E00 | (uint16_t)(magnitude >> 42 & 0x1FF);
  int32_t exponent = (int32_t)(magnitude >> 52) - 1023;
  if (exponent > 15) return sign | 0x7C00;
  if (exponent < -25) return sign;
  uint64_t mantissa = (magnitude & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(1) << 52;
  /* A subnormal half drops as many bits more as the exponent lies below its least. */
  int32_t dropped = 42 + (exponent < -14 ? -14 - exponent : 0);
  uint64_t kept = mantissa >> dropped, rest = mantissa & ((UINT64_C(1) << dropped) - 1);
  uint64_t middle = UINT64_C(1) << (dropped - 1);
  if (rest > middle || (rest == middle && (kept & 1))) kept++;
  /* `kept` holds the hidden bit, which adds one to the exponent field; a carry does the same. */
  uint64_t field = exponent < -14 ? 0 : (uint64_t)(exponent + 14) << 10;
  return sign | (uint16_t)(field + kept);
}

/* Round a double to bfloat16, the upper half of a float, to nearest even; a NaN keeps its sign. */
static inline uint16_t fb_double_to_bfloat(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  uint64_t magnitude = bits & INT64_MAX;
  if (magnitude > UINT64_C(0x7FF0000000000000)) return sign | 0x7FC0;
  int32_t exponent = (int32_t)(magnitude >> 52) - 1023;
  if (exponent > 127) return sign | 0x7F80;
  if (exponent < -134) return sign;
  uint64_t mantissa = (magnitude & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(1) << 52;
  int32_t dropped = 45 + (exponent < -126 ? -126 - exponent : 0);
  uint64_t kept = mantissa >> dropped, rest = mantissa & ((UINT64_C(1) << dropped) - 1);
  uint64_t middle = UINT64_C(1) << (dropped - 1);
  if (rest > middle || (rest == middle && (kept & 1))) kept++;
  uint64_t field = exponent < -126 ? 0 : (uint64_t)(exponent + 126) << 7;
  return sign | (uint16_t)(field + kept);
}

static inline float fb_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
  uint32_t bits;
  if (exponent == 31) {
    bits = 0x7F800000 | mantissa << 13 | (mantissa ? 0x400000 : 0);
  } else if (exponent) {
    bits = (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa) {
    uint32_t shift = (uint32_t)__builtin_clz(mantissa) - 21; /* until the hidden bit is in place */
    bits = (113 - shift) << 23 | (mantissa << shift & 0x3FF) << 13;
  } else {
    bits = 0;
  }
  bits |= sign;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
