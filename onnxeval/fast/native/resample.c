/* One axis made anew of weighted sums of its elements. */
#include "pool.h"
#include "tier.h"

#define CHUNK 1024 /* elements of a row that stay in the cache while taps are added up */
#define TASK_ELEMENTS 8192

typedef struct {
    const Resampling *r;
    long parts, each, units;
} Job;

/* Elements `from` to `from` + n of the row of outer place `outer` and new place `place`. */
static void rows_of(const Resampling *r, long outer, long place, long from, long n) {
    const float *x = r->x + outer * r->size * r->inner + from;
    float *y = r->y + (outer * r->length + place) * r->inner + from;
    for (long tap = 0; tap < r->taps; tap++) {
        const float *row = x + r->places[tap * r->length + place] * r->inner;
        const float weight = r->weights[tap * r->length + place];
        if (tap == 0)
            for (long i = 0; i < n; i++) y[i] = weight * row[i];
        else
            for (long i = 0; i < n; i++) y[i] += weight * row[i];
    }
}

/* New places `from` to `from` + n of the row `outer`, of elements beside each other. */
static void elements_of(const Resampling *r, long outer, long from, long n) {
    const float *x = r->x + outer * r->size;
    float *y = r->y + outer * r->length + from;
    for (long tap = 0; tap < r->taps; tap++) {
        const int32_t *places = r->places + tap * r->length + from;
        const float *weights = r->weights + tap * r->length + from;
        if (tap == 0)
            for (long i = 0; i < n; i++) y[i] = weights[i] * x[places[i]];
        else
            for (long i = 0; i < n; i++) y[i] += weights[i] * x[places[i]];
    }
}

static void resample_task(void *context, long ticket) {
    const Job *job = context;
    const Resampling *r = job->r;
    const long end = MINIMUM(job->units, (ticket + 1) * job->each);
    for (long unit = ticket * job->each; unit < end; unit++) {
        const long row = unit / job->parts, from = unit % job->parts * CHUNK;
        if (r->inner == 1)
            elements_of(r, row, from, MINIMUM(CHUNK, r->length - from));
        else
            rows_of(r, row / r->length, row % r->length, from, MINIMUM(CHUNK, r->inner - from));
    }
}

void NAMED(resample)(const Resampling *r) {
    const long rows = r->inner == 1 ? r->outer : r->outer * r->length, width = r->inner == 1 ? r->length : r->inner;
    if (!rows || !width) return;
    Job job = {.r = r, .parts = CEIL_DIV(width, CHUNK)};
    job.units = rows * job.parts;
    job.each = MAXIMUM(1, TASK_ELEMENTS / (MINIMUM(CHUNK, width) * r->taps));
    pool_run(resample_task, &job, CEIL_DIV(job.units, job.each));
}
