/* Products of 8-bit integers: groups of them lie in words of 32 bits, which one instruction multiplies and adds up, exactly. */
#include "integers.h"
#include "pool.h"
#include "tier.h"

size_t NAMED(packed_integers_words)(long k, long n) {
    return (size_t)CEIL_DIV(n, LANES) * LANES * (size_t)CEIL_DIV(k, GROUP);
}

/* LANES signed bytes as integers. */
INLINE Integers widened(const uint8_t *bytes, uint8_t flip) {
    typedef int8_t Bytes __attribute__((vector_size(LANES)));
    Bytes each;
    memcpy(&each, bytes, sizeof each);
    return __builtin_convertvector(each ^ (int8_t)flip, Integers);
}

/* The words of LANES columns. */
INLINE Integers words_of(const uint8_t *b, ptrdiff_t row, uint8_t flip) {
    const int bits = 32 / GROUP;
    Integers words = {0};
    UNROLL for (int i = 0; i < GROUP; i++) words |= (widened(b + i * row, flip) & ((1 << bits) - 1)) << (bits * i);
    return words;
}

void NAMED(pack_integers)(IntegerMatrix *matrix, const uint8_t *b, uint8_t flip, long k, long n) {
    const long groups = CEIL_DIV(k, GROUP);
    int32_t *to = matrix->words;
    for (long j0 = 0; j0 < n; j0 += PANEL) {
        const long columns = MINIMUM(PANEL, n - j0), width = CEIL_DIV(columns, LANES) * LANES;
        for (long group = 0; group < groups; group++) {
            const uint8_t *from = b + group * GROUP * n + j0;
            const long rows = MINIMUM(GROUP, k - group * GROUP);
            for (long j = 0; j < width; j += LANES, to += LANES) {
                if (rows == GROUP && j + LANES <= columns) {
                    store_words(to, words_of(from + j, n, flip));
                    continue;
                }
                for (int lane = 0; lane < LANES; lane++)
                    to[lane] = j + lane < columns ? word_of(from + j + lane, n, rows, flip, 1) : 0;
            }
        }
    }
    memset(matrix->sums, 0, (size_t)n * sizeof *matrix->sums);
    for (long row = 0; row < k; row++)
        for (long j = 0; j < n; j++) /* they wrap around */
            matrix->sums[j] = (int32_t)((uint32_t)matrix->sums[j] + (uint32_t)(int32_t)(int8_t)(b[row * n + j] ^ flip));
}

INLINE void word_tile(const int32_t *a, ptrdiff_t a_row, const int32_t *b, long groups, int32_t *to, ptrdiff_t to_row,
                      const int rows, const int vectors) {
    Integers sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (Integers){0};
    for (long group = 0; group < groups; group++, a++, b += vectors * LANES) {
        Integers right[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) right[j] = load_words(b + j * LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            Integers left = all_words(a[i * a_row]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = multiply_add(sum[i][j], left, right[j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        store_words(to + i * to_row + j * LANES, sum[i][j]);
}

/* One row alone: twice as many sums, so that none waits for the one before it. */
INLINE void word_row(const int32_t *a, const int32_t *b, long groups, int32_t *to, const int vectors) {
    Integers even[TILE_VECTORS], odd[TILE_VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) even[j] = odd[j] = (Integers){0};
    for (; groups > 1; groups -= 2, a += 2, b += 2 * vectors * LANES) {
        UNROLL for (int j = 0; j < vectors; j++) {
            even[j] = multiply_add(even[j], all_words(a[0]), load_words(b + j * LANES));
            odd[j] = multiply_add(odd[j], all_words(a[1]), load_words(b + (vectors + j) * LANES));
        }
    }
    UNROLL for (int j = 0; j < vectors; j++) {
        if (groups) even[j] = multiply_add(even[j], all_words(a[0]), load_words(b + j * LANES));
        store_words(to + j * LANES, even[j] + odd[j]);
    }
}

#define TILES(vectors) \
    static void tiles_##vectors(const int32_t *a, ptrdiff_t a_row, const int32_t *b, long groups, int32_t *to, ptrdiff_t to_row, \
                                long rows) { \
        switch (rows) { \
            case 1: word_row(a, b, groups, to, vectors); return; \
            case 2: word_tile(a, a_row, b, groups, to, to_row, 2, vectors); return; \
            case 3: word_tile(a, a_row, b, groups, to, to_row, 3, vectors); return; \
            default: word_tile(a, a_row, b, groups, to, to_row, 4, vectors); \
        } \
    }
TILES(1)
TILES(2)
#if TILE_VECTORS == 3
TILES(3)
#endif
/* Up to BLOCK_ROWS rows times the columns of one panel. */
void NAMED(panel_sums)(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *b, long panel, int32_t *to, ptrdiff_t to_row,
                       long rows) {
    const long groups = CEIL_DIV(b->k, GROUP), vectors = CEIL_DIV(MINIMUM(PANEL, b->n - panel * PANEL), LANES);
    const int32_t *words = b->words + panel * PANEL * groups;
    if (vectors == 1) tiles_1(a, a_row, words, groups, to, to_row, rows);
    else if (vectors == 2) tiles_2(a, a_row, words, groups, to, to_row, rows);
#if TILE_VECTORS == 3
    else tiles_3(a, a_row, words, groups, to, to_row, rows);
#endif
}

void NAMED(multiply_words)(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *b, int32_t *to, ptrdiff_t to_row, long rows) {
    for (long panel = 0; panel * PANEL < b->n; panel++)
        for (long i = 0; i < rows; i += BLOCK_ROWS)
            NAMED(panel_sums)(a + i * a_row, a_row, b, panel, to + panel * PANEL + i * to_row, to_row, MINIMUM(BLOCK_ROWS, rows - i));
}
