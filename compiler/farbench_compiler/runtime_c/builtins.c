/* Helpers that LLVM's code calls where a machine lacks an instruction; hidden in each library, so
 * that it needs no compiler's support library on the board. What is not called is not linked. */
#include <stdint.h>

#include "half.h"

#if defined(__arm__)
/* The ARM run-time ABI passes floats to its helpers in integer registers, also on hard-float. */
#define FB_HELPER __attribute__((pcs("aapcs")))

FB_HELPER uint16_t __gnu_f2h_ieee(float value) { return fb_double_to_half(value); }
FB_HELPER uint16_t __aeabi_f2h(float value) { return fb_double_to_half(value); }
FB_HELPER uint16_t __aeabi_d2h(double value) { return fb_double_to_half(value); }
FB_HELPER float __gnu_h2f_ieee(uint16_t half) { return fb_half_to_float(half); }
FB_HELPER float __aeabi_h2f(uint16_t half) { return fb_half_to_float(half); }

/* Divide by shifting and subtracting; 0 for a zero divisor, which no correct program reaches. */
static uint32_t divide32(uint32_t number, uint32_t divisor, uint32_t *rest) {
  uint32_t quotient = 0;
  if (divisor && divisor <= number) {
    int shift = __builtin_clz(divisor) - __builtin_clz(number);
    for (uint32_t part = divisor << shift; shift >= 0; shift--, part >>= 1) {
      quotient <<= 1;
      if (number >= part) number -= part, quotient |= 1;
    }
  }
  *rest = number;
  return quotient;
}

static uint64_t divide64(uint64_t number, uint64_t divisor, uint64_t *rest) {
  uint64_t quotient = 0;
  if (!(number >> 32) && !(divisor >> 32)) {
    uint32_t rest32;
    quotient = divide32((uint32_t)number, (uint32_t)divisor, &rest32);
    *rest = rest32;
    return quotient;
  }
  if (divisor && divisor <= number) {
    int shift = __builtin_clzll(divisor) - __builtin_clzll(number);
    for (uint64_t part = divisor << shift; shift >= 0; shift--, part >>= 1) {
      quotient <<= 1;
      if (number >= part) number -= part, quotient |= 1;
    }
  }
  *rest = number;
  return quotient;
}

static uint32_t size32(int32_t value) { return value < 0 ? -(uint32_t)value : (uint32_t)value; }

static uint64_t size64(int64_t value) { return value < 0 ? -(uint64_t)value : (uint64_t)value; }

/* Quotient in r0, remainder in r1: as one 64-bit value. */
FB_HELPER uint64_t __aeabi_uidivmod(uint32_t number, uint32_t divisor) {
  uint32_t rest, quotient = divide32(number, divisor, &rest);
  return (uint64_t)rest << 32 | quotient;
}

FB_HELPER uint32_t __aeabi_uidiv(uint32_t number, uint32_t divisor) {
  uint32_t rest;
  return divide32(number, divisor, &rest);
}

FB_HELPER uint64_t __aeabi_idivmod(int32_t number, int32_t divisor) {
  uint32_t rest, quotient = divide32(size32(number), size32(divisor), &rest);
  if ((number ^ divisor) < 0) quotient = -quotient;
  if (number < 0) rest = -rest;
  return (uint64_t)rest << 32 | quotient;
}

FB_HELPER int32_t __aeabi_idiv(int32_t number, int32_t divisor) {
  return (int32_t)__aeabi_idivmod(number, divisor);
}

__attribute__((used)) static uint64_t fb_uldivmod(uint64_t number, uint64_t divisor,
                                                  uint64_t *rest) {
  return divide64(number, divisor, rest);
}

__attribute__((used)) static uint64_t fb_ldivmod(int64_t number, int64_t divisor, uint64_t *rest) {
  uint64_t quotient = divide64(size64(number), size64(divisor), rest);
  if (number < 0) *rest = -*rest;
  return (number ^ divisor) < 0 ? -quotient : quotient;
}

/* Quotient in r0:r1, remainder in r2:r3, which C cannot return. */
#define FB_DIVMOD(name, function)                                                              \
  __attribute__((naked)) void name(void) {                                                     \
    __asm__("push {r6, lr}\n sub sp, sp, #16\n add r6, sp, #8\n str r6, [sp]\n bl " #function \
            "\n ldr r2, [sp, #8]\n ldr r3, [sp, #12]\n add sp, sp, #16\n pop {r6, pc}");      \
  }
FB_DIVMOD(__aeabi_uldivmod, fb_uldivmod)
FB_DIVMOD(__aeabi_ldivmod, fb_ldivmod)

/* The high word is exact as a double, so that the sum is rounded once. */
FB_HELPER double __aeabi_ul2d(uint64_t value) {
  return (double)(uint32_t)(value >> 32) * 0x1p32 + (double)(uint32_t)value;
}

FB_HELPER double __aeabi_l2d(int64_t value) {
  return (double)(int32_t)(value >> 32) * 0x1p32 + (double)(uint32_t)value;
}

/* Beyond 53 bits the lowest ones become a sticky bit, so that only the last step rounds. */
FB_HELPER float __aeabi_ul2f(uint64_t value) {
  if (value >> 53) value = (value & ~UINT64_C(0x7FF)) | (value & 0x7FF ? 0x800 : 0);
  return (float)__aeabi_ul2d(value);
}

FB_HELPER float __aeabi_l2f(int64_t value) {
  float size = __aeabi_ul2f(size64(value));
  return value < 0 ? -size : size;
}

FB_HELPER uint64_t __aeabi_d2ulz(double value) {
  uint32_t high = (uint32_t)(value * 0x1p-32);
  uint32_t low = (uint32_t)(value - (double)high * 0x1p32);
  return (uint64_t)high << 32 | low;
}

FB_HELPER int64_t __aeabi_d2lz(double value) {
  return value < 0 ? (int64_t)-__aeabi_d2ulz(-value) : (int64_t)__aeabi_d2ulz(value);
}

FB_HELPER uint64_t __aeabi_f2ulz(float value) { return __aeabi_d2ulz(value); }
FB_HELPER int64_t __aeabi_f2lz(float value) { return __aeabi_d2lz(value); }

/* Named by unwind tables; nothing here throws. */
void __aeabi_unwind_cpp_pr0(void) {}
void __aeabi_unwind_cpp_pr1(void) {}
void __aeabi_unwind_cpp_pr2(void) {}

#elif !defined(__aarch64__)

static uint16_t bits_of(_Float16 half) {
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

static _Float16 half_of(uint16_t bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof half);
  return half;
}

float __extendhfsf2(_Float16 half) { return fb_half_to_float(bits_of(half)); }
_Float16 __truncsfhf2(float value) { return half_of(fb_double_to_half(value)); }
_Float16 __truncdfhf2(double value) { return half_of(fb_double_to_half(value)); }

#endif
