/* Floats as codes of 8 bits: 0 to 255 stand for their range, made to include 0, as DynamicQuantizeLinear has it. Codes lie
   as the words of integers.h want them. */
#ifndef ONNXEVAL_CODES_H
#define ONNXEVAL_CODES_H

#include <math.h>

#include "integers.h"

#if GROUP == 4
typedef uint8_t Code;
#else
typedef uint16_t Code;
#endif
typedef Code Codes __attribute__((vector_size(LANES * sizeof(Code))));

typedef struct {
    Vector low, high, spoilt; /* spoilt: NaN where something is not finite */
} Range;

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

INLINE Coding coding_of(const Range *range) {
    const float low = -largest_of(-range->low), high = largest_of(range->high), spoilt = sum_of(range->spoilt);
    Coding coding = {.scale = spoilt != 0 ? NAN : (high - low) / 255.0f};
    coding.blank = !(coding.scale > 0 && coding.scale < INFINITY);
    if (!coding.blank) coding.zero = (int32_t)rintf(-low / coding.scale);
    return coding;
}

INLINE Integers codes_of(Vector x, const Coding *coding) {
    const float origin = (float)coding->zero;
    const Vector shift = all(12582912.0f); /* 1.5 * 2 ** 23: its last bit counts ones, ties go to even */
    const Vector steps = smaller(all(255 - origin), larger(all(-origin), x / all(coding->scale)));
    return (Integers)(steps + shift) - (Integers)shift + coding->zero;
}

/* The sum of the codes; they are filled up with zeros to whole words. */
INLINE int32_t encode(Code *to, const float *x, long count, const Coding *coding) {
    Integers total = {0};
    int32_t sum = 0;
    for (long i = count; i % GROUP; i++) to[i] = 0;
    if (coding->blank) {
        memset(to, 0, (size_t)count * sizeof(Code));
        return 0;
    }
    long i = 0;
    for (; i + LANES <= count; i += LANES) {
        const Integers codes = codes_of(load(x + i), coding);
        const Codes narrow = __builtin_convertvector(codes, Codes);
        memcpy(to + i, &narrow, sizeof narrow);
        total += codes;
    }
    if (i < count) {
        const Integers codes = codes_of(load_first(x + i, count - i), coding);
        for (int lane = 0; i + lane < count; lane++) {
            to[i + lane] = (Code)codes[lane];
            sum += codes[lane];
        }
    }
    for (int lane = 0; lane < LANES; lane++) sum += total[lane];
    return sum;
}

#endif
