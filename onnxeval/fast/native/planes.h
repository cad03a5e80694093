/* Planes of 8-bit integers with what lies around them, apart by the remainders of their places to the strides: what a tap
   sees of a row of windows lies side by side, and that of the next row of windows in the next row. */
#ifndef ONNXEVAL_PLANES_H
#define ONNXEVAL_PLANES_H

#include "bytes.h"
#include "kernels.h"

/* phases_y times phases_x parts of height times width bytes are a plane. */
typedef struct {
    long phases_y, phases_x, height, width, plane;
    int bordered; /* whether some of it lies outside the input */
} Padded;

INLINE Padded padded_of(const Geometry *g) {
    const long reach_y = (g->taps_y - 1) * g->dilation_y, reach_x = (g->taps_x - 1) * g->dilation_x;
    Padded p = {.phases_y = MINIMUM(g->stride_y, reach_y + 1), .phases_x = MINIMUM(g->stride_x, reach_x + 1)};
    p.height = g->rows + reach_y / g->stride_y;
    p.width = g->columns + reach_x / g->stride_x;
    p.plane = p.phases_y * p.phases_x * p.height * p.width;
    p.bordered = g->top || g->left || (p.height - 1) * g->stride_y + p.phases_y > g->height ||
                 (p.width - 1) * g->stride_x + p.phases_x > g->width;
    return p;
}

/* Where a tap of the first window lies in a plane. */
INLINE ptrdiff_t tap_at(const Geometry *g, const Padded *p, long tap_y, long tap_x) {
    const long y = tap_y * g->dilation_y, x = tap_x * g->dilation_x;
    const long part = y % g->stride_y * p->phases_x + x % g->stride_x;
    return (part * p->height + y / g->stride_y) * p->width + x / g->stride_x;
}

/* Of `count` places `stride` apart from `start` on, those first..last are in 0..size. */
INLINE void inside(long start, long stride, long size, long count, long *first, long *last) {
    *first = MINIMUM(count, start < 0 ? (-start + stride - 1) / stride : 0);
    *last = MAXIMUM(*first, MINIMUM(count, size > start ? (size - start + stride - 1) / stride : 0));
}

/* The bytes of the input into a plane; what lies around it stays as it is. */
static void copy_plane(uint8_t *to, const uint8_t *x, const Geometry *g, const Padded *p, uint8_t flip) {
    for (long phase_y = 0; phase_y < p->phases_y; phase_y++)
        for (long phase_x = 0; phase_x < p->phases_x; phase_x++, to += p->height * p->width) {
            const long start_y = phase_y - g->top, start_x = phase_x - g->left;
            long top, bottom, left, right;
            inside(start_y, g->stride_y, g->height, p->height, &top, &bottom);
            inside(start_x, g->stride_x, g->width, p->width, &left, &right);
            for (long row = top; row < bottom; row++) {
                uint8_t *target = to + row * p->width;
                const uint8_t *from = x + (start_y + row * g->stride_y) * g->width + start_x;
                if (g->stride_x == 1)
                    copy_flipped(target + left, from + left, right - left, flip);
                else if (g->stride_x == 2)
                    copy_evens(target + left, from + 2 * left, right - left, flip);
                else
                    for (long j = left; j < right; j++) target[j] = from[g->stride_x * j] ^ flip;
            }
        }
}

#endif
