/* Pools: what a column of windows sees of each line becomes one vector, windows in the lanes; then lines join. */
#include <math.h>
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define TASK_FLOATS 16384
#define SUMS 4 /* side by side, of a whole plane */

typedef struct {
    const Pool *p;
    long planes; /* of a task */
    _Atomic int failed;
} Job;

/* A NaN on either side stays. */
INLINE Vector combined(Vector a, Vector b, const int sums) { return sums ? a + b : larger_or_nan(a, b); }

/* What the windows of one column of vectors see of `line`, where `lanes` tells which of them see it at each tap, and `gaps`
   has what the others take instead. */
INLINE Vector across(const float *line, const Lanes *lanes, const Integers *gaps, const long taps, const long stride,
                     long dilation, const int inside, const int sums) {
    Vector v = zero();
    UNROLL for (long tap = 0; tap < taps; tap++) {
        const float *from = line + tap * dilation;
        Vector next = inside && stride == 1 ? load(from) : load_set(from, stride, &lanes[tap]);
        if (!inside) next = (Vector)((Integers)next | gaps[tap]);
        v = tap ? combined(v, next, sums) : next;
    }
    return v;
}

/* Constant arguments make a loop of its own for the common sizes. */
INLINE void some_planes(const Pool *p, long planes, const float *planes_x, float *planes_y, float *lines, Lanes *lanes,
                        Integers *gaps, const long taps_y, const long taps_x, const long stride, const int sums) {
    const Geometry *g = &p->g;
    Integers lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    const Vector nothing = all(sums ? 0 : -INFINITY);
    const int skips = g->dilation_y == 1 && taps_y < g->stride_y; /* lines that no window sees */
    for (long column = 0; column < g->columns; column += LANES) {
        const long count = MINIMUM(LANES, g->columns - column);
        int inside = count == LANES;
        for (long tap = 0; tap < taps_x; tap++) {
            const long shift = column * stride + tap * g->dilation_x - g->left;
            const long first = MINIMUM(count, MAXIMUM(0, ceil_div(-shift, stride)));
            const long last = MAXIMUM(first, MINIMUM(count, ceil_div(g->width - shift, stride)));
            lanes[tap] = lanes_of(stride, first, last);
            gaps[tap] = (Integers)nothing & ~((lane >= (int32_t)first) & (lane < (int32_t)last));
            inside &= first == 0 && last == LANES;
        }
        const Vector counts = sums ? load_first(p->column_counts + column, count) : nothing;
        const float *source = planes_x + column * stride - g->left;
        float *y = planes_y + column;
        for (long plane = 0; plane < planes; plane++, source += g->height * g->width, y += g->rows * g->columns) {
#define ACROSS(inner) \
    for (long line = 0; line < g->height; line++) \
        if (!skips || (line + g->top) % g->stride_y < taps_y) \
            store(lines + line * LANES, \
                  across(source + line * g->width, lanes, gaps, taps_x, stride, g->dilation_x, inner, sums));
            if (inside) {
                ACROSS(1)
            } else {
                ACROSS(0)
            }
#undef ACROSS
            for (long row = 0; row < g->rows; row++) {
                const long top = row * g->stride_y - g->top;
                const float *seen = lines + top * LANES;
                const ptrdiff_t apart = g->dilation_y * LANES;
                Vector v = nothing;
                if (top >= 0 && top + (taps_y - 1) * g->dilation_y < g->height) {
                    UNROLL for (long tap = 0; tap < taps_y; tap++) v = combined(v, load(seen + tap * apart), sums);
                } else {
                    const long first = top < 0 ? CEIL_DIV(-top, g->dilation_y) : 0;
                    const long last = MINIMUM(taps_y, top < g->height ? (g->height - 1 - top) / g->dilation_y + 1 : 0);
                    for (long tap = first; tap < last; tap++) v = combined(v, load(seen + tap * apart), sums);
                }
                if (sums) v /= all(p->row_counts[row]) * counts;
                if (count == LANES)
                    store(y + row * g->columns, v);
                else
                    store_first(y + row * g->columns, v, count);
            }
        }
    }
}

/* A vector of what the lines first..last see of each other, from the column `at` on: that much of each window of a row. */
INLINE Vector down(const Geometry *g, const float *x, long top, long first, long last, const long taps, long at,
                   const int sums) {
    const ptrdiff_t apart = g->dilation_y * g->width;
    const float *from = x + top * g->width + at;
    const Vector nothing = all(sums ? 0 : -INFINITY);
    Vector v = nothing;
    if (at >= 0 && at + LANES <= g->width) {
        if (first == 0 && last == taps) {
            UNROLL for (long tap = 0; tap < taps; tap++) v = combined(v, load(from + tap * apart), sums);
        } else {
            for (long tap = first; tap < last; tap++) v = combined(v, load(from + tap * apart), sums);
        }
        return v;
    }
    const long begin = MINIMUM(LANES, MAXIMUM(0, -at)), end = MAXIMUM(begin, MINIMUM(LANES, g->width - at));
    for (long tap = first; tap < last; tap++) v = combined(v, load_lanes_or(from + tap * apart, begin, end, nothing), sums);
    return v;
}

/* Windows of two or three columns, two apart: lines join first, as each belongs to few rows of windows. */
INLINE void halved_plane(const Pool *p, const float *x, float *y, const long taps_y, const long taps_x, const int sums) {
    const Geometry *g = &p->g;
    for (long row = 0; row < g->rows; row++, y += g->columns) {
        const long top = row * g->stride_y - g->top;
        const long first = top < 0 ? CEIL_DIV(-top, g->dilation_y) : 0;
        const long last = MINIMUM(taps_y, top < g->height ? (g->height - 1 - top) / g->dilation_y + 1 : 0);
        Vector next = down(g, x, top, first, last, taps_y, -g->left, sums);
        for (long column = 0; column < g->columns; column += LANES) {
            const long count = MINIMUM(LANES, g->columns - column), at = 2 * column - g->left;
            const Vector low = next, high = down(g, x, top, first, last, taps_y, at + LANES, sums);
            const Vector even = even_of(low, high);
            Vector v = combined(even, odd_of(low, high), sums);
            next = down(g, x, top, first, last, taps_y, at + 2 * LANES, sums);
            if (taps_x == 3) v = combined(v, shifted(even, next), sums);
            if (sums) v /= all(p->row_counts[row]) * load_first(p->column_counts + column, count);
            if (count == LANES)
                store(y + column, v);
            else
                store_first(y + column, v, count);
        }
    }
}

/* A window that sees all of a plane of n elements. */
INLINE float whole_plane(const float *x, long n, const int sums) {
    Vector v[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) v[i] = all(sums ? 0 : -INFINITY);
    long at = 0;
    for (; at + SUMS * LANES <= n; at += SUMS * LANES)
        UNROLL for (int i = 0; i < SUMS; i++) v[i] = combined(v[i], load(x + at + i * LANES), sums);
    for (; at + LANES <= n; at += LANES) v[0] = combined(v[0], load(x + at), sums);
    if (at < n) {
        Vector last = load_first(x + at, n - at);
        if (!sums)
            for (long lane = n - at; lane < LANES; lane++) last[lane] = -INFINITY;
        v[1] = combined(v[1], last, sums);
    }
    const Vector one = combined(combined(v[0], v[1], sums), combined(v[2], v[3], sums), sums);
    return sums ? sum_of(one) : largest_of(one);
}

static void planes_task(void *context, long ticket) {
    Job *job = context;
    const Pool *p = job->p;
    const Geometry *g = &p->g;
    const long from = ticket * job->planes, to = MINIMUM(g->batch, from + job->planes), plane = g->height * g->width;
    const int sums = p->row_counts != NULL;
    if (g->rows * g->columns == 1 && g->taps_y == g->height && g->taps_x == g->width && g->dilation_y == 1 &&
        g->dilation_x == 1 && !g->top && !g->left) {
        for (long at = from; at < to; at++)
            p->y[at] = sums ? whole_plane(p->x + at * plane, plane, 1) / (p->row_counts[0] * p->column_counts[0])
                            : whole_plane(p->x + at * plane, plane, 0);
        return;
    }
    const size_t places = (size_t)g->taps_x * ((sizeof(Lanes) + sizeof(Vector) - 1) / sizeof(Vector) + 1) * LANES;
    float *lines = scratch(SCRATCH_STEPS, (size_t)g->height * LANES + places);
    if (!lines) {
        job->failed = 1;
        return;
    }
    Integers *gaps = (Integers *)(lines + g->height * LANES);
    Lanes *lanes = (Lanes *)(gaps + g->taps_x);
    const float *x = p->x + from * plane;
    float *y = p->y + from * g->rows * g->columns;
#define LINES(taps_y, taps_x, stride) \
    (sums ? some_planes(p, to - from, x, y, lines, lanes, gaps, taps_y, taps_x, stride, 1) \
          : some_planes(p, to - from, x, y, lines, lanes, gaps, taps_y, taps_x, stride, 0))
#define HALVED(taps_y, taps_x) \
    for (long at = from; at < to; at++, x += plane, y += g->rows * g->columns) \
        (sums ? halved_plane(p, x, y, taps_y, taps_x, 1) : halved_plane(p, x, y, taps_y, taps_x, 0))
    if (g->stride_x == 2 && g->stride_y > 1 && g->dilation_x == 1 && (g->taps_x == 2 || g->taps_x == 3)) {
        if (g->taps_y == 3 && g->taps_x == 3)
            HALVED(3, 3);
        else if (g->taps_y == 2 && g->taps_x == 2)
            HALVED(2, 2);
        else
            HALVED(g->taps_y, g->taps_x);
    } else if (g->stride_x == 1) {
        if (g->taps_y == 3 && g->taps_x == 3)
            LINES(3, 3, 1);
        else
            LINES(g->taps_y, g->taps_x, 1);
    } else if (g->stride_x == 2) {
        LINES(g->taps_y, g->taps_x, 2);
    } else {
        LINES(g->taps_y, g->taps_x, g->stride_x);
    }
#undef LINES
#undef HALVED
}

int NAMED(pool_planes)(const Pool *p) {
    const Geometry *g = &p->g;
    Job job = {.p = p, .planes = MAXIMUM(1, TASK_FLOATS / (g->height * g->width))};
    pool_run(planes_task, &job, CEIL_DIV(g->batch, job.planes));
    return job.failed ? -1 : 0;
}
