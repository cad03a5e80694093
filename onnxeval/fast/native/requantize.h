/* Sums of integers become integers of 8 bits: exactly what arithmetic in 64-bit floats gives, most of it in 32 bits. */
#ifndef ONNXEVAL_REQUANTIZE_H
#define ONNXEVAL_REQUANTIZE_H

#include <math.h>

#include "bytes.h"
#include "kernels.h"

/* Three roundings of a quotient below 256, as all are that do not saturate, move it by less than MARGIN; more than that from
   a tie they change nothing. */
#define MARGIN 0x1p-14f
/* Quotients beyond it saturate, whatever the zero point. */
#define MOST_QUOTIENT 512.0f

/* The nearest integers, and in `worst` the largest distance of a quotient to its integer. Of factors below 1 the quotient is
   an integer of 32 bits: they are `small`. */
INLINE Integers quotients(Integers sum, Vector factor, const int small, Vector *worst) {
    Vector quotient = __builtin_convertvector(sum, Vector) * factor;
    if (!small) quotient = larger(smaller(quotient, all(MOST_QUOTIENT)), all(-MOST_QUOTIENT));
#if defined(__AVX512F__)
    *worst = (Vector)_mm512_range_ps((__m512)*worst, _mm512_reduce_ps((__m512)quotient, 0), 0x0b);
    return (Integers)_mm512_cvtps_epi32((__m512)quotient);
#else
#if defined(__AVX2__)
    const Integers nearest = (Integers)_mm256_cvtps_epi32((__m256)quotient);
#elif defined(__SSE2__)
    const Integers nearest = (Integers)_mm_cvtps_epi32((__m128)quotient);
#else
    Integers nearest;
    for (int lane = 0; lane < LANES; lane++) nearest[lane] = (int32_t)__builtin_rintf(quotient[lane]);
#endif
    const Vector off = quotient - __builtin_convertvector(nearest, Vector);
    *worst = larger(*worst, (Vector)((Integers)off & all_words(0x7fffffff)));
    return nearest;
#endif
}

INLINE int near_tie(Vector worst) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)worst, _mm512_set1_ps(0.5f - MARGIN), _CMP_GT_OQ) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)(worst > all(0.5f - MARGIN))) != 0;
#elif defined(__SSE2__)
    return _mm_movemask_ps((__m128)(worst > all(0.5f - MARGIN))) != 0;
#else
    return largest_of(worst) > 0.5f - MARGIN;
#endif
}

/* How the numbers of four vectors lie: one vector after the other, or in each 128 bits four of each vector. */
enum { IN_ORDER, BY_LANES };

INLINE long place_of(long column, const int order) {
    return order == IN_ORDER ? column : column % 16 / 4 * LANES + column / 16 * 4 + column % 4;
}

/* The integers of four vectors as bytes, in their order. */
INLINE Bytes saturated(const Integers *v, const Requantization *how, const int order) {
    Bytes bytes;
#if defined(__AVX512F__)
    const __m512i zero = _mm512_set1_epi16((short)how->zero);
    const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]), zero);
    const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]), zero);
    __m512i packed = how->is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    if (order == IN_ORDER)
        packed = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
    bytes = (Bytes)packed;
#elif defined(__AVX2__)
    const __m256i zero = _mm256_set1_epi16((short)how->zero);
    const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]), zero);
    const __m256i high = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]), zero);
    __m256i packed = how->is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    if (order == IN_ORDER) packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    bytes = (Bytes)packed;
#elif defined(__SSE2__)
    (void)order;
    const __m128i zero = _mm_set1_epi16((short)how->zero);
    const __m128i low = _mm_adds_epi16(_mm_packs_epi32((__m128i)v[0], (__m128i)v[1]), zero);
    const __m128i high = _mm_adds_epi16(_mm_packs_epi32((__m128i)v[2], (__m128i)v[3]), zero);
    bytes = (Bytes)(how->is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high));
#else
    const int32_t *each = (const int32_t *)v, lowest = how->is_signed ? -128 : 0;
    for (long j = 0; j < COLUMNS; j++) {
        const int32_t value = each[place_of(j, order)] + how->zero;
        bytes[j] = (uint8_t)(value < lowest ? lowest : value > lowest + 255 ? lowest + 255 : value);
    }
#endif
    if (how->is_bounded) {
        typedef int8_t Signed __attribute__((vector_size(COLUMNS)));
        const Bytes turn = all_bytes(how->is_signed ? 0x80 : 0);
        const Bytes lowest = all_bytes((uint8_t)how->lowest) ^ turn, highest = all_bytes((uint8_t)how->highest) ^ turn;
        bytes ^= turn;
        const Bytes below = (Bytes)(Signed)(bytes < lowest);
        bytes = (lowest & below) | (bytes & ~below);
        const Bytes above = (Bytes)(Signed)(bytes > highest);
        bytes = ((highest & above) | (bytes & ~above)) ^ turn;
    }
    return bytes;
}

INLINE uint8_t requantized_exactly(int32_t sum, double multiplier, double divisor, const Requantization *how) {
    double value = __builtin_rint((double)sum * multiplier / divisor) + how->zero;
    value = value < how->lowest ? how->lowest : value > how->highest ? how->highest : value;
    return (uint8_t)(int32_t)value;
}

/* What is added to the sums of products of the integers of a map where no zero point of weights matters. */
INLINE int32_t constant_of(const IntegerConvolution *q, long map) {
    const IntegerFilters *w = q->w;
    const uint32_t origin = (uint32_t)q->x_zero;
    return (int32_t)((uint32_t)w->bias[map] - origin * (uint32_t)w->sums[map] + (uint32_t)w->depth * origin * (uint32_t)w->zero[map]);
}

/* Sums of a panel, in order or by lanes, become integers of 8 bits. */
INLINE Bytes finished(const IntegerConvolution *q, const Integers *sums, long map, const int order) {
    const IntegerFilters *w = q->w;
    const Vector factor = all(w->factor[map]);
    Vector worst = {0};
    Integers v[4];
    if (fabsf(w->factor[map]) < 1)
        UNROLL for (int j = 0; j < 4; j++) v[j] = quotients(sums[j], factor, 1, &worst);
    else
        UNROLL for (int j = 0; j < 4; j++) v[j] = quotients(sums[j], factor, 0, &worst);
    Bytes bytes = saturated(v, &q->how, order);
    if (near_tie(worst)) {
        int32_t each[COLUMNS];
        uint8_t exact[COLUMNS];
        for (int j = 0; j < 4; j++) store_words(each + j * LANES, sums[j]);
        for (long j = 0; j < COLUMNS; j++)
            exact[j] = requantized_exactly(each[place_of(j, order)], w->multiplier[map], w->divisor, &q->how);
        bytes = load_bytes(exact);
    }
    return bytes;
}

#endif
