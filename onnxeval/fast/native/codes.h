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

INLINE Integers codes_of(Vector x, const Coding *coding) {
    const float origin = (float)coding->zero;
    const Vector shift = all(12582912.0f); /* 1.5 * 2 ** 23: its last bit counts ones, ties go to even */
    const Vector steps = smaller(all(255 - origin), larger(all(-origin), x / all(coding->scale)));
    return (Integers)(steps + shift) - (Integers)shift + coding->zero;
}

/* The codes, each of `bytes` bytes, and their sum. */
INLINE int32_t put_codes(void *to, const float *x, long count, const Coding *coding, const int bytes) {
    typedef uint8_t Narrow __attribute__((vector_size(LANES)));
    typedef uint16_t Wide __attribute__((vector_size(LANES * 2)));
    uint8_t *narrow = to;
    uint16_t *wide = to;
    Integers total = {0};
    int32_t sum = 0;
    long i = 0;
    for (; i + LANES <= count; i += LANES) {
        const Integers codes = codes_of(load(x + i), coding);
        total += codes;
        if (bytes == 1) {
            const Narrow each = __builtin_convertvector(codes, Narrow);
            memcpy(narrow + i, &each, sizeof each);
        } else {
            const Wide each = __builtin_convertvector(codes, Wide);
            memcpy(wide + i, &each, sizeof each);
        }
    }
    if (i < count) {
        const Integers codes = codes_of(load_first(x + i, count - i), coding);
        for (int lane = 0; i + lane < count; lane++) {
            if (bytes == 1)
                narrow[i + lane] = (uint8_t)codes[lane];
            else
                wide[i + lane] = (uint16_t)codes[lane];
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
