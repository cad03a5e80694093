/* Matrix products: tasks are blocks of the result, each goes through k in blocks that the caches hold. */
#include "tier.h"

#include <math.h>
#include <stdatomic.h>

#include "pool.h"

#define DEPTH 256         /* of a block of k: what one sum takes, longer ones lose more; the caches hold it */
#define TASK_ROWS 240     /* of a task: their part of a block of k stays in the second cache */
#define SMALL 200000      /* multiplications that no second thread is woken for */
#define RAW_FLOATS 65536  /* of a right factor that is as quick to read in place as to pack */
#define ROW_FLOATS 2048   /* of a result that stays in the first cache while rows are added to it */
#define FEW_ROWS 3        /* of products that read a raw b once, as it lies in memory */

size_t NAMED(packed_matrix_floats)(long k, long n) { return (size_t)CEIL_DIV(n, LANES) * LANES * (size_t)k; }

/* k rows of `columns` columns, as a panel whose rows are `width` apart. */
static void pack_panel(float *panel, long width, const float *b, ptrdiff_t b_step, ptrdiff_t b_column, long k,
                       long columns) {
    if (b_column == 1) {
        for (long row = 0; row < k; row++, panel += width, b += b_step) {
            long j = 0;
            for (; j + LANES <= columns; j += LANES) store(panel + j, load(b + j));
            if (j < columns) store(panel + j, load_first(b + j, columns - j));
        }
        return;
    }
    if (columns < width)
        for (long row = 0; row < k; row++)
            for (long j = columns; j < width; j++) panel[row * width + j] = 0;
    for (long start = 0; start < k; start += 16) {
        long rows = MINIMUM(16, k - start);
        for (long j = 0; j < columns; j++) {
            const float *from = b + start * b_step + j * b_column;
            float *to = panel + start * width + j;
            for (long row = 0; row < rows; row++) to[row * width] = from[row * b_step];
        }
    }
}

void NAMED(pack_matrix)(float *packed, const float *b, ptrdiff_t b_step, ptrdiff_t b_column, long k, long n) {
    for (long j = 0; j < n; j += PANEL) {
        long columns = MINIMUM(PANEL, n - j), width = CEIL_DIV(columns, LANES) * LANES;
        pack_panel(packed + j * k, width, b + j * b_column, b_step, b_column, k, columns);
    }
}

void NAMED(finish_tile)(Tile *t, const Epilogue *e, ptrdiff_t at, long row, long column) {
    t->row_bias = e->row_bias ? e->row_bias + row : NULL;
    t->column_bias = e->column_bias ? e->column_bias + column : NULL;
    t->residual = e->residual ? e->residual + at : NULL;
    t->activated = is_at_once(&e->activation) &&
                   (e->activation.kind != CLIP || e->activation.alpha != -INFINITY || e->activation.beta != INFINITY);
    t->activation = e->activation;
}

typedef struct {
    const Product *p;
    long row_parts, panels, panel_parts;
    int packs; /* whether tasks pack their part of a raw b */
    _Atomic int failed;
} Job;

/* Rows first..last of one panel of one product of the batch. */
static void multiply_panel(const Product *p, long item, long first, long last, long panel, float *space) {
    const long j = panel * PANEL, columns = MINIMUM(PANEL, p->n - j), width = CEIL_DIV(columns, LANES) * LANES;
    const float *a = p->a + p->a_offsets[item];
    const ptrdiff_t c = (ptrdiff_t)item * p->m * p->n + j;
    const long blocks = MAXIMUM(1, CEIL_DIV(p->k, DEPTH));
    for (long block = 0; block < blocks; block++) {
        const long k0 = p->k * block / blocks, k1 = p->k * (block + 1) / blocks;
        Tile t = {.a_row = p->a_row, .a_step = p->a_step, .c_row = p->n, .depth = k1 - k0, .columns = columns};
        t.accumulate = block > 0;
        int raw = 0;
        if (p->packed) {
            t.b = p->packed + j * p->k + k0 * width;
            t.b_step = width;
        } else {
            const float *b = p->b + p->b_offsets[item] + j * p->b_column + k0 * p->b_step;
            if (space) {
                pack_panel(space, width, b, p->b_step, p->b_column, k1 - k0, columns);
                t.b = space;
                t.b_step = width;
            } else {
                t.b = b;
                t.b_step = p->b_step;
                raw = 1;
            }
        }
        for (long i = first; i < last; i += TILE_ROWS) {
            t.a = a + i * p->a_row + k0 * p->a_step;
            t.c = p->c + c + i * p->n;
            if (block == blocks - 1) NAMED(finish_tile)(&t, &p->epilogue, c + i * p->n, i, j);
            run_tile(&t, MINIMUM(TILE_ROWS, last - i), raw);
        }
    }
    if (!is_at_once(&p->epilogue.activation))
        for (long i = first; i < last; i++)
            NAMED(activate)(&p->epilogue.activation, p->c + c + i * p->n, p->c + c + i * p->n, columns);
}

static void multiply_task(void *context, long ticket) {
    Job *job = context;
    const Product *p = job->p;
    const long part = ticket % job->panel_parts, rest = ticket / job->panel_parts;
    const long rows = rest % job->row_parts, item = rest / job->row_parts;
    float *space = NULL;
    if (job->packs && !(space = scratch(SCRATCH_PANELS, DEPTH * PANEL))) {
        job->failed = 1;
        return;
    }
    const long units = CEIL_DIV(p->m, TILE_ROWS);
    const long first = units * rows / job->row_parts * TILE_ROWS;
    const long last = MINIMUM(p->m, units * (rows + 1) / job->row_parts * TILE_ROWS);
    for (long panel = job->panels * part / job->panel_parts; panel < job->panels * (part + 1) / job->panel_parts; panel++)
        multiply_panel(p, item, first, last, panel, space);
}

/* Few rows times columns that are contiguous: both are read once, as they are. */
static void dot_task(void *context, long ticket) {
    Job *job = context;
    const Product *p = job->p;
    const long part = ticket % job->panel_parts, item = ticket / job->panel_parts;
    const Epilogue *e = &p->epilogue;
    const long from = p->n * part / job->panel_parts, to = p->n * (part + 1) / job->panel_parts;
    for (long i = 0; i < p->m; i++) {
        const float *a = p->a + p->a_offsets[item] + i * p->a_row;
        float *c = p->c + (item * p->m + i) * p->n;
        for (long j = from; j < to; j += 4) {
            const long columns = MINIMUM(4, to - j);
            const float *b[4];
            Vector sum[4];
            for (long u = 0; u < 4; u++) {
                b[u] = p->b + p->b_offsets[item] + (j + MINIMUM(u, columns - 1)) * p->b_column;
                sum[u] = zero();
            }
            long k = 0;
            for (; k + LANES <= p->k; k += LANES) {
                Vector left = load(a + k);
                UNROLL for (int u = 0; u < 4; u++) sum[u] += left * load(b[u] + k);
            }
            if (k < p->k) {
                Vector left = load_first(a + k, p->k - k);
                UNROLL for (int u = 0; u < 4; u++) sum[u] += left * load_first(b[u] + k, p->k - k);
            }
            for (long u = 0; u < columns; u++) {
                float value = sum_of(sum[u]);
                if (e->row_bias) value += e->row_bias[i];
                if (e->column_bias) value += e->column_bias[j + u];
                if (e->residual) value += e->residual[(item * p->m + i) * p->n + j + u];
                c[j + u] = value;
            }
        }
        NAMED(activate)(&e->activation, c + from, c + from, to - from);
    }
}

/* To `count` sums: elements of a row of a, from k on as many as a block has, times rows of b. */
static void add_rows(float *sums, const Product *p, const float *a, const float *b_at, long k, long count) {
    for (const long end = MINIMUM(p->k, k + DEPTH); k < end; k += 4) {
        const long rows = MINIMUM(4, end - k);
        const float *b[4];
        Vector left[4];
        for (long u = 0; u < 4; u++) {
            b[u] = b_at + (k + MINIMUM(u, rows - 1)) * p->b_step;
            left[u] = u < rows ? all(a[(k + u) * p->a_step]) : zero();
        }
        long j = 0;
        if (rows == 4) {
            for (; j + LANES <= count; j += LANES)
                store(sums + j, load(sums + j) + ((left[0] * load(b[0] + j) + left[1] * load(b[1] + j)) +
                                                  (left[2] * load(b[2] + j) + left[3] * load(b[3] + j))));
        }
        for (; j < count; j += LANES) {
            const long lanes = MINIMUM(LANES, count - j);
            Vector sum = load_first(sums + j, lanes);
            for (long u = 0; u < rows; u++) sum += left[u] * load_first(b[u] + j, lanes);
            store_first(sums + j, sum, lanes);
        }
    }
}

/* Few rows times columns that are apart: whole rows of b are added up, as they lie in memory. */
static void rows_task(void *context, long ticket) {
    Job *job = context;
    const Product *p = job->p;
    const long part = ticket % job->panel_parts, item = ticket / job->panel_parts;
    const Epilogue *e = &p->epilogue;
    const long units = CEIL_DIV(p->n, LANES);
    const long from = units * part / job->panel_parts * LANES;
    const long to = MINIMUM(p->n, units * (part + 1) / job->panel_parts * LANES);
    for (long i = 0; i < p->m; i++) {
        const float *a = p->a + p->a_offsets[item] + i * p->a_row;
        const ptrdiff_t at = (ptrdiff_t)(item * p->m + i) * p->n;
        float *c = p->c + at;
        for (long j = from; j < to; j++)
            c[j] = (e->row_bias ? e->row_bias[i] : 0) + (e->column_bias ? e->column_bias[j] : 0) +
                   (e->residual ? e->residual[at + j] : 0);
        add_rows(c + from, p, a, p->b + p->b_offsets[item] + from, 0, to - from);
        for (long k = DEPTH; k < p->k; k += DEPTH) {
            float sums[ROW_FLOATS];
            for (long j = 0; j < to - from; j++) sums[j] = 0;
            add_rows(sums, p, a, p->b + p->b_offsets[item] + from, k, to - from);
            for (long j = 0; j < to - from; j++) c[from + j] += sums[j];
        }
        NAMED(activate)(&e->activation, c + from, c + from, to - from);
    }
}

int NAMED(multiply)(const Product *p) {
    if (!p->batch || !p->m || !p->n) return 0;
    Job job = {.p = p, .row_parts = 1, .panels = CEIL_DIV(p->n, PANEL), .panel_parts = 1};
    const double work = (double)p->batch * (double)p->m * (double)p->n * (double)MAXIMUM(p->k, 1);
    const long wanted = work < SMALL ? 1 : 4 * pool_threads();
    Task task = multiply_task;
    if (!p->packed && p->m <= FEW_ROWS && p->b_step == 1 && p->a_step == 1 && p->b_column != 1) {
        task = dot_task;
        job.panel_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, p->batch), p->n / 16));
    } else if (!p->packed && p->m <= FEW_ROWS && p->b_column == 1 && p->n > 2 * PANEL) {
        task = rows_task;
        job.panel_parts = MAXIMUM(CEIL_DIV(p->n, ROW_FLOATS), MINIMUM(CEIL_DIV(wanted, p->batch), p->n / 256));
    } else {
        job.packs = !p->packed && (p->b_column != 1 || (p->m >= 4 * TILE_ROWS && (double)p->n * (double)p->k > RAW_FLOATS));
        job.panel_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, p->batch), job.panels));
        const long units = CEIL_DIV(p->m, TILE_ROWS);
        if (job.packs) {
            job.row_parts = MINIMUM(CEIL_DIV(wanted / 2, p->batch * job.panel_parts), CEIL_DIV(units, 4));
        } else {
            long parts = CEIL_DIV(wanted, p->batch * job.panel_parts);
            job.row_parts = MINIMUM(MAXIMUM(parts, CEIL_DIV(p->m, TASK_ROWS)), units);
        }
        job.row_parts = MAXIMUM(1, job.row_parts);
    }
    const long tickets = p->batch * job.row_parts * job.panel_parts;
    if (wanted == 1)
        for (long i = 0; i < tickets; i++) task(&job, i);
    else
        pool_run(task, &job, tickets);
    return job.failed ? -1 : 0;
}
