/* Convolutions of one channel a group: each plane by itself, windows in the lanes, a few rows of them at a time. Padding is
   not even multiplied, so that weights which are not finite are left to another method. */
#include <math.h>

#include "pool.h"
#include "tier.h"

#define TASK_WORK 100000 /* multiplications of a task */
#define ROWS 4           /* of windows that share what they see */
#define MOST_HALVED 5    /* taps of windows two apart that are cut out of three vectors */

typedef struct {
    const Convolution *q;
    long planes; /* of a task */
} Job;

/* How windows lie; constants make a loop of its own for the common ones. */
typedef struct {
    long taps_y, taps_x, stride_y, stride_x;
    int dense; /* whether dilation is one */
} Shape;

/* Windows of one column of vectors: `count` of them, from window `column` on. */
typedef struct {
    long column, count;
    int inside;         /* whether all of them see the input at all taps */
    const Lanes *lanes; /* of each tap, those that see it; of the vectors that windows are cut out of, where they are halved */
    const Activation *how; /* NULL where it comes afterwards */
} Windows;

INLINE int is_halved(const Shape s) { return s.stride_x == 2 && s.dense && s.taps_x <= MOST_HALVED; }

/* What a vector of windows sees of a line, tap by tap. */
INLINE void see(Vector *seen, const Windows *v, const float *from, const Shape s, long dilation, const int inside) {
    if (is_halved(s)) {
        const Vector a = inside ? load(from) : load_set(from, 1, &v->lanes[0]);
        const Vector b = inside ? load(from + LANES) : load_set(from + LANES, 1, &v->lanes[1]);
        Vector even = even_of(a, b), odd = odd_of(a, b);
        if (s.taps_x > 0) seen[0] = even;
        if (s.taps_x > 1) seen[1] = odd;
        if (s.taps_x > 2) {
            const Vector c = load_set(from + 2 * LANES, 1, &v->lanes[2]);
            const Vector next = even_of(c, c);
            seen[2] = shifted(even, next);
            if (s.taps_x > 3) seen[3] = shifted(odd, odd_of(c, c));
            if (s.taps_x > 4) seen[4] = shifted(seen[2], shifted(next, next));
        }
        return;
    }
    UNROLL for (long tap = 0; tap < s.taps_x; tap++) {
        const float *at = from + tap * dilation;
        seen[tap] = inside && s.stride_x == 1 ? load(at) : load_set(at, s.stride_x, &v->lanes[tap]);
    }
}

INLINE void finish(const Windows *v, Vector sum, float *y, const float *residual) {
    if (v->count == LANES) {
        if (residual) sum += load(residual);
        store(y, v->how ? activated_at_once(sum, v->how) : sum);
    } else {
        if (residual) sum += load_first(residual, v->count);
        store_first(y, v->how ? activated_at_once(sum, v->how) : sum, v->count);
    }
}

/* Row `row` and the `together - 1` rows of windows after it: what several of them see is loaded once. */
INLINE void some_rows(const Geometry *g, const Windows *v, const float *x, const float *w, float *y, const float *residual,
                      Vector bias, long row, const int together, const Shape s, const int inside) {
    Vector sum[ROWS], more[ROWS]; /* two sums of each: one would wait for itself */
    UNROLL for (int i = 0; i < together; i++) {
        sum[i] = bias;
        more[i] = zero();
    }
    const long top = row * s.stride_y - g->top;
    const float *source = x + v->column * s.stride_x - g->left;
    UNROLL for (int line = 0; line < (together - 1) * s.stride_y + s.taps_y; line++) {
        const long at = top + line;
        if (at < 0 || at >= g->height) continue;
        Vector seen[MOST_TAPS];
        see(seen, v, source + at * g->width, s, 1, inside);
        UNROLL for (int i = 0; i < together; i++) {
            const long tap_y = line - i * s.stride_y;
            if (tap_y < 0 || tap_y >= s.taps_y) continue;
            UNROLL for (int tap = 0; tap < s.taps_x; tap++) {
                if (together <= 2 && tap % 2)
                    more[i] += seen[tap] * all(w[tap_y * s.taps_x + tap]);
                else
                    sum[i] += seen[tap] * all(w[tap_y * s.taps_x + tap]);
            }
        }
    }
    UNROLL for (int i = 0; i < together; i++) {
        const long at = (row + i) * g->columns + v->column;
        finish(v, together <= 2 ? sum[i] + more[i] : sum[i], y + at, residual ? residual + at : NULL);
    }
}

/* One row of windows of any kind. */
INLINE void any_row(const Geometry *g, const Windows *v, const float *x, const float *w, float *y, const float *residual,
                    Vector bias, long row, const Shape s, const int inside) {
    const long at = row * g->columns + v->column;
    const float *source = x + v->column * s.stride_x - g->left;
    Vector sum[2] = {bias, zero()};
    for (long line = 0; line < s.taps_y; line++) {
        const long place = row * s.stride_y - g->top + line * g->dilation_y;
        if (place < 0 || place >= g->height) continue;
        for (long tap = 0; tap < s.taps_x; tap++) {
            const float *from = source + place * g->width + tap * g->dilation_x;
            const Vector seen = inside && s.stride_x == 1 ? load(from) : load_set(from, s.stride_x, &v->lanes[tap]);
            sum[tap % 2] += seen * all(w[line * s.taps_x + tap]);
        }
    }
    finish(v, sum[0] + sum[1], y + at, residual ? residual + at : NULL);
}

/* The rows of one column of vectors of one plane. `known` tells that the shape is constant. */
INLINE void one_column(const Geometry *g, const Windows *v, const float *x, const float *w, float *y, const float *residual,
                       Vector bias, const Shape s, const int known, const int inside) {
    long row = 0;
    if (known) {
        for (; row + ROWS <= g->rows; row += ROWS) some_rows(g, v, x, w, y, residual, bias, row, ROWS, s, inside);
        for (; row + 2 <= g->rows; row += 2) some_rows(g, v, x, w, y, residual, bias, row, 2, s, inside);
        for (; row < g->rows; row++) some_rows(g, v, x, w, y, residual, bias, row, 1, s, inside);
    } else {
        for (; row < g->rows; row++) any_row(g, v, x, w, y, residual, bias, row, s, inside);
    }
}

/* Planes from..to of all images. */
INLINE void some_planes(const Convolution *q, long from, long to, const Shape s, const int known) {
    const Geometry *g = &q->g;
    const Epilogue *e = &q->epilogue;
    const int at_once = is_at_once(&e->activation), halved = known && is_halved(s);
    const long maps = g->groups * g->maps, pixels = g->rows * g->columns;
    Lanes lanes[MOST_TAPS];
    Windows v = {.lanes = lanes, .how = at_once ? &e->activation : NULL};
    for (v.column = 0; v.column < g->columns; v.column += LANES) {
        v.count = MINIMUM(LANES, g->columns - v.column);
        v.inside = v.count == LANES;
        const long left = v.column * s.stride_x - g->left;
        if (halved) {
            for (long i = 0; i < 3; i++) {
                const long at = left + i * LANES, wanted = i < 2 ? LANES : MAXIMUM(0, s.taps_x - 2);
                const long first = MINIMUM(wanted, MAXIMUM(0, -at));
                lanes[i] = lanes_of(1, first, MAXIMUM(first, MINIMUM(wanted, g->width - at)));
            }
            v.inside = left >= 0 && left + 2 * LANES <= g->width;
        } else {
            for (long tap = 0; tap < s.taps_x; tap++) {
                const long shift = left + tap * g->dilation_x;
                const long first = MINIMUM(v.count, MAXIMUM(0, ceil_div(-shift, s.stride_x)));
                const long last = MAXIMUM(first, MINIMUM(v.count, ceil_div(g->width - shift, s.stride_x)));
                lanes[tap] = lanes_of(s.stride_x, first, last);
                v.inside &= first == 0 && last == LANES;
            }
        }
        for (long plane = from; plane < to; plane++) {
            const long image = plane / maps, map = plane % maps;
            const float *x = q->x + (image * g->groups + map / g->maps) * g->height * g->width;
            const float *w = q->weights + map * s.taps_y * s.taps_x;
            const float *residual = e->residual ? e->residual + plane * pixels : NULL;
            const Vector bias = all(e->row_bias ? e->row_bias[map] : 0);
            if (v.inside)
                one_column(g, &v, x, w, q->y + plane * pixels, residual, bias, s, known, 1);
            else
                one_column(g, &v, x, w, q->y + plane * pixels, residual, bias, s, known, 0);
        }
    }
    if (!at_once) NAMED(activate)(&e->activation, q->y + from * pixels, q->y + from * pixels, (to - from) * pixels);
}

static void planes_task(void *context, long ticket) {
    const Job *job = context;
    const Convolution *q = job->q;
    const Geometry *g = &q->g;
    const long from = ticket * job->planes, to = MINIMUM(g->batch * g->groups * g->maps, from + job->planes);
    const Shape s = {g->taps_y, g->taps_x, g->stride_y, g->stride_x, g->dilation_y == 1 && g->dilation_x == 1};
#define KNOWN(y, x, down, right) \
    if (s.taps_y == y && s.taps_x == x && s.stride_y == down && s.stride_x == right && s.dense) { \
        some_planes(q, from, to, (Shape){y, x, down, right, 1}, 1); \
        return; \
    }
    KNOWN(3, 3, 1, 1)
    KNOWN(3, 3, 2, 2)
    KNOWN(3, 3, 2, 1)
    KNOWN(5, 5, 1, 1)
    KNOWN(5, 5, 2, 2)
    KNOWN(5, 5, 2, 1)
    KNOWN(7, 7, 1, 1)
#undef KNOWN
    if (s.stride_x == 1)
        some_planes(q, from, to, (Shape){s.taps_y, s.taps_x, s.stride_y, 1, 0}, 0);
    else if (s.stride_x == 2)
        some_planes(q, from, to, (Shape){s.taps_y, s.taps_x, s.stride_y, 2, 0}, 0);
    else
        some_planes(q, from, to, (Shape){s.taps_y, s.taps_x, s.stride_y, s.stride_x, 0}, 0);
}

/* The weights as they are. 1 where one is not finite. */
int NAMED(pack_channels)(float *packed, const float *w, const Geometry *g) {
    float spoilt = 0;
    for (long i = 0; i < g->groups * g->maps * g->taps_y * g->taps_x; i++) {
        packed[i] = w[i];
        spoilt += 0 * w[i];
    }
    return spoilt != 0;
}

int NAMED(convolve_by_channel)(const Convolution *q) {
    const Geometry *g = &q->g;
    const double work = (double)(g->rows * g->columns) * (double)(g->taps_y * g->taps_x);
    Job job = {q, work < TASK_WORK ? (long)(TASK_WORK / work) : 1};
    pool_run(planes_task, &job, CEIL_DIV(g->batch * g->groups * g->maps, job.planes));
    return 0;
}
