/* Local response normalisation: some pixels of all channels, then the next ones, so that squares are at hand again. */
#include "curves.h"
#include "pool.h"
#include "tier.h"

#define PIXELS 64 /* of a block */
#define TASK_FLOATS 16384

typedef struct {
    const Neighbours *n;
    long blocks, each; /* of an image, of a task */
} Job;

/* x / energy ** (quarters / 4) */
INLINE Vector divided(Vector x, Vector energy, const long quarters) {
    if (quarters == 4) return x / energy;
    const Vector half = root(energy);
    return x / (quarters == 1 ? root(half) : quarters == 2 ? half : half * root(half));
}

INLINE void some_pixels(const Neighbours *n, const float *x, float *y, const long quarters, const long pixels) {
    const Vector factor = all(n->factor), bias = all(n->bias);
    for (long channel = 0; channel < n->channels; channel++, y += n->pixels) {
        const long first = MAXIMUM(0, channel - n->below), last = MINIMUM(n->channels - 1, channel + n->above);
        for (long i = 0; i < pixels; i += LANES) {
            const long lanes = MINIMUM(LANES, pixels - i);
            const int whole = lanes == LANES;
            Vector sum = zero();
            for (long other = first; other <= last; other++) {
                const float *at = x + other * n->pixels + i;
                const Vector v = whole ? load(at) : load_first(at, lanes);
                sum += v * v;
            }
            const float *at = x + channel * n->pixels + i;
            const Vector v = divided(whole ? load(at) : load_first(at, lanes), bias + factor * sum, quarters);
            if (whole)
                store(y + i, v);
            else
                store_first(y + i, v, lanes);
        }
    }
}

static void blocks_task(void *context, long ticket) {
    const Job *job = context;
    const Neighbours *n = job->n;
    for (long block = ticket * job->each; block < MINIMUM(n->images * job->blocks, (ticket + 1) * job->each); block++) {
        const long start = block % job->blocks * PIXELS, pixels = MINIMUM(PIXELS, n->pixels - start);
        const ptrdiff_t at = block / job->blocks * n->channels * n->pixels + start;
        switch (n->quarters) {
            case 1: some_pixels(n, n->x + at, n->y + at, 1, pixels); break;
            case 2: some_pixels(n, n->x + at, n->y + at, 2, pixels); break;
            case 3: some_pixels(n, n->x + at, n->y + at, 3, pixels); break;
            default: some_pixels(n, n->x + at, n->y + at, 4, pixels);
        }
    }
}

void NAMED(normalise_channels)(const Neighbours *n) {
    if (!n->images || !n->channels || !n->pixels) return;
    Job job = {n, CEIL_DIV(n->pixels, PIXELS), 1};
    job.each = MAXIMUM(1, TASK_FLOATS / (n->channels * MINIMUM(PIXELS, n->pixels)));
    pool_run(blocks_task, &job, CEIL_DIV(n->images * job.blocks, job.each));
}
