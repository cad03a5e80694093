/* float16 and bfloat16 beside float32: exact one way, rounded to the nearest, ties to even, the other. */
#ifndef ONNXEVAL_HALF_H
#define ONNXEVAL_HALF_H

#include "vector.h"

INLINE uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

INLINE float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

INLINE float widened_float16(uint16_t h) {
    const uint32_t rest = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t bits = bits_of(float_of(rest << 13) * 0x1p112f); /* subnormal ones come out right as well */
    return float_of(bits | (rest >= 0x7c00u ? 0x7f800000u : 0) | sign);
}

INLINE uint16_t narrowed_float16(float x) {
    const uint32_t bits = bits_of(x), rest = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    const uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13;
    const uint32_t subnormal = bits_of(float_of(rest) + 0.5f) - 0x3f000000u; /* the sum rounds at the last place there is */
    uint32_t half = rest < 0x38800000u ? subnormal : normal;
    half = rest >= 0x477ff000u ? 0x7c00u : half;
    half = rest > 0x7f800000u ? 0x7e00u : half;
    return (uint16_t)(half | sign);
}

INLINE uint16_t narrowed_bfloat16(float x) {
    const uint32_t bits = bits_of(x);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u | (bits >> 16 & 0x8000u) : rounded);
}

INLINE void widen_float16(float *y, const uint16_t *x, long n) {
    long i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++) y[i] = widened_float16(x[i]);
}

INLINE void narrow_float16(uint16_t *y, const float *x, long n) {
    long i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) _mm256_storeu_si256((__m256i *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) y[i] = narrowed_float16(x[i]);
}

INLINE void widen_bfloat16(float *y, const uint16_t *x, long n) {
    for (long i = 0; i < n; i++) y[i] = float_of((uint32_t)x[i] << 16);
}

INLINE void narrow_bfloat16(uint16_t *y, const float *x, long n) {
    for (long i = 0; i < n; i++) y[i] = narrowed_bfloat16(x[i]);
}

#endif
