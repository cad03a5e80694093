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

int NAMED(pack_integers)(IntegerMatrix *matrix, const uint8_t *b, uint8_t flip, long k, long n) {
    const long groups = CEIL_DIV(k, GROUP);
    int32_t *to = matrix->words;
    for (long j0 = 0; j0 < n; j0 += WORD_PANEL) {
        const long columns = MINIMUM(WORD_PANEL, n - j0), width = CEIL_DIV(columns, LANES) * LANES;
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
    matrix->excess.together = 1;
    if (!SATURATES) return 0;
    matrix->excess.together = 2;
    return NAMED(limit_words)(&matrix->excess, matrix->words, CEIL_DIV(n, LANES), groups, LANES, WORD_VECTORS);
}

/* The words of one panel, and what is added to them from the vector `first` of columns on. */
typedef struct {
    const int32_t *words;
    long groups, first;
    const Excess *excess;
} Panel;

/* Adds the products of `count` words of each row and of the panel, from a and b on. */
INLINE void add_products(Integers (*sum)[WORD_VECTORS], const int32_t *a, ptrdiff_t a_row, const int32_t *b, const int rows,
                         const int vectors, const int count) {
    Integers right[WORD_VECTORS], next[WORD_VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) {
        right[j] = load_words(b + j * LANES);
        next[j] = load_words(b + (j + (count - 1) * vectors) * LANES);
    }
    UNROLL for (int i = 0; i < rows; i++) {
        const Integers left = all_words(a[i * a_row]), next_left = all_words(a[i * a_row + count - 1]);
        UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = count == 1 ? multiply_add(sum[i][j], left, right[j])
                                   : multiply_add_both(sum[i][j], left, right[j], next_left, next[j]);
    }
}

INLINE void add_excess(Integers (*sum)[WORD_VECTORS], const int32_t *a, ptrdiff_t a_row, const Panel *p, const int rows,
                       const int vectors) {
    const Excess *excess = p->excess;
    UNROLL for (int j = 0; j < vectors; j++)
        for (long k = excess->starts[p->first + j]; k < excess->starts[p->first + j + 1]; k++) {
            const int32_t *left = a + excess->places[k];
            const Integers right = load_words(excess->words + k * LANES);
            UNROLL for (int i = 0; i < rows; i++) sum[i][j] = multiply_add(sum[i][j], all_words(left[i * a_row]), right);
        }
}

INLINE void word_tile(const int32_t *a, ptrdiff_t a_row, const Panel *p, int32_t *to, ptrdiff_t to_row, const int rows,
                      const int vectors, const int together) {
    Integers sum[BLOCK_ROWS][WORD_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (Integers){0};
    const int32_t *b = p->words;
    const ptrdiff_t width = vectors * LANES;
    long group = 0;
    for (; group + together <= p->groups; group += together, b += together * width)
        add_products(sum, a + group, a_row, b, rows, vectors, together);
    if (together > 1 && group < p->groups) add_products(sum, a + group, a_row, b, rows, vectors, 1);
    if (SATURATES) add_excess(sum, a, a_row, p, rows, vectors);
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        store_words(to + i * to_row + j * LANES, sum[i][j]);
}

/* One row alone: twice as many sums, so that none waits for the one before it. */
INLINE void word_row(const int32_t *a, const Panel *p, int32_t *to, const int vectors, const int together) {
    Integers even[1][WORD_VECTORS], odd[1][WORD_VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) even[0][j] = odd[0][j] = (Integers){0};
    const int32_t *b = p->words;
    const ptrdiff_t width = vectors * LANES;
    long group = 0;
    for (; group + 2 * together <= p->groups; group += 2 * together, b += 2 * together * width) {
        add_products(even, a + group, 0, b, 1, vectors, together);
        add_products(odd, a + group + together, 0, b + together * width, 1, vectors, together);
    }
    for (; group < p->groups; group++, b += width) add_products(even, a + group, 0, b, 1, vectors, 1);
    if (SATURATES) add_excess(odd, a, 0, p, 1, vectors);
    UNROLL for (int j = 0; j < vectors; j++) store_words(to + j * LANES, even[0][j] + odd[0][j]);
}

#define TILES(vectors, together) \
    static void tiles_##vectors##_##together(const int32_t *a, ptrdiff_t a_row, const Panel *p, int32_t *to, ptrdiff_t to_row, \
                                             long rows) { \
        switch (rows) { \
            case 1: word_row(a, p, to, vectors, together); return; \
            case 2: word_tile(a, a_row, p, to, to_row, 2, vectors, together); return; \
            case 3: word_tile(a, a_row, p, to, to_row, 3, vectors, together); return; \
            default: word_tile(a, a_row, p, to, to_row, 4, vectors, together); \
        } \
    }
#if SATURATES
TILES(1, 2)
TILES(2, 2)
#endif
TILES(1, 1)
TILES(2, 1)
#if WORD_VECTORS == 3
TILES(3, 1)
#endif
/* Up to BLOCK_ROWS rows times the columns of one panel. */
void NAMED(panel_sums)(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *b, long panel, int32_t *to, ptrdiff_t to_row,
                       long rows) {
    const long groups = CEIL_DIV(b->k, GROUP), vectors = CEIL_DIV(MINIMUM(WORD_PANEL, b->n - panel * WORD_PANEL), LANES);
    const Panel p = {b->words + panel * WORD_PANEL * groups, groups, panel * WORD_VECTORS, &b->excess};
#if SATURATES
    if (b->excess.together == 2) {
        (vectors == 1 ? tiles_1_2 : tiles_2_2)(a, a_row, &p, to, to_row, rows);
        return;
    }
#endif
    if (vectors == 1) tiles_1_1(a, a_row, &p, to, to_row, rows);
    else if (vectors == 2) tiles_2_1(a, a_row, &p, to, to_row, rows);
#if WORD_VECTORS == 3
    else tiles_3_1(a, a_row, &p, to, to_row, rows);
#endif
}

void NAMED(multiply_words)(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *b, int32_t *to, ptrdiff_t to_row, long rows) {
    for (long panel = 0; panel * WORD_PANEL < b->n; panel++)
        for (long i = 0; i < rows; i += BLOCK_ROWS)
            NAMED(panel_sums)(a + i * a_row, a_row, b, panel, to + panel * WORD_PANEL + i * to_row, to_row, MINIMUM(BLOCK_ROWS, rows - i));
}
