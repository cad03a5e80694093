/* Rows of 8-bit integers, given or quantized on the way, times a packed matrix. */
#include <stdatomic.h>
#include <string.h>

#include "bytes.h"
#include "pool.h"
#include "sums.h"
#include "tier.h"

#define SMALL 400000      /* multiplications that no second thread is woken for */
#define SMALL_RANGE 65536 /* elements likewise */
#define ROWS_TOGETHER 16  /* whose words one thread makes at a time */
#define MOST_PARTS 64     /* of what is searched for its range */

/* Rows of floats, as they are to be quantized. */
typedef struct {
    const FloatRows *x, *added;
    int tanh;
    long k;
} Source;

static const float *row_at(const FloatRows *rows, long row) {
    const char *at = (const char *)rows->x;
    for (int axis = rows->axes; axis-- > 0; row /= rows->shape[axis]) at += row % rows->shape[axis] * rows->strides[axis];
    return (const float *)at;
}

INLINE void make_row(const float *x, const float *added, float *restrict made, long k, const int summed, const int tanh) {
    for (long i = 0; i < k; i += LANES) {
        const long count = MINIMUM(LANES, k - i);
        Vector v = part(x + i, count);
        if (summed) v += part(added + i, count);
        if (tanh) v = rational_tanh(v);
        if (count == LANES)
            store(made + i, v);
        else
            store_first(made + i, v, count);
    }
}

/* One row: where it lies, or in `made`. */
static const float *row_of(const Source *s, long row, float *made) {
    const float *x = row_at(s->x, row), *added = s->added ? row_at(s->added, row) : NULL;
    if (!added && !s->tanh) return x;
    if (!added)
        make_row(x, NULL, made, s->k, 0, 1);
    else if (s->tanh)
        make_row(x, added, made, s->k, 1, 1);
    else
        make_row(x, added, made, s->k, 1, 0);
    return made;
}

typedef struct {
    const Source *source;
    long rows, parts;
    Bounds bounds[MOST_PARTS];
    _Atomic int failed;
} RangeJob;

static void range_task(void *context, long ticket) {
    RangeJob *job = context;
    Range range = {{0}, {0}, {0}};
    float *made = scratch(SCRATCH_STEPS, (size_t)job->source->k);
    if (!made) {
        job->failed = 1;
        return;
    }
    for (long row = job->rows * ticket / job->parts; row < job->rows * (ticket + 1) / job->parts; row++)
        widen(&range, row_of(job->source, row, made), job->source->k);
    job->bounds[ticket] = bounds_of(&range);
}

/* The bounds of all rows. -1 where there is not enough memory. */
static int find_bounds(const Source *source, long rows, Bounds *bounds) {
    RangeJob job = {.source = source, .rows = rows};
    const long wanted = rows * source->k < SMALL_RANGE ? 1 : MINIMUM(MOST_PARTS, 4 * pool_threads());
    job.parts = MAXIMUM(1, MINIMUM(wanted, rows));
    pool_run(range_task, &job, job.parts);
    if (job.failed) return -1;
    *bounds = job.bounds[0];
    for (long i = 1; i < job.parts; i++) {
        bounds->low = MINIMUM(bounds->low, job.bounds[i].low);
        bounds->high = MAXIMUM(bounds->high, job.bounds[i].high);
        bounds->spoilt += job.bounds[i].spoilt;
    }
    return 0;
}

typedef struct {
    const IntegerProduct *p;
    Source source;
    Coding coding;
    long groups, panels, panel_parts, row_parts;
    _Atomic int failed;
} Job;

/* Words of one row, and the sum of its codes. */
static int32_t words_of_row(const Job *job, long row, int32_t *words, float *made) {
    const IntegerProduct *p = job->p;
    const long k = p->b->k;
    if (p->x) return encode(words, row_of(&job->source, row, made), k, &job->coding);
    const uint8_t *a = p->a + row * k;
    uint32_t sum = 0;
    for (long i = 0; i < k; i++) sum += (uint8_t)(a[i] ^ p->flip);
    if (GROUP == 4 && k) {
        words[job->groups - 1] = 0;
        copy_flipped((uint8_t *)words, a, k, p->flip);
        return (int32_t)sum;
    }
    for (long group = 0; group < k / GROUP; group++) words[group] = word_of(a + group * GROUP, 1, GROUP, p->flip, 0);
    if (k % GROUP) words[job->groups - 1] = word_of(a + (job->groups - 1) * GROUP, 1, k % GROUP, p->flip, 0);
    return (int32_t)sum;
}

/* Row i of the result, columns j0 to j0 + columns. */
static void finish_row(const Job *job, const RowSums *row, long i, long j0, long columns) {
    const IntegerProduct *p = job->p;
    const IntegerMatrix *b = p->b;
    for (long at = 0; at < columns; at += LANES) {
        const long count = MINIMUM(LANES, columns - at), j = j0 + at;
        Vector value;
        if (!p->scaled) {
            value = (Vector)distance_sums(row, at, b, j, count);
        } else {
            value = scaled_sums(row, at, b, j, job->coding.scale, p->column_scale, count);
            if (p->column_bias) value += part(p->column_bias + j, count);
        }
        float *to = (p->scaled ? p->scaled : (float *)p->sums) + i * b->n + j;
        if (count == LANES)
            store(to, value);
        else
            store_first(to, value, count);
    }
}

static void product_task(void *context, long ticket) {
    Job *job = context;
    const IntegerProduct *p = job->p;
    const long part = ticket % job->panel_parts, rows_part = ticket / job->panel_parts, k = p->b->k;
    const long units = CEIL_DIV(p->m, BLOCK_ROWS), first = units * rows_part / job->row_parts * BLOCK_ROWS;
    const long last = MINIMUM(p->m, units * (rows_part + 1) / job->row_parts * BLOCK_ROWS);
    const long from_panel = job->panels * part / job->panel_parts, to_panel = job->panels * (part + 1) / job->panel_parts;
    int32_t *words = (int32_t *)scratch(SCRATCH_STEPS, (size_t)(ROWS_TOGETHER * job->groups + k));
    if (!words) {
        job->failed = 1;
        return;
    }
    float *made = (float *)(words + ROWS_TOGETHER * job->groups);
    int32_t raw[BLOCK_ROWS * WORD_PANEL], code_sums[ROWS_TOGETHER];
    for (long start = first; start < last; start += ROWS_TOGETHER) {
        const long together = MINIMUM(ROWS_TOGETHER, last - start);
        for (long i = 0; i < together; i++) code_sums[i] = words_of_row(job, start + i, words + i * job->groups, made);
        for (long panel = from_panel; panel < to_panel; panel++) {
            const long j0 = panel * WORD_PANEL, columns = MINIMUM(WORD_PANEL, p->b->n - j0);
            for (long i = 0; i < together; i += BLOCK_ROWS) {
                const long rows = MINIMUM(BLOCK_ROWS, together - i);
                NAMED(panel_sums)(words + i * job->groups, job->groups, p->b, panel, raw, WORD_PANEL, rows);
                for (long u = 0; u < rows; u++) {
                    const RowSums row = row_sums(raw + u * WORD_PANEL, k, code_sums[i + u], job->coding.zero);
                    finish_row(job, &row, start + i + u, j0, columns);
                }
            }
        }
    }
}

int NAMED(multiply_integers)(const IntegerProduct *p) {
    const long k = p->b->k;
    if (!p->m || !p->b->n) return 0;
    Job job = {.p = p, .groups = CEIL_DIV(k, GROUP), .panels = CEIL_DIV(p->b->n, WORD_PANEL), .panel_parts = 1, .row_parts = 1};
    if (p->x) {
        job.source = (Source){p->x, p->added, p->tanh, k};
        Bounds bounds;
        if (find_bounds(&job.source, p->m, &bounds)) return -1;
        job.coding = coding_of(&bounds);
    } else {
        job.coding.scale = p->a_scale ? *p->a_scale : 0;
        job.coding.zero = (p->a_zero ? *p->a_zero : 0) ^ p->flip;
    }
    /* What is quantized by each part of the rows costs as much as many columns */
    const double work = (double)p->m * (double)k * (double)(p->b->n + (p->x ? 64 : 0));
    if (work >= SMALL && pool_threads() > 1) {
        const long wanted = 4 * pool_threads();
        job.row_parts = MINIMUM(wanted, CEIL_DIV(p->m, BLOCK_ROWS));
        job.panel_parts = MINIMUM(CEIL_DIV(wanted, job.row_parts), job.panels);
    }
    pool_run(product_task, &job, job.panel_parts * job.row_parts);
    return job.failed ? -1 : 0;
}

typedef struct {
    const Quantization *q;
    Source source;
    Coding coding;
    long parts;
} QuantizeJob;

static void quantize_task(void *context, long ticket) {
    const QuantizeJob *job = context;
    const Quantization *q = job->q;
    for (long row = q->rows * ticket / job->parts; row < q->rows * (ticket + 1) / job->parts; row++) {
        const float *x = row_of(&job->source, row, NULL);
        if (!job->coding.blank) {
            put_codes(q->codes + row * q->k, x, q->k, &job->coding, 1);
            continue;
        }
        for (long i = 0; i < q->k; i++) { /* where x is infinite, or the scale 0 or NaN: NaN becomes 0 */
            const float step = rintf(x[i] / job->coding.scale) + (float)job->coding.zero;
            q->codes[row * q->k + i] = (uint8_t)(step > 255 ? 255 : step > 0 ? step : 0);
        }
    }
}

int NAMED(quantize)(const Quantization *q) {
    QuantizeJob job = {.q = q, .source = {.x = q->x, .k = q->k}};
    Bounds bounds;
    if (find_bounds(&job.source, q->rows, &bounds)) return -1;
    job.coding = coding_of(&bounds);
    if (job.coding.blank) {
        for (long row = 0; row < q->rows; row++) { /* a NaN is for the scale, an infinity is not */
            const float *x = row_of(&job.source, row, NULL);
            for (long i = 0; i < q->k; i++)
                if (x[i] != x[i]) bounds.low = NAN;
                else if (x[i] < bounds.low) bounds.low = x[i];
                else if (x[i] > bounds.high) bounds.high = x[i];
        }
        job.coding.scale = (bounds.high - bounds.low) / 255.0f;
        job.coding.zero = -bounds.low / job.coding.scale >= 255 ? 255 : 0;
    }
    *q->scale = job.coding.scale;
    *q->zero = (uint8_t)job.coding.zero;
    job.parts = q->rows * q->k < SMALL_RANGE ? 1 : MINIMUM(q->rows, 4 * pool_threads());
    pool_run(quantize_task, &job, job.parts);
    return 0;
}
