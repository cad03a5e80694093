/* Sums of products of codes, and what they stand for. */
#ifndef ONNXEVAL_SUMS_H
#define ONNXEVAL_SUMS_H

#include "codes.h"
#include "exact.h"
#include "kernels.h"

/* Of one row of codes: the sums, the code of 0, and the sum of the codes' distances to it. */
typedef struct {
    const int32_t *sums;
    uint32_t zero, rest;
} RowSums;

INLINE RowSums row_sums(const int32_t *sums, long k, int32_t code_sum, int32_t zero) {
    return (RowSums){sums, (uint32_t)zero, (uint32_t)code_sum - (uint32_t)k * (uint32_t)zero};
}

INLINE Vector part(const float *p, long count) { return count == LANES ? load(p) : load_first(p, count); }

/* Unsigned, as sums wrap around. */
INLINE Unsigned whole_part(const int32_t *p, long count) {
    return count == LANES ? (Unsigned)load_words(p) : (Unsigned)load_first((const float *)p, count);
}

/* Sums of the products of distances: what columns j to j + count of a matrix become, `at` of the row. */
INLINE Integers distance_sums(const RowSums *row, long at, const IntegerMatrix *b, long j, long count) {
    Unsigned sum = whole_part(row->sums + at, count) - whole_part(b->sums + j, count) * row->zero;
    if (!b->centred) sum -= whole_part(b->zero + j, count) * row->rest;
    return (Integers)sum;
}

/* The same as floats: times the scale of the row and those of the columns, each product rounded. */
INLINE Vector scaled_sums(const RowSums *row, long at, const IntegerMatrix *b, long j, float scale, const float *scales, long count) {
    const Vector sums = __builtin_convertvector(distance_sums(row, at, b, j, count), Vector);
    return rounded(sums * (all(scale) * part(scales + j, count)));
}

#endif
