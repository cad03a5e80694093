/* Softmax and normalisations: a few rows at a time, each while it is in the cache. */
#include <math.h>

#include "curves.h"
#include "tier.h"
#include "pool.h"

#define TASK_FLOATS 16384

typedef struct {
    const Rows *r;
    long each;
    int flag;
} Job;

static void run_rows(Task task, const Rows *r, int flag) {
    if (!r->rows || !r->n) return;
    Job job = {r, MAXIMUM(1, TASK_FLOATS / r->n), flag};
    pool_run(task, &job, CEIL_DIV(r->rows, job.each));
}

static void softmax_task(void *context, long ticket) {
    const Job *job = context;
    const Rows *r = job->r;
    const long n = r->n;
    for (long row = ticket * job->each; row < MINIMUM(r->rows, (ticket + 1) * job->each); row++) {
        const float *x = r->x + row * n;
        float *y = r->y + row * n;
        Vector top = all(-INFINITY);
        long i = 0;
        for (; i + LANES <= n; i += LANES) top = larger(top, load(x + i));
        float largest = largest_of(top);
        for (; i < n; i++) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
        const Vector shift = all(largest);
        Vector sum = zero();
        for (i = 0; i + LANES <= n; i += LANES) {
            Vector difference = load(x + i) - shift, power = exponential_of_negative(difference);
            sum += power;
            store(y + i, job->flag ? difference : power);
        }
        float total = sum_of(sum);
        if (i < n) {
            Vector difference = load_first(x + i, n - i) - shift, power = exponential_of_negative(difference);
            for (long lane = 0; lane < n - i; lane++) total += power[lane];
            store_first(y + i, job->flag ? difference : power, n - i);
        }
        const Vector last = all(job->flag ? -logf(total) : 1.0f / total);
        for (i = 0; i < n; i += LANES) {
            const long lanes = MINIMUM(LANES, n - i);
            Vector v = lanes == LANES ? load(y + i) : load_first(y + i, lanes);
            v = job->flag ? v + last : v * last;
            if (lanes == LANES)
                store(y + i, v);
            else
                store_first(y + i, v, lanes);
        }
    }
}

void NAMED(softmax)(const Rows *r, int logarithm) { run_rows(softmax_task, r, logarithm); }

/* The sum over a row of (x - shift) to the first or second power. */
INLINE float sum_row(const float *x, long n, float shift, const int squares) {
    const Vector away = all(shift);
    Vector sums[2] = {zero(), zero()};
    long i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        UNROLL for (int u = 0; u < 2; u++) {
            Vector v = load(x + i + u * LANES) - away;
            sums[u] += squares ? v * v : v;
        }
    float sum = sum_of(sums[0] + sums[1]);
    for (; i < n; i++) sum += squares ? (x[i] - shift) * (x[i] - shift) : x[i] - shift;
    return sum;
}

/* The mean of a row, and of the squares of the distances to it: where they are results, no digit is to be missed. */
static void moments(const float *x, long n, int centred, float *mean, float *variance) {
    double sum = 0, squares = 0;
    for (long i = 0; centred && i < n; i++) sum += x[i];
    const double centre = sum / (double)n;
    for (long i = 0; i < n; i++) squares += (x[i] - centre) * (x[i] - centre);
    *mean = (float)centre;
    *variance = (float)(squares / (double)n);
}

static void layer_norm_task(void *context, long ticket) {
    const Job *job = context;
    const Rows *r = job->r;
    const long n = r->n;
    for (long row = ticket * job->each; row < MINIMUM(r->rows, (ticket + 1) * job->each); row++) {
        const float *x = r->x + row * n;
        float *y = r->y + row * n;
        float mean = 0, variance;
        if (r->mean || r->deviation) {
            moments(x, n, job->flag, &mean, &variance);
        } else {
            if (job->flag) {
                mean = sum_row(x, n, 0, 0) / (float)n;
                mean += sum_row(x, n, mean, 0) / (float)n; /* what rounding a long sum took away */
            }
            variance = sum_row(x, n, mean, 1) / (float)n;
        }
        const float factor = 1.0f / sqrtf(variance + r->epsilon);
        if (r->mean) r->mean[row] = mean;
        if (r->deviation) r->deviation[row] = factor;
        const Vector centre = all(mean), scaled = all(factor);
        for (long i = 0; i < n; i += LANES) {
            const long lanes = MINIMUM(LANES, n - i);
            const int whole = lanes == LANES;
#define PART(p) (whole ? load(p) : load_first(p, lanes))
            Vector v = (PART(x + i) - centre) * scaled;
            if (r->scale) v *= PART(r->scale + i);
            if (r->shift) v += PART(r->shift + i);
            if (whole)
                store(y + i, v);
            else
                store_first(y + i, v, lanes);
        }
    }
}

void NAMED(layer_norm)(const Rows *r, int centred) { run_rows(layer_norm_task, r, centred); }
