/* Products of 8-bit integers: groups of them lie in words of 32 bits, which one instruction multiplies and adds up, exactly. */
#include "integers.h"
#include "pool.h"
#include "tier.h"

#define SMALL 400000 /* multiplications that no second thread is woken for */

size_t NAMED(packed_integers_words)(long k, long n) {
    return (size_t)CEIL_DIV(n, LANES) * LANES * (size_t)CEIL_DIV(k, GROUP);
}

void NAMED(pack_integers)(IntegerMatrix *matrix, const uint8_t *b, uint8_t flip, long k, long n) {
    const long groups = CEIL_DIV(k, GROUP);
    int32_t *to = matrix->words;
    for (long j0 = 0; j0 < n; j0 += PANEL) {
        const long columns = MINIMUM(PANEL, n - j0), width = CEIL_DIV(columns, LANES) * LANES;
        for (long group = 0; group < groups; group++)
            for (long j = 0; j < width; j++)
                *to++ = j < columns ? word_of(b + group * GROUP * n + j0 + j, n, MINIMUM(GROUP, k - group * GROUP), flip, 1) : 0;
    }
    for (long j = 0; j < n; j++) {
        uint32_t sum = 0;
        for (long row = 0; row < k; row++) sum += (uint32_t)(int32_t)(int8_t)(b[row * n + j] ^ flip);
        matrix->sums[j] = (int32_t)sum;
    }
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
#define BLOCK_ROWS 4

/* Up to BLOCK_ROWS rows times the columns of one panel. */
static void panel_sums(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *b, long panel, int32_t *to, ptrdiff_t to_row,
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
            panel_sums(a + i * a_row, a_row, b, panel, to + panel * PANEL + i * to_row, to_row, MINIMUM(BLOCK_ROWS, rows - i));
}

typedef struct {
    const IntegerProduct *p;
    const int32_t *words, *row_sums;
    long groups, panels, panel_parts, row_parts;
} Job;

/* Sums of products of the integers become those of their distances, row i and columns j0 to j0 + columns. */
static void finish_row(const Job *job, const int32_t *raw, long i, long j0, long columns) {
    const IntegerProduct *p = job->p;
    const IntegerMatrix *b = p->b;
    const uint32_t zero = (uint32_t)p->a_zero[i];
    const uint32_t rows = (uint32_t)job->row_sums[i] - (uint32_t)b->k * zero;
    for (long j = 0; j < columns; j++) {
        const uint32_t sum = (uint32_t)raw[j] - zero * (uint32_t)b->sums[j0 + j] - rows * (uint32_t)b->zero[j0 + j];
        const ptrdiff_t at = i * b->n + j0 + j;
        if (!p->scaled) {
            p->sums[at] = (int32_t)sum;
            continue;
        }
        float value = (float)(int32_t)sum * (p->row_scale * p->column_scale[j0 + j]);
        if (p->column_bias) value += p->column_bias[j0 + j];
        if (p->residual) value += p->residual[at];
        p->scaled[at] = value;
    }
}

static void integers_task(void *context, long ticket) {
    const Job *job = context;
    const IntegerProduct *p = job->p;
    const long part = ticket % job->panel_parts, rows_part = ticket / job->panel_parts;
    const long units = CEIL_DIV(p->m, BLOCK_ROWS);
    const long first = units * rows_part / job->row_parts * BLOCK_ROWS;
    const long last = MINIMUM(p->m, units * (rows_part + 1) / job->row_parts * BLOCK_ROWS);
    int32_t raw[BLOCK_ROWS * PANEL];
    for (long panel = job->panels * part / job->panel_parts; panel < job->panels * (part + 1) / job->panel_parts; panel++) {
        const long j0 = panel * PANEL, columns = MINIMUM(PANEL, p->b->n - j0);
        for (long i = first; i < last; i += BLOCK_ROWS) {
            const long rows = MINIMUM(BLOCK_ROWS, last - i);
            panel_sums(job->words + i * job->groups, job->groups, p->b, panel, raw, PANEL, rows);
            for (long u = 0; u < rows; u++) finish_row(job, raw + u * PANEL, i + u, j0, columns);
        }
    }
}

int NAMED(multiply_integers)(const IntegerProduct *p) {
    const long k = p->b->k, groups = CEIL_DIV(k, GROUP);
    if (!p->m || !p->b->n) return 0;
    int32_t *words = (int32_t *)scratch(SCRATCH_REGION, (size_t)(p->m * (groups + 1)));
    if (!words) return -1;
    int32_t *row_sums = words + p->m * groups;
    for (long i = 0; i < p->m; i++) {
        const uint8_t *a = p->a + i * k;
        int32_t *to = words + i * groups;
        uint32_t sum = 0;
        for (long j = 0; j < k; j++) sum += (uint8_t)(a[j] ^ p->flip);
        row_sums[i] = (int32_t)sum;
        for (long group = 0; group < k / GROUP; group++) to[group] = word_of(a + group * GROUP, 1, GROUP, p->flip, 0);
        if (k % GROUP) to[groups - 1] = word_of(a + (groups - 1) * GROUP, 1, k % GROUP, p->flip, 0);
    }
    Job job = {p, words, row_sums, groups, CEIL_DIV(p->b->n, PANEL), 1, 1};
    const double work = (double)p->m * (double)k * (double)p->b->n;
    const long wanted = work < SMALL ? 1 : 4 * pool_threads();
    job.panel_parts = MINIMUM(wanted, job.panels);
    job.row_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, job.panel_parts), CEIL_DIV(p->m, BLOCK_ROWS)));
    if (wanted == 1)
        integers_task(&job, 0);
    else
        pool_run(integers_task, &job, job.panel_parts * job.row_parts);
    return 0;
}
