/* Floats as codes of 8 bits: 0 to 255 stand for their range, made to include 0, as DynamicQuantizeLinear has it. */
#ifndef ONNXEVAL_CODES_H
#define ONNXEVAL_CODES_H

#include <math.h>

#include "integers.h"

typedef struct {
    Vector low, high, spoilt; /* spoilt: NaN where something is not finite */
} Range;

/* The same as numbers. */
typedef struct {
    float low, high, spoilt;
} Bounds;

typedef struct {
    float scale;  /* NaN where something was not finite: all sums become NaN */
    int32_t zero; /* the code of 0 */
    int blank;    /* whether all codes are 0, as there is no range to speak of */
} Coding;

INLINE void widen(Range *range, const float *x, long count) {
    for (long i = 0; i < count; i += LANES) {
        const Vector v = count - i < LANES ? load_first(x + i, count - i) : load(x + i);
        range->low = smaller(v, range->low);
        range->high = larger(v, range->high);
        range->spoilt += v * zero();
    }
}

INLINE Bounds bounds_of(const Range *range) {
    return (Bounds){-largest_of(-range->low), largest_of(range->high), sum_of(range->spoilt)};
}

INLINE Coding coding_of(const Bounds *bounds) {
    Coding coding = {.scale = bounds->spoilt != 0 ? NAN : (bounds->high - bounds->low) / 255.0f};
    coding.blank = !(coding.scale > 0 && coding.scale < INFINITY);
    if (!coding.blank) coding.zero = (int32_t)MINIMUM(rintf(-bounds->low / coding.scale), 255.0f);
    return coding;
}

/* What the codes are made with, in registers. */
typedef struct {
    Vector scale, lowest, highest;
    Integers origin;
} Encoder;

#define SHIFT 12582912.0f /* 1.5 * 2 ** 23: the last bit of a sum with it counts ones, ties go to even */

INLINE Encoder encoder_of(const Coding *coding) {
    const float zero = (float)coding->zero;
    return (Encoder){all(coding->scale), all(-zero), all(255 - zero), coding->zero - (Integers)all(SHIFT)};
}

INLINE Integers codes_of(Vector x, const Encoder *e) {
    return (Integers)(smaller(e->highest, larger(e->lowest, x / e->scale)) + all(SHIFT)) + e->origin;
}

/* LANES codes, each of `bytes` bytes: 1 or 2. GCC converts vectors to narrower ones an element at a time. */
INLINE void store_codes(uint8_t *to, Integers codes, const int bytes) {
#if defined(__AVX512F__)
    if (bytes == 1)
        _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)codes));
    else
        _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16((__m512i)codes));
#elif defined(__SSE4_1__)
#if defined(__AVX2__)
    const __m128i low = _mm256_castsi256_si128((__m256i)codes), high = _mm256_extracti128_si256((__m256i)codes, 1);
#else
    const __m128i low = (__m128i)codes, high = low;
#endif
    const __m128i wide = _mm_packus_epi32(low, high), narrow = _mm_packus_epi16(wide, wide);
    memcpy(to, bytes == 1 ? &narrow : &wide, LANES * (size_t)bytes);
#else
    for (int lane = 0; lane < LANES; lane++) {
        const uint16_t code = (uint16_t)codes[lane];
        memcpy(to + lane * bytes, &code, (size_t)bytes); /* the low byte comes first */
    }
#endif
}

/* The codes, each of `bytes` bytes, and their sum. */
INLINE int32_t put_codes(void *to, const float *x, long count, const Coding *coding, const int bytes) {
    const Encoder encoder = encoder_of(coding);
    uint8_t *bytewise = to;
    Integers total = {0};
    int32_t sum = 0;
    long i = 0;
    for (; i + LANES <= count; i += LANES) {
        const Integers codes = codes_of(load(x + i), &encoder);
        total += codes;
        store_codes(bytewise + i * bytes, codes, bytes);
    }
    if (i < count) {
        const Integers codes = codes_of(load_first(x + i, count - i), &encoder);
        for (int lane = 0; i + lane < count; lane++) {
            const uint16_t code = (uint16_t)codes[lane];
            memcpy(bytewise + (i + lane) * bytes, &code, (size_t)bytes); /* the low byte comes first */
            sum += codes[lane];
        }
    }
    for (int lane = 0; lane < LANES; lane++) sum += total[lane];
    return sum;
}

/* Words of codes, the last of them filled up with zeros; the sum of the codes. */
INLINE int32_t encode(int32_t *words, const float *x, long count, const Coding *coding) {
    const int bytes = 4 / GROUP;
    if (count % GROUP || coding->blank) memset(words, 0, (size_t)CEIL_DIV(count, GROUP) * sizeof *words);
    return coding->blank ? 0 : put_codes(words, x, count, coding, bytes);
}

#endif
