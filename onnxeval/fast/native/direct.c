/* Convolutions with maps in the lanes of a vector: windows read the input where it lies, or a part of it with its padding,
   and what they sum up is turned over to the planes of the maps in the end. */
#include <math.h>
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define DEPTH 640      /* of a block of channels and taps */
#define CHUNK 128      /* windows of a task, or about as many */
#define LEAST_CHUNK 32 /* where there would be too few tasks otherwise */
#define PREFETCHES 64  /* steps of sums that hide how far the results are */
#define SMALL 200000   /* multiplications that no second thread is woken for */

/* `rows` windows that lie a_row apart, times `vectors` vectors of maps: at each of `depth` steps the window sees a[offset]. */
INLINE void window_tile(const float *a, const int32_t *offsets, const ptrdiff_t a_row, const float *b, float *c, long width,
                        long depth, int accumulate, const int rows, const int vectors) {
    Vector sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        sum[i][j] = accumulate ? load(c + i * width + j * LANES) : zero();
    for (long k = 0; k < depth; k++, b += width) {
        const float *at = a + offsets[k];
        Vector right[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) right[j] = load(b + j * LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            Vector left = all(at[i * a_row]);
            UNROLL for (int j = 0; j < vectors; j++) {
                sum[i][j] += left * right[j];
                IN_REGISTER(sum[i][j]);
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) store(c + i * width + j * LANES, sum[i][j]);
}

typedef void (*WindowTile)(const float *, const int32_t *, ptrdiff_t, const float *, float *, long, long, int);
#define ONE(rows, vectors) \
    static void windows_##rows##_##vectors(const float *a, const int32_t *offsets, ptrdiff_t a_row, const float *b, float *c, \
                                           long width, long depth, int accumulate) { \
        window_tile(a, offsets, a_row, b, c, width, depth, accumulate, rows, vectors); \
    }
#if TILE_VECTORS == 3
#define ALL(rows) ONE(rows, 1) ONE(rows, 2) ONE(rows, 3)
#define ROW(rows) \
    { windows_##rows##_1, windows_##rows##_2, windows_##rows##_3 }
#else
#define ALL(rows) ONE(rows, 1) ONE(rows, 2)
#define ROW(rows) \
    { windows_##rows##_1, windows_##rows##_2 }
#endif
ALL(1) ALL(2) ALL(3) ALL(4)
#if TILE_ROWS == 8
ALL(5) ALL(6) ALL(7) ALL(8)
static const WindowTile tiles[TILE_ROWS][TILE_VECTORS] = {ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8)};
#else
static const WindowTile tiles[TILE_ROWS][TILE_VECTORS] = {ROW(1), ROW(2), ROW(3), ROW(4)};
#endif

typedef struct {
    const Convolution *q;
    Geometry g;
    long depth; /* channels * taps of a group */
    long step;  /* channels of a block */
    long panels, panel_parts;
    long row_chunks, column_chunks;
    _Atomic int failed;
} Job;

/* The windows of a task, and what of the input they see. */
typedef struct {
    long row0, row1, column0, column1;
    long top, left, height, width; /* top and left may be negative: there is padding */
    int padded;
} Part;

static Part part_of(const Job *job, long row_chunk, long column_chunk) {
    const Geometry *g = &job->g;
    Part p = {.row0 = g->rows * row_chunk / job->row_chunks, .row1 = g->rows * (row_chunk + 1) / job->row_chunks};
    p.column0 = g->columns * column_chunk / job->column_chunks;
    p.column1 = g->columns * (column_chunk + 1) / job->column_chunks;
    p.top = p.row0 * g->stride_y - g->top;
    p.left = p.column0 * g->stride_x - g->left;
    p.height = (p.row1 - p.row0 - 1) * g->stride_y + (g->taps_y - 1) * g->dilation_y + 1;
    p.width = (p.column1 - p.column0 - 1) * g->stride_x + (g->taps_x - 1) * g->dilation_x + 1;
    p.padded = p.top < 0 || p.left < 0 || p.top + p.height > g->height || p.left + p.width > g->width;
    return p;
}

/* `channels` planes of what the windows see, zero where that is padding. */
static void copy_seen(const Geometry *g, const Part *p, const float *x, float *to, long channels) {
    const long first = MINIMUM(p->width, MAXIMUM(0, -p->left)), last = MAXIMUM(first, MINIMUM(p->width, g->width - p->left));
    for (long c = 0; c < channels; c++, x += g->height * g->width)
        for (long line = 0; line < p->height; line++, to += p->width) {
            const long y = p->top + line;
            const int seen = y >= 0 && y < g->height;
            const float *from = seen ? x + y * g->width + p->left : x;
            for (long i = 0; i < p->width; i += LANES) {
                const long begin = MINIMUM(LANES, MAXIMUM(0, first - i));
                const long end = seen ? MAXIMUM(begin, MINIMUM(LANES, last - i)) : begin;
                Vector v = load_lanes(seen ? from + i : x, begin, end);
                store(to + i, v); /* what is too much, the next line writes over */
            }
        }
}

/* The sums of up to LANES windows, `width` apart, become parts of the planes of `maps` maps from `map` on, from `at` on. */
static void turn_over(const Convolution *q, const float *sums, long width, long windows, long map, long maps, ptrdiff_t at) {
    const Epilogue *e = &q->epilogue;
    const long pixels = q->g.rows * q->g.columns;
    const int at_once = is_at_once(&e->activation);
    for (long first = 0; first < maps; first += LANES) {
        const long some = MINIMUM(LANES, maps - first);
        Vector v[LANES];
        UNROLL for (int i = 0; i < LANES; i++) v[i] = load(sums + i * width + first); /* there is room after the last */
        turn(v);
        for (long j = 0; j < some; j++) {
            Vector sum = v[j] + all(e->row_bias ? e->row_bias[map + first + j] : 0);
            if (e->residual) sum += load_first(e->residual + at + j * pixels, windows);
            v[j] = at_once ? activated_at_once(sum, &e->activation) : sum;
        }
        if (!at_once) NAMED(activate)(&e->activation, (float *)v, (float *)v, some * LANES);
        for (long j = 0; j < some; j++, at += pixels) {
            if (windows == LANES)
                store(q->y + at, v[j]);
            else
                store_first(q->y + at, v[j], windows);
        }
    }
}

static void windows_task(void *context, long ticket) {
    Job *job = context;
    const Convolution *q = job->q;
    const Geometry *g = &job->g;
    const long part = ticket % job->panel_parts, chunk = ticket / job->panel_parts % (job->row_chunks * job->column_chunks);
    const long item = ticket / job->panel_parts / (job->row_chunks * job->column_chunks);
    const long image = item / g->groups, group = item % g->groups;
    const Part p = part_of(job, chunk / job->column_chunks, chunk % job->column_chunks);
    const long taps = g->taps_y * g->taps_x, plane = g->height * g->width, columns = p.column1 - p.column0;
    const long windows = (p.row1 - p.row0) * columns;
    const long first = job->panels * part / job->panel_parts, last = job->panels * (part + 1) / job->panel_parts;
    const int several = job->step < g->channels; /* blocks: sums of all panels are kept */
    const float *x = q->x + item * g->channels * plane;
    const float *weights = q->weights + group * (ptrdiff_t)NAMED(packed_matrix_floats)(job->depth, g->maps);
    const long seen = p.height * p.width;
    float *copy = p.padded ? scratch(SCRATCH_PANELS, (size_t)(job->step * seen + LANES)) : NULL;
    float *sums = scratch(SCRATCH_TILES, (size_t)(((several ? last - first : 1) * windows + LANES) * PANEL));
    int32_t *offsets = (int32_t *)scratch(SCRATCH_STEPS, (size_t)(job->step * taps));
    if (!sums || !offsets || (p.padded && !copy)) {
        job->failed = 1;
        return;
    }
    const long pitch = p.padded ? p.width : g->width, apart = p.padded ? seen : plane;
    for (long c = 0; c < job->step; c++)
        for (long y = 0; y < g->taps_y; y++)
            for (long t = 0; t < g->taps_x; t++)
                offsets[(c * g->taps_y + y) * g->taps_x + t] = (int32_t)(c * apart + y * g->dilation_y * pitch + t * g->dilation_x);
    const long units = CEIL_DIV(columns, TILE_ROWS);
    for (long from = 0; from < g->channels; from += job->step) {
        const long to = MINIMUM(g->channels, from + job->step), depth = (to - from) * taps;
        if (p.padded) copy_seen(g, &p, x + from * plane, copy, to - from);
        const float *begin = p.padded ? copy : x + from * plane + p.top * g->width + p.left;
        for (long panel = first; panel < last; panel++) {
            const long maps = MINIMUM(PANEL, g->maps - panel * PANEL), vectors = CEIL_DIV(maps, LANES), width = vectors * LANES;
            const float *b = weights + panel * PANEL * job->depth + from * taps * width;
            float *c = sums + (several ? (panel - first) * windows * PANEL : 0);
            const long map = group * g->maps + panel * PANEL;
            const ptrdiff_t at = (image * g->groups * g->maps + map) * g->rows * g->columns + p.row0 * g->columns + p.column0;
            long ready = 0, turned = 0;
            for (long row = 0; row < p.row1 - p.row0; row++)
                for (long unit = 0; unit < units; unit++) {
                    const long column = columns * unit / units, rows = columns * (unit + 1) / units - column;
                    if (to == g->channels && depth >= PREFETCHES) /* what is written soon is far: its lines come while the sums add up */
                        for (long j = 0; j < maps; j++)
                            __builtin_prefetch(q->y + at + j * g->rows * g->columns + row * g->columns + column, 1);
                    tiles[rows - 1][vectors - 1](begin + row * g->stride_y * pitch + column * g->stride_x, offsets, g->stride_x,
                                                 b, c + ready * width, width, depth, from > 0);
                    ready += rows;
                    if (to < g->channels) continue;
                    /* soon, as the sums are at hand, and so that what is stored flows off while the next ones add up */
                    const int ends = unit + 1 == units && (columns < g->columns || row + 1 == p.row1 - p.row0);
                    while (ready - turned >= LANES || (ends && ready > turned)) {
                        const long some = MINIMUM(LANES, ready - turned), y = turned / columns;
                        turn_over(q, c + turned * width, width, some, map, maps, at + y * g->columns + turned - y * columns);
                        turned += some;
                    }
                }
        }
    }
}

int NAMED(convolve_by_maps)(const Convolution *q) {
    Job job = {.q = q, .g = q->g};
    Geometry *g = &job.g;
    if (g->taps_y * g->taps_x == 1 && g->stride_y == 1 && g->stride_x == 1 && !g->top && !g->left && g->rows == g->height &&
        g->columns == g->width) { /* one row of windows */
        g->columns = g->width = g->height * g->width;
        g->rows = g->height = 1;
    }
    const long taps = g->taps_y * g->taps_x;
    job.depth = g->channels * taps;
    job.step = NAMED(channels_together)(q, DEPTH);
    job.panels = CEIL_DIV(g->maps, PANEL);
    const double work = (double)(g->batch * g->groups * g->maps) * (double)job.depth * (double)(g->rows * g->columns);
    const long wanted = work < SMALL ? 1 : 4 * pool_threads(), images = g->batch * g->groups;
    long target = CHUNK;
    while (wanted > 4 && target > LEAST_CHUNK && images * job.panels * CEIL_DIV(g->rows * g->columns, target) < wanted) target /= 2;
    job.column_chunks = g->columns >= 2 * target || g->rows == 1 ? CEIL_DIV(g->columns, target) : 1;
    job.row_chunks = job.column_chunks > 1 ? g->rows : CEIL_DIV(g->rows, MAXIMUM(1, target / g->columns));
    const long chunks = images * job.row_chunks * job.column_chunks;
    job.panel_parts = wanted > 4 ? MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, chunks), job.panels)) : 1;
    const long tickets = chunks * job.panel_parts;
    if (wanted == 1)
        for (long i = 0; i < tickets; i++) windows_task(&job, i);
    else
        pool_run(windows_task, &job, tickets);
    return job.failed ? -1 : 0;
}
