/* Patches of an input, side by side in the rows of a matrix. */
#include "tier.h"

/* Windows of one row of windows: `count` from window x on, at `at` in a row of patches. */
typedef struct {
    long y, x, count, at;
} Run;

/* `count` elements of a row of the input `stride` apart, zero but for those from first to last. `room` is how much may be
   written at `to`. */
INLINE void copy_run(float *to, const float *from, const float *end, long count, long room, long first, long last,
                     const long stride) {
    const int inside = first == 0 && last == count;
    for (long j = 0; j < count; j += LANES, to += LANES, from += LANES * stride, room -= LANES) {
        Vector v;
        if (inside && stride == 1 && end - from >= LANES) {
            v = load(from);
        } else {
            const long start = MINIMUM(LANES, MAXIMUM(0, first - j));
            v = load_strided(from, stride, start, MINIMUM(LANES, MAXIMUM(start, last - j)));
        }
        if (room >= LANES)
            store(to, v); /* what is too much, the next run writes over */
        else
            store_first(to, v, MINIMUM(room, count - j));
    }
}

void NAMED(pack_patches)(float *patches, long width, const float *x, const float *end, const Geometry *g, long from, long to,
                         long first, long last) {
    const long taps = g->taps_y * g->taps_x, plane = g->height * g->width;
    Run runs[PANEL];
    long count = 0;
    if (taps == 1 && g->stride_y == 1 && g->stride_x == 1 && !g->top && !g->left && g->rows == g->height &&
        g->columns == g->width) {
        for (long c = from; c < to; c++)
            copy_run(patches + (c - from) * width, x + c * plane + first, end, last - first, width, 0, last - first, 1);
        return;
    }
    for (long p = first; p < last; count++) {
        Run *run = &runs[count];
        run->y = p / g->columns;
        run->x = p % g->columns;
        run->at = p - first;
        run->count = MINIMUM(g->columns - run->x, last - p);
        p += run->count;
    }
    const long stride = g->stride_x;
    for (long tap_y = 0; tap_y < g->taps_y; tap_y++)
        for (long tap_x = 0; tap_x < g->taps_x; tap_x++) {
            const long shift = tap_x * g->dilation_x - g->left;
            const long inner = MAXIMUM(0, ceil_div(-shift, stride)), outer = ceil_div(g->width - shift, stride);
            float *row = patches + (tap_y * g->taps_x + tap_x) * width;
            for (const Run *run = runs; run < runs + count; run++) {
                const long y = run->y * g->stride_y + tap_y * g->dilation_y - g->top;
                long start = MINIMUM(run->count, MAXIMUM(0, inner - run->x));
                long stop = MAXIMUM(start, MINIMUM(run->count, outer - run->x));
                const int seen = y >= 0 && y < g->height;
                if (!seen) start = stop = 0;
                const float *source = x + from * plane + (seen ? y * g->width : 0) + run->x * stride + shift;
                float *target = row + run->at;
                const long room = width - run->at;
                if (stride == 1)
                    for (long c = from; c < to; c++, source += plane, target += taps * width)
                        copy_run(target, source, end, run->count, room, start, stop, 1);
                else if (stride == 2)
                    for (long c = from; c < to; c++, source += plane, target += taps * width)
                        copy_run(target, source, end, run->count, room, start, stop, 2);
                else
                    for (long c = from; c < to; c++, source += plane, target += taps * width)
                        copy_run(target, source, end, run->count, room, start, stop, stride);
            }
        }
}
