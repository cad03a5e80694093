/* Windows over 8-bit integers: the largest each sees, and the mean of whole planes. */
#include <math.h>
#include <stdatomic.h>

#include "bytes.h"
#include "planes.h"
#include "pool.h"
#include "tier.h"

#define LEAST_PLANES 32768 /* bytes that a task looks at */

typedef struct {
    const BytePool *q;
    Padded padded;
    const ptrdiff_t *places; /* of each tap in a plane, for the first window */
    long each;
    _Atomic int failed;
} Job;

/* The larger ones. */
INLINE Bytes larger_bytes(Bytes a, Bytes b) {
#if defined(__AVX512F__)
    return (Bytes)_mm512_max_epu8((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (Bytes)_mm256_max_epu8((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (Bytes)_mm_max_epu8((__m128i)a, (__m128i)b);
#else
    const Bytes first = (Bytes)(a > b);
    return (a & first) | (b & ~first);
#endif
}

static void largest_task(void *context, long ticket) {
    Job *job = context;
    const BytePool *q = job->q;
    const Geometry *g = &q->g;
    const Padded *p = &job->padded;
    const long taps = g->taps_y * g->taps_x, windows = (g->rows - 1) * p->width + g->columns;
    uint8_t *plane = (uint8_t *)scratch(SCRATCH_PANELS, (size_t)p->plane / 4 + COLUMNS);
    uint8_t *results = (uint8_t *)scratch(SCRATCH_TILES, (size_t)windows / 4 + COLUMNS);
    if (!plane || !results) {
        job->failed = 1;
        return;
    }
    if (p->bordered) memset(plane, 0, (size_t)p->plane);
    for (long image = ticket * job->each; image < MINIMUM(g->batch, (ticket + 1) * job->each); image++) {
        copy_plane(plane, q->x + image * g->height * g->width, g, p, q->flip);
        for (long window = 0; window < windows; window += COLUMNS) {
            Bytes largest = all_bytes(0);
            for (long tap = 0; tap < taps; tap++) largest = larger_bytes(largest, load_bytes(plane + job->places[tap] + window));
            store_bytes(results + window, largest);
        }
        uint8_t *to = q->y + image * g->rows * g->columns;
        for (long row = 0; row < g->rows; row++)
            copy_flipped(to + row * g->columns, results + row * p->width, g->columns, q->flip);
    }
}

int NAMED(pool_bytes)(const BytePool *q) {
    const Geometry *g = &q->g;
    Job job = {.q = q, .padded = padded_of(g)};
    const long taps = g->taps_y * g->taps_x;
    ptrdiff_t *places = (ptrdiff_t *)scratch(SCRATCH_STEPS, (size_t)taps * sizeof *places / 4);
    if (!places) return -1;
    for (long tap = 0; tap < taps; tap++) places[tap] = tap_at(g, &job.padded, tap / g->taps_x, tap % g->taps_x);
    job.places = places;
    job.each = MAXIMUM(1, MINIMUM(CEIL_DIV(g->batch, pool_threads()), LEAST_PLANES / job.padded.plane));
    pool_run(largest_task, &job, CEIL_DIV(g->batch, job.each));
    return job.failed ? -1 : 0;
}

typedef struct {
    const ByteMeans *c;
    long each;
} MeansJob;

static void means_task(void *context, long ticket) {
    const MeansJob *job = context;
    const ByteMeans *c = job->c;
    for (long row = ticket * job->each; row < MINIMUM(c->rows, (ticket + 1) * job->each); row++) {
        const uint8_t *x = c->x + (ptrdiff_t)row * c->length;
        int64_t sum = 0;
        for (long start = 0; start < c->length; start += 1 << 20) { /* so many fit into 32 bits */
            uint32_t part = 0;
            const long end = MINIMUM(c->length, start + (1 << 20));
            for (long i = start; i < end; i++) part += x[i] ^ c->flip;
            sum += part;
        }
        const double steps = (double)(sum - (int64_t)c->length * (c->x_zero + (c->flip ? 128 : 0)));
        double value = __builtin_rint(steps / (double)c->length * c->x_scale / c->y_scale) + c->how.zero;
        value = value < c->how.lowest ? c->how.lowest : value > c->how.highest ? c->how.highest : value;
        c->y[row] = (uint8_t)(int32_t)value;
    }
}

int NAMED(mean_of_bytes)(const ByteMeans *c) {
    MeansJob job = {c, MAXIMUM(1, LEAST_PLANES / c->length)};
    pool_run(means_task, &job, CEIL_DIV(c->rows, job.each));
    return 0;
}
