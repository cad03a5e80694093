/* Products with weights of 4 or 8 bits, blocks of which share a scale and a zero point: made into floats as they are used. */
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define FEW_ROWS 4      /* of products that use each weight as it is made */
#define MOST_PANELS 4   /* of rows that weights are made for at once */
#define COLUMNS_TOGETHER 64 /* of a task */
#define SMALL 60000     /* weights that no second thread is woken for */
#define TASK 65536      /* weights that a task makes into floats */
#define DEPTH 512       /* of a block of weights */
#define SPAN (2 * LANES) /* columns of a that lie apart by their parity where two weights are in a byte */

typedef struct {
    const BitsProduct *p;
    const float *a;      /* rows of `depth` columns, as the weights are read */
    const float *packed; /* the same as a right factor */
    long depth, each, row_parts;
    _Atomic int failed;
} Job;

INLINE float zero_of(const BitsProduct *p, long column, long block) {
    if (!p->zeros) return p->bits == 4 ? 8 : 128;
    if (p->bits == 8) return p->zeros[column * p->blocks + block];
    const uint8_t both = p->zeros[column * ((p->blocks + 1) / 2) + block / 2];
    return block % 2 ? both >> 4 : both & 15;
}

/* LANES bytes, or the `count` there are, as numbers. */
INLINE Integers some_widened(const uint8_t *p, long count) {
    uint8_t room[LANES] = {0};
    if (count < LANES) {
        memcpy(room, p, (size_t)count);
        p = room;
    }
#if defined(__AVX512F__)
    return (Integers)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif defined(__AVX2__)
    return (Integers)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#elif defined(__SSE4_1__)
    int32_t four;
    memcpy(&four, p, 4);
    return (Integers)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
#else
    Integers v;
    for (int lane = 0; lane < LANES; lane++) v[lane] = p[lane];
    return v;
#endif
}

/* Vector `index` of the bytes of a column as the weights that they are: all there is of 8 bits; of 4 bits the even ones, then
   the odd ones. */
INLINE void weights_at(const BitsProduct *p, long column, long index, const int bits, Vector *weights) {
    const long bytes = p->blocks * p->block * bits / 8, start = index * LANES, per = p->block * bits / 8;
    const Integers codes = some_widened(p->codes + column * bytes + start, MINIMUM(LANES, bytes - start));
    const float *scales = p->scales + column * p->blocks;
    Vector scale, zero;
    if (per >= LANES) {
        scale = all(scales[start / per]);
        zero = all(zero_of(p, column, start / per));
    } else {
        float of_scale[LANES], of_zero[LANES];
        for (long lane = 0; lane < LANES; lane++) {
            const long block = MINIMUM(p->blocks - 1, (start + lane) / per);
            of_scale[lane] = scales[block];
            of_zero[lane] = zero_of(p, column, block);
        }
        scale = load(of_scale), zero = load(of_zero);
    }
    if (bits == 8) {
        weights[0] = (__builtin_convertvector(codes, Vector) - zero) * scale;
    } else {
        weights[0] = (__builtin_convertvector(codes & (15 - (Integers){0}), Vector) - zero) * scale;
        weights[1] = (__builtin_convertvector(codes >> 4, Vector) - zero) * scale;
    }
}

INLINE void few_columns(const Job *job, long first, long last, const int rows, const int bits) {
    const BitsProduct *p = job->p;
    const int parts = bits == 4 ? 2 : 1;
    const long vectors = job->depth / (parts * LANES);
    for (long column = first; column < last; column++) {
        Vector sums[FEW_ROWS][2];
        UNROLL for (int i = 0; i < rows; i++) sums[i][0] = sums[i][1] = zero();
        for (long index = 0; index < vectors; index++) {
            Vector weights[2];
            weights_at(p, column, index, bits, weights);
            UNROLL for (int i = 0; i < rows; i++) {
                const float *a = job->a + i * job->depth + index * parts * LANES;
                UNROLL for (int j = 0; j < parts; j++) sums[i][j] += load(a + j * LANES) * weights[j];
            }
        }
        for (int i = 0; i < rows; i++)
            p->y[i * p->n + column] = sum_of(sums[i][0] + sums[i][1]) + (p->bias ? p->bias[column] : 0);
    }
}

#define FEW(rows, bits) few_columns(job, first, last, rows, bits); return;
static void few_task(void *context, long ticket) {
    const Job *job = context;
    const long first = ticket * job->each, last = MINIMUM(job->p->n, first + job->each);
    switch (8 * (int)job->p->m + job->p->bits) {
        case 12: FEW(1, 4)
        case 16: FEW(1, 8)
        case 20: FEW(2, 4)
        case 24: FEW(2, 8)
        case 28: FEW(3, 4)
        case 32: FEW(3, 8)
        case 36: FEW(4, 4)
        default: FEW(4, 8)
    }
}

/* Floats of one row of weights, in the order in which they are read: `count` vectors of bytes from the `first` on. */
static void make_floats(const BitsProduct *p, long column, long first, long count, float *to) {
    Vector made[2] = {{0}};
    for (long index = first; index < first + count; index++) {
        if (p->bits == 8) {
            weights_at(p, column, index, 8, made);
            store(to, made[0]);
            to += LANES;
        } else {
            weights_at(p, column, index, 4, made);
            store(to, made[0]);
            store(to + LANES, made[1]);
            to += SPAN;
        }
    }
}

/* Part of the columns of the result, for part of its rows: weights are the left factor here, which nothing has to transpose,
   and the rows of a, packed, the right one. */
static void many_task(void *context, long ticket) {
    Job *job = context;
    const BitsProduct *p = job->p;
    const long chunk = ticket / job->row_parts, part = ticket % job->row_parts;
    const long first = chunk * job->each, last = MINIMUM(p->n, first + job->each);
    const long row = part * MOST_PANELS * PANEL, rows = MINIMUM(MOST_PANELS * PANEL, p->m - row);
    const long span = p->bits == 4 ? SPAN : LANES, pitch = CEIL_DIV(rows, LANES) * LANES;
    float *sums = scratch(SCRATCH_PANELS, (size_t)((last - first) * pitch));
    float *weights = scratch(SCRATCH_TILES, (size_t)(TILE_ROWS * DEPTH));
    if (!sums || !weights) {
        job->failed = 1;
        return;
    }
    for (long from = 0; from < job->depth; from += DEPTH) {
        const long depth = MINIMUM(DEPTH, job->depth - from);
        for (long column = first; column < last; column += TILE_ROWS) {
            const long count = MINIMUM(TILE_ROWS, last - column);
            for (long i = 0; i < count; i++)
                make_floats(p, column + i, from / span, depth / span, weights + i * depth);
            for (long panel = 0; panel * PANEL < rows; panel++) {
                const long columns = MINIMUM(PANEL, rows - panel * PANEL), width = CEIL_DIV(columns, LANES) * LANES;
                const Tile t = {.a = weights, .a_row = depth, .a_step = 1, .depth = depth, .columns = width, .c_row = pitch,
                                .b = job->packed + (row + panel * PANEL) * job->depth + from * width, .b_step = width,
                                .c = sums + (column - first) * pitch + panel * PANEL, .accumulate = from > 0};
                run_tile(&t, count, 0);
            }
        }
    }
    for (long i = 0; i < rows; i++)
        for (long column = first; column < last; column++)
            p->y[(row + i) * p->n + column] = sums[(column - first) * pitch + i] + (p->bias ? p->bias[column] : 0);
}

/* Rows of a with zeros behind them, even and odd columns of each SPAN apart where there are two weights in a byte. */
static void arrange(float *to, const BitsProduct *p, long depth) {
    memset(to, 0, (size_t)(p->m * depth) * sizeof *to);
    for (long i = 0; i < p->m; i++, to += depth) {
        const float *a = p->a + i * p->k;
        if (p->bits == 8)
            memcpy(to, a, (size_t)p->k * sizeof *to);
        else
            for (long k = 0; k < p->k; k++) to[k / SPAN * SPAN + k % 2 * LANES + k % SPAN / 2] = a[k];
    }
}

int NAMED(multiply_bits)(const BitsProduct *p) {
    Job job = {.p = p};
    const int small = (double)p->n * (double)p->k * (double)p->m < SMALL;
    const long span = p->bits == 4 ? SPAN : LANES;
    job.depth = CEIL_DIV(p->k, span) * span;
    const size_t floats = (size_t)(p->m * job.depth), room = p->m > FEW_ROWS ? NAMED(packed_matrix_floats)(job.depth, p->m) : 0;
    float *a = scratch(SCRATCH_REGION, floats + room + LANES);
    if (!a) return -1;
    arrange(a, p, job.depth);
    job.a = a;
    if (p->m > FEW_ROWS) {
        float *packed = a + CEIL_DIV(floats, LANES) * LANES;
        NAMED(pack_matrix)(packed, a, 1, job.depth, job.depth, p->m);
        job.packed = packed;
        job.row_parts = CEIL_DIV(p->m, MOST_PANELS * PANEL);
        job.each = small ? p->n : MINIMUM(COLUMNS_TOGETHER, CEIL_DIV(CEIL_DIV(p->n, 4 * pool_threads()), TILE_ROWS) * TILE_ROWS);
        const long tickets = CEIL_DIV(p->n, job.each) * job.row_parts;
        if (small)
            for (long i = 0; i < tickets; i++) many_task(&job, i);
        else
            pool_run(many_task, &job, tickets);
        return job.failed ? -1 : 0;
    }
    job.each = small ? p->n : MAXIMUM(1, MINIMUM(CEIL_DIV(p->n, 2 * pool_threads()), TASK / p->k));
    const long tickets = CEIL_DIV(p->n, job.each);
    if (tickets == 1)
        few_task(&job, 0);
    else
        pool_run(few_task, &job, tickets);
    return 0;
}
