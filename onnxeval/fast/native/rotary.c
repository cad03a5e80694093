/* Features of heads turned in pairs. */
#include "pool.h"
#include "tier.h"

#define TASK_ELEMENTS 8192

typedef struct {
    const Rotation *r;
    long each, rows;
} Job;

static void turn_halves(const float *x, float *y, const float *cosines, const float *sines, long pairs) {
    const float *other = x + pairs;
    float *z = y + pairs;
    long i = 0;
    for (; i + LANES <= pairs; i += LANES) {
        const Vector c = load(cosines + i), s = load(sines + i), a = load(x + i), b = load(other + i);
        store(y + i, c * a - s * b);
        store(z + i, s * a + c * b);
    }
    for (; i < pairs; i++) {
        const float a = x[i], b = other[i];
        y[i] = cosines[i] * a - sines[i] * b;
        z[i] = sines[i] * a + cosines[i] * b;
    }
}

static void turn_neighbours(const float *x, float *y, const float *cosines, const float *sines, long pairs) {
    for (long i = 0; i < pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = cosines[i] * a - sines[i] * b;
        y[2 * i + 1] = sines[i] * a + cosines[i] * b;
    }
}

static ptrdiff_t angles_of(const Rotation *r, long item, long time) {
    if (!r->positions) return item * r->angle_batch + time * r->angle_time;
    return (r->positions[item * r->position_batch + time * r->position_time] + time * r->advance) * (r->width / 2);
}

static void rotate_task(void *context, long ticket) {
    const Job *job = context;
    const Rotation *r = job->r;
    const long end = MINIMUM(job->rows, (ticket + 1) * job->each);
    for (long row = ticket * job->each; row < end; row++) {
        const long head = row % r->heads, time = row / r->heads % r->time, item = row / r->heads / r->time;
        const float *x = r->x + item * r->x_batch + head * r->x_head + time * r->x_row;
        float *y = r->y + item * r->y_batch + head * r->y_head + time * r->y_row;
        const ptrdiff_t at = angles_of(r, item, time);
        (r->interleaved ? turn_neighbours : turn_halves)(x, y, r->cosines + at, r->sines + at, r->width / 2);
        memcpy(y + r->width, x + r->width, (size_t)(r->size - r->width) * sizeof(float));
    }
}

int NAMED(rotate)(const Rotation *r) {
    for (long item = 0; r->positions && item < r->batch; item++)
        for (long time = 0; time < r->time; time++) {
            const int64_t position = r->positions[item * r->position_batch + time * r->position_time];
            if (position < -time * r->advance || position >= r->rows - time * r->advance) return 1;
        }
    Job job = {.r = r, .rows = r->batch * r->heads * r->time};
    if (!job.rows || !r->size) return 0;
    job.each = MAXIMUM(1, TASK_ELEMENTS / r->size);
    pool_run(rotate_task, &job, CEIL_DIV(job.rows, job.each));
    return 0;
}
