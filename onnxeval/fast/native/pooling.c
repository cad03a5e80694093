/* Pools: the rows that a row of windows sees become one, with its padding, and its windows lie in the lanes. */
#include <math.h>
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define TASK_FLOATS 32768

typedef struct {
    const Pool *p;
    long planes; /* of a task */
    long length; /* of a row with its padding, as far as windows reach */
    _Atomic int failed;
} Job;

/* A NaN on either side stays. */
INLINE Vector combined(Vector a, Vector b, const int sums) { return sums ? a + b : choose(a != a, a, larger(a, b)); }

INLINE void one_plane(const Job *job, const float *x, float *y, float *row, const int sums, const long stride) {
    const Pool *p = job->p;
    const Geometry *g = &p->g;
    const Vector nothing = all(sums ? 0 : -INFINITY);
    float *const inner = row + g->left;
    for (long i = 0; i < job->length; i += LANES) store(row + i, nothing);
    for (long oy = 0; oy < g->rows; oy++) {
        const long top = oy * g->stride_y - g->top;
        const long first = top < 0 ? CEIL_DIV(-top, g->dilation_y) : 0;
        const long last = MINIMUM(g->taps_y, top < g->height ? (g->height - 1 - top) / g->dilation_y + 1 : 0);
        const float *lines = x + top * g->width;
        const ptrdiff_t apart = g->dilation_y * g->width;
        for (long j = 0; j < g->width; j += LANES) {
            const long lanes = MINIMUM(LANES, g->width - j);
            Vector v = nothing;
            if (lanes == LANES)
                for (long tap = first; tap < last; tap++) v = combined(v, load(lines + tap * apart + j), sums);
            else
                for (long tap = first; tap < last; tap++) v = combined(v, load_first(lines + tap * apart + j, lanes), sums);
            store_first(inner + j, v, lanes);
        }
        for (long ox = 0; ox < g->columns; ox += LANES) {
            const long lanes = MINIMUM(LANES, g->columns - ox);
            Vector v = nothing;
            for (long tap = 0; tap < g->taps_x; tap++) {
                const float *from = row + ox * stride + tap * g->dilation_x;
                Vector next = lanes == LANES ? load_strided(from, stride, 0, LANES) : load_strided(from, stride, 0, lanes);
                v = combined(v, next, sums);
            }
            if (sums) v /= all(p->row_counts[oy]) * load_first(p->column_counts + ox, lanes);
            store_first(y + oy * g->columns + ox, v, lanes);
        }
    }
}

static void planes_task(void *context, long ticket) {
    Job *job = context;
    const Pool *p = job->p;
    const Geometry *g = &p->g;
    float *row = scratch(SCRATCH_STEPS, (size_t)(job->length + 2 * LANES));
    if (!row) {
        job->failed = 1;
        return;
    }
    for (long plane = ticket * job->planes; plane < MINIMUM(g->batch, (ticket + 1) * job->planes); plane++) {
        const float *x = p->x + plane * g->height * g->width;
        float *y = p->y + plane * g->rows * g->columns;
        const int sums = p->row_counts != NULL;
        if (g->stride_x == 1)
            sums ? one_plane(job, x, y, row, 1, 1) : one_plane(job, x, y, row, 0, 1);
        else if (g->stride_x == 2)
            sums ? one_plane(job, x, y, row, 1, 2) : one_plane(job, x, y, row, 0, 2);
        else
            sums ? one_plane(job, x, y, row, 1, g->stride_x) : one_plane(job, x, y, row, 0, g->stride_x);
    }
}

int NAMED(pool_planes)(const Pool *p) {
    const Geometry *g = &p->g;
    Job job = {.p = p, .planes = MAXIMUM(1, TASK_FLOATS / (g->height * g->width))};
    const long reach = (g->columns - 1) * g->stride_x + (g->taps_x - 1) * g->dilation_x + 1;
    job.length = MAXIMUM(reach, g->left + g->width);
    pool_run(planes_task, &job, CEIL_DIV(g->batch, job.planes));
    return job.failed ? -1 : 0;
}
