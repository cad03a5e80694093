/* Convolutions of one channel a group: each plane by itself, windows in the lanes, a few rows of them at a time. */
#include <math.h>

#include "pool.h"
#include "tier.h"

#define TASK_WORK 100000 /* multiplications of a task */
#define ROWS 4           /* of windows that share what they see, where rows follow each other */

typedef struct {
    const Convolution *q;
    long planes; /* of a task */
} Job;

/* `count` windows of row `row` and the `together - 1` rows after it, from window `column` on; `lanes` are those of each
   tap that see the input. */
INLINE void some_rows(const Geometry *g, const float *x, const float *w, float *y, const float *residual, long row,
                      long column, long count, const int together, const long taps_y, const long taps_x, const long stride,
                      const int inside, const Lanes *lanes, Vector bias, Vector lowest, Vector highest) {
    Vector sum[ROWS];
    UNROLL for (int i = 0; i < together; i++) sum[i] = bias;
    const long top = row * g->stride_y - g->top;
    const float *source = x + column * stride - g->left;
    if (together > 1) { /* stride and dilation are one there: what tap t of a row sees, tap t - 1 of the next one does */
        UNROLL for (int line = 0; line < taps_y + together - 1; line++) {
            const long at = top + line;
            if (at < 0 || at >= g->height) continue;
            UNROLL for (int tap = 0; tap < taps_x; tap++) {
                const float *from = source + at * g->width + tap * g->dilation_x;
                Vector v = inside ? load(from) : load_set(from, 1, &lanes[tap]);
                UNROLL for (int i = 0; i < together; i++)
                    if (line - i >= 0 && line - i < taps_y) sum[i] += v * all(w[(line - i) * taps_x + tap]);
            }
        }
    } else {
        for (long line = 0; line < taps_y; line++) {
            const long at = top + line * g->dilation_y;
            if (at < 0 || at >= g->height) continue;
            UNROLL for (long tap = 0; tap < taps_x; tap++) {
                const float *from = source + at * g->width + tap * g->dilation_x;
                Vector v = inside && stride == 1 ? load(from) : load_set(from, stride, &lanes[tap]);
                sum[0] += v * all(w[line * taps_x + tap]);
            }
        }
    }
    UNROLL for (int i = 0; i < together; i++) {
        float *to = y + (row + i) * g->columns + column;
        if (count == LANES) {
            if (residual) sum[i] += load(residual + (to - y));
            store(to, smaller(highest, larger(lowest, sum[i])));
        } else {
            if (residual) sum[i] += load_first(residual + (to - y), count);
            store_first(to, smaller(highest, larger(lowest, sum[i])), count);
        }
    }
}

/* Constant arguments make a loop of its own for the common sizes. */
INLINE void plane(const Convolution *q, long image, long map, const long taps_y, const long taps_x, const long stride,
                  const int shared) {
    const Geometry *g = &q->g;
    const Epilogue *e = &q->epilogue;
    const int clips = e->activation.kind == CLIP;
    const Vector lowest = all(clips ? e->activation.alpha : -INFINITY), highest = all(clips ? e->activation.beta : INFINITY);
    const Vector bias = all(e->row_bias ? e->row_bias[map] : 0);
    const float *x = q->x + (image * g->groups + map / g->maps) * g->height * g->width;
    const float *w = q->weights + map * taps_y * taps_x;
    const ptrdiff_t at = (image * g->groups * g->maps + map) * g->rows * g->columns;
    float *y = q->y + at;
    const float *residual = e->residual ? e->residual + at : NULL;
    Lanes lanes[MOST_TAPS];
    for (long column = 0; column < g->columns; column += LANES) {
        const long count = MINIMUM(LANES, g->columns - column);
        int inside = count == LANES;
        for (long tap = 0; tap < taps_x; tap++) {
            const long shift = column * stride + tap * g->dilation_x - g->left;
            const long first = MINIMUM(count, MAXIMUM(0, ceil_div(-shift, stride)));
            const long last = MAXIMUM(first, MINIMUM(count, ceil_div(g->width - shift, stride)));
            lanes[tap] = lanes_of(stride, first, last);
            inside &= first == 0 && last == LANES;
        }
        long row = 0;
#define PART(together, inner) \
    some_rows(g, x, w, y, residual, row, column, count, together, taps_y, taps_x, stride, inner, lanes, bias, lowest, highest)
        if (shared) {
            if (inside)
                for (; row + ROWS <= g->rows; row += ROWS) PART(ROWS, 1);
            else
                for (; row + ROWS <= g->rows; row += ROWS) PART(ROWS, 0);
        }
        if (inside)
            for (; row < g->rows; row++) PART(1, 1);
        else
            for (; row < g->rows; row++) PART(1, 0);
#undef PART
    }
    if (!clips) NAMED(activate)(&e->activation, y, y, g->rows * g->columns);
}

static void planes_task(void *context, long ticket) {
    const Job *job = context;
    const Geometry *g = &job->q->g;
    const long maps = g->groups * g->maps;
    const int shared = g->stride_y == 1 && g->dilation_y == 1 && g->stride_x == 1;
    for (long at = ticket * job->planes; at < MINIMUM(g->batch * maps, (ticket + 1) * job->planes); at++) {
        const long image = at / maps, map = at % maps;
        if (shared && g->taps_y == 3 && g->taps_x == 3)
            plane(job->q, image, map, 3, 3, 1, 1);
        else if (shared && g->taps_y == 5 && g->taps_x == 5)
            plane(job->q, image, map, 5, 5, 1, 1);
        else if (g->stride_x == 1)
            plane(job->q, image, map, g->taps_y, g->taps_x, 1, 0);
        else if (g->stride_x == 2 && g->taps_y == 3 && g->taps_x == 3)
            plane(job->q, image, map, 3, 3, 2, 0);
        else if (g->stride_x == 2 && g->taps_y == 5 && g->taps_x == 5)
            plane(job->q, image, map, 5, 5, 2, 0);
        else if (g->stride_x == 2)
            plane(job->q, image, map, g->taps_y, g->taps_x, 2, 0);
        else
            plane(job->q, image, map, g->taps_y, g->taps_x, g->stride_x, 0);
    }
}

int NAMED(convolve_by_channel)(const Convolution *q) {
    const Geometry *g = &q->g;
    const double work = (double)(g->rows * g->columns) * (double)(g->taps_y * g->taps_x);
    Job job = {q, work < TASK_WORK ? (long)(TASK_WORK / work) : 1};
    pool_run(planes_task, &job, CEIL_DIV(g->batch * g->groups * g->maps, job.planes));
    return 0;
}
