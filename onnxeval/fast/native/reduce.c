/* Sums, means, norms and extremes over any axes. Sums of floats are of float64. */
#include <math.h>

#include "pool.h"
#include "tier.h"

#define BUFFER 256 /* results that are made at once where they lie beside each other */
#define TASK_ELEMENTS 16384
#define SLOTS 16 /* partial results of a run */

typedef struct {
    const Reduction *r;
    Nest kept, reduced; /* the axes of the result, and those that give way; none of them the innermost of all */
    int beside;         /* whether the innermost axis is of the result */
    ptrdiff_t step;     /* from one place of it to the next */
    long run;           /* its size where it is none of the result, */
    long width;         /* and where it is */
    long chunk, parts;  /* of the width: how much is done at once, how often */
    long each, units;   /* of a task, of all */
    long count;         /* elements that make one result */
} Job;

#define ADDED(a, b) ((a) + (b))
#define TIMED(a, b) ((a) * (b))
#define WRAPPED_SUM(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define WRAPPED_PRODUCT(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define IS_NAN(v) ((v) != (v))
#define NEVER(v) 0
#define SUMS CASE(REDUCE_SUM) CASE(REDUCE_MEAN) CASE(REDUCE_SQUARES) CASE(REDUCE_ABSOLUTE) CASE(REDUCE_NORM)
#define EXTREMES CASE(REDUCE_GREATEST) CASE(REDUCE_LEAST)

#define TYPE float
#define SUM double
#define NAME float32
#define PLUS ADDED
#define TIMES TIMED
#define UNORDERED IS_NAN
#define LOWEST 0
#define HIGHEST 0
#define KINDS SUMS default: return;
#include "reduce.h"

#define TYPE float
#define SUM float
#define NAME float32_extreme
#define PLUS ADDED
#define TIMES TIMED
#define UNORDERED IS_NAN
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#define KINDS EXTREMES default: return;
#include "reduce.h"

#define TYPE int32_t
#define SUM int64_t
#define NAME int32
#define PLUS WRAPPED_SUM
#define TIMES WRAPPED_PRODUCT
#define UNORDERED NEVER
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#define KINDS CASE(REDUCE_SUM) EXTREMES default: return;
#include "reduce.h"

#define TYPE int64_t
#define SUM int64_t
#define NAME int64
#define PLUS WRAPPED_SUM
#define TIMES WRAPPED_PRODUCT
#define UNORDERED NEVER
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#define KINDS CASE(REDUCE_SUM) EXTREMES default: return;
#include "reduce.h"

typedef void (*Reducer)(const Job *, char *y, const char *x, long n);

static Reducer reducer_of(const Reduction *r) {
    const int extreme = r->what == REDUCE_GREATEST || r->what == REDUCE_LEAST;
    const int whole = extreme || r->what == REDUCE_SUM; /* of integers the others are for the readable kernel */
    switch (r->type) {
        case FLOAT32: return extreme ? reduce_float32_extreme : reduce_float32;
        case INT32: return whole ? reduce_int32 : NULL;
        case INT64: return whole ? reduce_int64 : NULL;
        default: return NULL;
    }
}

static void reduce_task(void *context, long ticket) {
    const Job *job = context;
    const Reducer reduce = reducer_of(job->r);
    const long size = job->r->type == INT64 ? 8 : 4;
    const long first = ticket * job->each, end = MINIMUM(job->units, first + job->each);
    Walk w;
    walk_to(&w, &job->kept, 2, job->kept.axes, first / job->parts);
    for (long unit = first; unit < end; unit++) {
        const long part = unit % job->parts, start = part * job->chunk;
        reduce(job, job->r->y + w.offsets[0] + start * size, job->r->x + w.offsets[1] + start * job->step,
               MINIMUM(job->chunk, job->width - start));
        if (part == job->parts - 1) walk_on(&w, &job->kept, 2, job->kept.axes);
    }
}

int NAMED(reduce_serves)(const Reduction *r) { return reducer_of(r) != NULL; }

void NAMED(reduce)(const Reduction *r) {
    Nest all = r->nest;
    Job job = {.r = r, .run = 1, .width = 1, .chunk = 1, .count = 1};
    for (int axis = 0; axis < all.axes; axis++) {
        if (all.steps[0][axis]) continue;
        job.count *= all.shape[axis];
    }
    tidy(&all, 2, 0);
    if (all.axes) {
        const int inner = --all.axes;
        job.step = all.steps[1][inner];
        job.beside = all.steps[0][inner] != 0;
        *(job.beside ? &job.width : &job.run) = all.shape[inner];
    }
    for (int axis = 0; axis < all.axes; axis++) {
        Nest *into = all.steps[0][axis] ? &job.kept : &job.reduced;
        into->shape[into->axes] = all.shape[axis];
        for (int i = 0; i < 2; i++) into->steps[i][into->axes] = all.steps[i][axis];
        into->axes++;
    }
    const long outer = places(&job.kept, job.kept.axes);
    if (!outer || !job.width) return;
    if (job.beside) {
        const long enough = CEIL_DIV(4 * pool_threads(), outer); /* of parts, where rows are few */
        job.chunk = MINIMUM(BUFFER, MAXIMUM(CEIL_DIV(job.width, enough * 16) * 16, 32));
    }
    job.parts = CEIL_DIV(job.width, job.chunk);
    job.units = outer * job.parts;
    job.each = MAXIMUM(1, TASK_ELEMENTS / MAXIMUM(1, job.chunk * job.count));
    pool_run(reduce_task, &job, CEIL_DIV(job.units, job.each));
}
