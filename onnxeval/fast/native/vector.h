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
#elif defined(__SANITIZE_ADDRESS__)
#define UNROLL /* what watches every access is too large to repeat */
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

/* a / b rounded up, for a on either side of zero. */
INLINE long ceil_div(long a, long b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

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

/* Lanes of a where the mask is all ones, of b where it is zero. */
INLINE Vector choose(Integers mask, Vector a, Vector b) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    return (Vector)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (Vector)(((Integers)a & mask) | ((Integers)b & ~mask));
#endif
}

/* The larger one, NaN where either is. */
INLINE Vector larger_or_nan(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_mask_max_ps((__m512)a, _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q), (__m512)a, (__m512)b);
#else
    return choose(a != a, a, larger(a, b));
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

/* The same, with the lanes of another vector instead of zero. */
INLINE Vector load_lanes_or(const float *p, long first, long last, Vector other) {
#if defined(__AVX512F__)
    __mmask16 mask = (__mmask16)(((1u << last) - 1) & ~((1u << first) - 1));
    return (Vector)_mm512_mask_loadu_ps((__m512)other, mask, p);
#elif defined(__AVX2__)
    const __m256i mask = lanes_(first, last);
    return (Vector)_mm256_blendv_ps((__m256)other, _mm256_maskload_ps(p, mask), (__m256)mask);
#else
    for (long lane = first; lane < last; lane++) other[lane] = p[lane];
    return other;
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
    if (count == LANES) {
        store(p, v);
        return;
    }
    /* a masked store is dozens of operations on some processors */
    __m128 part = _mm256_castps256_ps128((__m256)v);
    if (count & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
    }
    if (count & 2) {
        _mm_storel_pi((__m64 *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (count & 1) _mm_store_ss(p, part);
#else
    for (long lane = 0; lane < count; lane++) p[lane] = v[lane];
#endif
}

/* The elements of a and then b with even numbers, and those with odd ones. */
INLINE Vector even_of(Vector a, Vector b) {
#if defined(__AVX512F__)
    const Integers even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    return (Vector)_mm512_permutex2var_ps((__m512)a, (__m512i)even, (__m512)b);
#elif defined(__AVX2__)
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88));
    return (Vector)_mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
#elif defined(__SSE2__)
    return (Vector)_mm_shuffle_ps((__m128)a, (__m128)b, 0x88);
#else
    return (Vector){a[0], a[2], b[0], b[2]};
#endif
}

INLINE Vector odd_of(Vector a, Vector b) {
#if defined(__AVX512F__)
    const Integers odd = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    return (Vector)_mm512_permutex2var_ps((__m512)a, (__m512i)odd, (__m512)b);
#elif defined(__AVX2__)
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd));
    return (Vector)_mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
#elif defined(__SSE2__)
    return (Vector)_mm_shuffle_ps((__m128)a, (__m128)b, 0xdd);
#else
    return (Vector){a[1], a[3], b[1], b[3]};
#endif
}

/* All elements of a but the first, then the first of b. */
INLINE Vector shifted(Vector a, Vector b) {
#if defined(__AVX512F__)
    return (Vector)_mm512_alignr_epi32((__m512i)b, (__m512i)a, 1);
#elif defined(__AVX2__)
    const Integers next = {1, 2, 3, 4, 5, 6, 7, 0};
    return (Vector)_mm256_permutevar8x32_ps(_mm256_blend_ps((__m256)a, (__m256)b, 1), (__m256i)next);
#else
    return (Vector){a[1], a[2], a[3], b[0]};
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

/* Rows become columns. */
INLINE void turn(Vector v[LANES]) {
#if defined(__AVX512F__)
    __m512 t[16], r[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps((__m512)v[i], (__m512)v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps((__m512)v[i], (__m512)v[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) UNROLL for (int j = 0; j < 2; j++) {
        const __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);
        r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
    UNROLL for (int j = 0; j < 4; j++) {
        const __m512 a = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88), b = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88);
        const __m512 c = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd), d = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
        v[j] = (Vector)_mm512_shuffle_f32x4(a, b, 0x88);
        v[4 + j] = (Vector)_mm512_shuffle_f32x4(c, d, 0x88);
        v[8 + j] = (Vector)_mm512_shuffle_f32x4(a, b, 0xdd);
        v[12 + j] = (Vector)_mm512_shuffle_f32x4(c, d, 0xdd);
    }
#elif defined(__AVX2__)
    __m256 t[8], r[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps((__m256)v[i], (__m256)v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps((__m256)v[i], (__m256)v[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int j = 0; j < 2; j++) {
        r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
        r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
    }
    UNROLL for (int j = 0; j < 4; j++) {
        v[j] = (Vector)_mm256_permute2f128_ps(r[j], r[4 + j], 0x20);
        v[4 + j] = (Vector)_mm256_permute2f128_ps(r[j], r[4 + j], 0x31);
    }
#else
    float each[LANES][LANES];
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < LANES; j++) each[j][i] = v[i][j];
    for (int i = 0; i < LANES; i++) v[i] = load(each[i]);
#endif
}

INLINE float sum_of(Vector v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#elif defined(__AVX2__)
    __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
#else
    float each[LANES];
    store(each, v);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) each[lane] += each[lane + half];
    return each[0];
#endif
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
