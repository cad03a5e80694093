/* Words of 8-bit integers, which one instruction multiplies and adds up. */
#ifndef ONNXEVAL_INTEGERS_H
#define ONNXEVAL_INTEGERS_H

#include "vector.h"

typedef uint32_t Unsigned __attribute__((vector_size(LANES * 4)));
typedef int32_t LooseWords __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
INLINE Integers load_words(const int32_t *p) { return *(const LooseWords *)p; }
INLINE void store_words(int32_t *p, Integers v) { *(LooseWords *)p = v; }
INLINE Integers all_words(int32_t x) { return x - (Integers){0}; }

/* Four unsigned times four signed bytes where there is an instruction for that, else two times two 16-bit integers. */
#if defined(__AVX512VNNI__) || (defined(__SSSE3__) && !defined(__AVX512F__))
#define GROUP 4
#else
#define GROUP 2
#endif
/* Where sums of products have 16 bits on the way, signed bytes must be limited to be multiplied exactly: excess.c. */
#if GROUP == 4 && !defined(__AVX512VNNI__)
#define SATURATES 1
#else
#define SATURATES 0
#endif

INLINE Integers multiply_add(Integers sum, Integers a, Integers b) {
#if defined(__AVX512VNNI__)
    return (Integers)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX512F__)
    return sum + (Integers)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)a, (__m256i)b);
    return sum + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#elif defined(__SSSE3__)
    const __m128i pairs = _mm_maddubs_epi16((__m128i)a, (__m128i)b);
    return sum + (Integers)_mm_madd_epi16(pairs, _mm_set1_epi16(1));
#elif defined(__SSE2__)
    return sum + (Integers)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* The same of two words each, limited together. */
INLINE Integers multiply_add_both(Integers sum, Integers a, Integers b, Integers next_a, Integers next_b) {
#if SATURATES && defined(__AVX2__)
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)a, (__m256i)b), next = _mm256_maddubs_epi16((__m256i)next_a, (__m256i)next_b);
    return sum + (Integers)_mm256_madd_epi16(_mm256_add_epi16(pairs, next), _mm256_set1_epi16(1));
#elif SATURATES
    const __m128i pairs = _mm_maddubs_epi16((__m128i)a, (__m128i)b), next = _mm_maddubs_epi16((__m128i)next_a, (__m128i)next_b);
    return sum + (Integers)_mm_madd_epi16(_mm_add_epi16(pairs, next), _mm_set1_epi16(1));
#else
    return multiply_add(multiply_add(sum, a, b), next_a, next_b);
#endif
}

/* The word of up to GROUP bytes, the others zero. */
INLINE int32_t word_of(const uint8_t *bytes, ptrdiff_t step, long count, uint8_t flip, const int is_signed) {
    uint32_t word = 0;
    for (long i = 0; i < count; i++) {
        const uint8_t byte = bytes[i * step] ^ flip;
        if (GROUP == 4)
            word |= (uint32_t)byte << (8 * i);
        else
            word |= (uint32_t)(uint16_t)(is_signed ? (int16_t)(int8_t)byte : (int16_t)byte) << (16 * i);
    }
    return (int32_t)word;
}

#endif
