/* Vectors of floats as wide as the tier has them. Nothing here reads or writes a lane that it was not asked for. */
#ifndef ONNXEVAL_VECTOR_H
#define ONNXEVAL_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

/* Every function of a kernel file exists once a tier: NAMED(gemm) is gemm_v3 where TIER is v3. */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAMED(name) JOIN(name, TIER)

typedef float Vector __attribute__((vector_size(LANES * 4)));
typedef int32_t Integers __attribute__((vector_size(LANES * 4)));
typedef float Unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

INLINE Vector load(const float *p) { return *(const Unaligned *)p; }
INLINE void store(float *p, Vector v) { *(Unaligned *)p = v; }

INLINE Vector all(float x) {
#if defined(__AVX512F__)
    return (Vector)_mm512_set1_ps(x);
#elif defined(__AVX2__)
    return (Vector)_mm256_set1_ps(x);
#else
    return (Vector){x, x, x, x};
#endif
}

INLINE Vector zero(void) { return (Vector){0}; }

/* The larger or smaller one, the second where either is NaN. */
INLINE Vector larger(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (Vector)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (Vector)_mm_max_ps((__m128)a, (__m128)b);
#else
    Integers first = a > b;
    return (Vector)(((Integers)a & first) | ((Integers)b & ~first));
#endif
}

INLINE Vector smaller(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (Vector)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (Vector)_mm_min_ps((__m128)a, (__m128)b);
#else
    Integers first = a < b;
    return (Vector)(((Integers)a & first) | ((Integers)b & ~first));
#endif
}

/* Lanes of a where the mask is all ones, of b where it is zero. */
INLINE Vector choose(Integers mask, Vector a, Vector b) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    return (Vector)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (Vector)(((Integers)a & mask) | ((Integers)b & ~mask));
#endif
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/* The mask of lanes first <= lane < last. */
INLINE __m256i lanes_(long first, long last) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)last), lane);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)first), lane), before);
}
#endif

/* Lanes first <= lane < last of the vector at p, zero in the others, which are not read: p itself may lie outside. */
INLINE Vector load_lanes(const float *p, long first, long last) {
#if defined(__AVX512F__)
    __mmask16 mask = (__mmask16)(((1u << last) - 1) & ~((1u << first) - 1));
    return (Vector)_mm512_maskz_loadu_ps(mask, p);
#elif defined(__AVX2__)
    return (Vector)_mm256_maskload_ps(p, lanes_(first, last));
#else
    Vector v = {0};
    for (long lane = first; lane < last; lane++) v[lane] = p[lane];
    return v;
#endif
}

INLINE Vector load_first(const float *p, long count) {
#if defined(__AVX512F__)
    return (Vector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
#elif defined(__AVX2__)
    return (Vector)_mm256_maskload_ps(p, lanes_(0, count));
#else
    Vector v = {0};
    for (long lane = 0; lane < count; lane++) v[lane] = p[lane];
    return v;
#endif
}

INLINE void store_first(float *p, Vector v, long count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), (__m512)v);
#elif defined(__AVX2__)
    _mm256_maskstore_ps(p, lanes_(0, count), (__m256)v);
#else
    for (long lane = 0; lane < count; lane++) p[lane] = v[lane];
#endif
}

/* Lanes first <= lane < last hold p[2 * lane], the others zero; nothing else is read. */
INLINE Vector load_even(const float *p, long first, long last) {
#if defined(__AVX512F__)
    const Integers even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    uint32_t wanted = 0x55555555u;
    uint64_t mask = last > first ? (wanted & ((1ull << (2 * last - 1)) - 1) & ~((1ull << (2 * first)) - 1)) : 0;
    __m512 low = _mm512_maskz_loadu_ps((__mmask16)mask, p);
    __m512 high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), p + 16);
    return (Vector)_mm512_permutex2var_ps(low, (__m512i)even, high);
#elif defined(__AVX2__)
    __m256 low = _mm256_maskload_ps(p, lanes_(2 * first, 2 * last - 1));
    __m256 high = _mm256_maskload_ps(p + 8, lanes_(2 * first - 8, 2 * last - 9));
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    return (Vector)_mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
#else
    Vector v = {0};
    for (long lane = first; lane < last; lane++) v[lane] = p[2 * lane];
    return v;
#endif
}

/* Lanes first <= lane < last hold p[stride * lane], the others zero; nothing else is read. */
INLINE Vector load_strided(const float *p, const long stride, long first, long last) {
    if (stride == 1) return load_lanes(p, first, last);
    if (stride == 2) return load_even(p, first, last);
    Vector v = {0};
    for (long lane = first; lane < last; lane++) v[lane] = p[stride * lane];
    return v;
}

/* The same lanes of many vectors, made ready once. */
typedef struct {
    long first, last;
#if defined(__AVX512F__)
    __mmask16 low, high;
#elif defined(__AVX2__)
    __m256i low, high;
#endif
} Lanes;

INLINE Lanes lanes_of(const long stride, long first, long last) {
    Lanes lanes = {.first = first, .last = last};
    if (stride > 2) return lanes;
#if defined(__AVX512F__)
    const uint64_t wanted = stride == 2 ? 0x55555555u : 0xffffu;
    const uint64_t mask = last > first ? wanted & ((1ull << (stride * (last - 1) + 1)) - 1) & ~((1ull << (stride * first)) - 1) : 0;
    lanes.low = (__mmask16)mask;
    lanes.high = (__mmask16)(mask >> 16);
#elif defined(__AVX2__)
    const long begin = stride * first, end = last > first ? stride * (last - 1) + 1 : begin;
    lanes.low = lanes_(begin, end);
    lanes.high = lanes_(begin - 8, end - 8);
#endif
    return lanes;
}

/* As load_strided. */
INLINE Vector load_set(const float *p, const long stride, const Lanes *lanes) {
    if (stride > 2) return load_strided(p, stride, lanes->first, lanes->last);
#if defined(__AVX512F__)
    const Integers even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    __m512 low = _mm512_maskz_loadu_ps(lanes->low, p);
    if (stride == 1) return (Vector)low;
    if (!lanes->high) return (Vector)_mm512_permutex2var_ps(low, (__m512i)even, _mm512_setzero_ps());
    return (Vector)_mm512_permutex2var_ps(low, (__m512i)even, _mm512_maskz_loadu_ps(lanes->high, p + 16));
#elif defined(__AVX2__)
    __m256 low = _mm256_maskload_ps(p, lanes->low);
    if (stride == 1) return (Vector)low;
    __m256 high = _mm256_maskload_ps(p + 8, lanes->high);
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    return (Vector)_mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
#else
    return load_strided(p, stride, lanes->first, lanes->last);
#endif
}

INLINE float sum_of(Vector v) {
    float each[LANES];
    store(each, v);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) each[lane] += each[lane + half];
    return each[0];
}

INLINE float largest_of(Vector v) {
    float each[LANES];
    store(each, v);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            each[lane] = each[lane] > each[lane + half] || each[lane] != each[lane] ? each[lane] : each[lane + half];
    return each[0];
}

#endif
