/* What becomes of the scores of rows; linear scores; scaled and normalised rows. */
#include "ml.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>

#include "pool.h"

#define TASK_NUMBERS 16384 /* of a table, that one task takes */

const double *as_doubles(const Table *t, long first, long rows, double *space) {
    const long from = first * t->features, count = rows * t->features;
    switch (t->numbers) {
        case DOUBLES: return (const double *)t->x + from;
        case FLOATS:
            for (long i = 0; i < count; i++) space[i] = (double)((const float *)t->x)[from + i];
            break;
        case SHORTS:
            for (long i = 0; i < count; i++) space[i] = (double)((const int32_t *)t->x)[from + i];
            break;
        case LONGS:
            for (long i = 0; i < count; i++) space[i] = (double)((const int64_t *)t->x)[from + i];
            break;
    }
    return space;
}

/* The first of the greatest; the first NaN where there is one. */
static long greatest(const double *scores, long count) {
    long best = 0;
    for (long i = 1; i < count && scores[best] == scores[best]; i++)
        if (scores[i] > scores[best] || scores[i] != scores[i]) best = i;
    return best;
}

static void softmax(double *scores, long count, int of_zeros) {
    const double most = scores[greatest(scores, count)];
    double sum = 0;
    int any = 0;
    for (long i = 0; i < count; i++) {
        const int counted = !of_zeros || scores[i] != 0;
        any |= counted;
        scores[i] = counted ? exp(scores[i] - most) : 0;
        sum += scores[i];
    }
    for (long i = 0; any && i < count; i++) scores[i] /= sum;
}

void end_scores(const Ending *e, double *scores, long first, long rows) {
    const long outputs = e->count + (e->complement != NO_COMPLEMENT);
    for (long row = first; row < first + rows; row++, scores += e->count) {
        double both[2], *ended = scores;
        for (long i = 0; e->base && i < e->count; i++) scores[i] += e->base[i];
        long choice = scores[0] > 0;
        if (e->complement != NO_COMPLEMENT) {
            both[0] = (e->complement == TO_ONE ? 1 : 0) - scores[0];
            both[1] = scores[0];
            ended = both;
        }
        if (e->choice == GREATEST) choice = greatest(ended, outputs);
        if (e->choice != NO_CHOICE) e->chosen[row] = e->labels ? e->labels[choice] : choice;
        if (e->transform == SOFTMAX || e->transform == SOFTMAX_ZERO) softmax(ended, outputs, e->transform == SOFTMAX_ZERO);
        for (long i = 0; e->transform == LOGISTIC && i < outputs; i++) ended[i] = 1 / (1 + exp(-ended[i]));
        for (long i = 0; e->transform == SIDE && i < outputs; i++) ended[i] = ended[i] > 0 ? 1 : -1;
        if (e->doubles)
            for (long i = 0; i < outputs; i++) e->doubles[row * outputs + i] = ended[i];
        else
            for (long i = 0; i < outputs; i++) e->floats[row * outputs + i] = (float)ended[i];
    }
}

/* Some rows of a table at a time. */
typedef struct Job {
    void (*run)(const struct Job *, long first, long rows, const double *x, double *space);
    const Table *table;
    long each, space; /* rows of a task, and doubles that one of its rows needs */
    const void *how;
    const double *one, *other; /* parameters of the features */
    float *out;
    _Atomic int failed;
} Job;

static void rows_task(void *context, long ticket) {
    Job *job = context;
    const Table *t = job->table;
    const long first = ticket * job->each, left = t->rows - first, rows = left < job->each ? left : job->each;
    const long doubles = rows * (job->space + t->features);
    double *space = (double *)scratch(SCRATCH_STEPS, (size_t)doubles * (sizeof(double) / sizeof(float)));
    if (!space) {
        job->failed = 1;
        return;
    }
    job->run(job, first, rows, as_doubles(t, first, rows, space + rows * job->space), space);
}

static int run_rows(Job *job) {
    const long each = TASK_NUMBERS / (job->table->features + job->space);
    job->each = each < 1 ? 1 : each;
    pool_run(rows_task, job, (job->table->rows + job->each - 1) / job->each);
    return job->failed ? -1 : 0;
}

static void linear_rows(const Job *job, long first, long rows, const double *x, double *scores) {
    const Ending *e = job->how;
    const long features = job->table->features, count = e->count;
    for (long row = 0; row < rows; row++, x += features) {
        double *own = scores + row * count;
        for (long j = 0; j < count; j++) own[j] = x[0] * job->one[j];
        for (long i = 1; i < features; i++)
            for (long j = 0; j < count; j++) own[j] += x[i] * job->one[i * count + j];
    }
    end_scores(e, scores, first, rows);
}

int run_linear(const double *weights, const Table *table, const Ending *ending) {
    Job job = {.run = linear_rows, .table = table, .space = ending->count, .how = ending, .one = weights};
    return run_rows(&job);
}

static void scaled_rows(const Job *job, long first, long rows, const double *x, double *space) {
    (void)space;
    const long features = job->table->features;
    float *out = job->out + first * features;
    for (long row = 0; row < rows; row++, x += features, out += features)
        for (long i = 0; i < features; i++) out[i] = (float)((x[i] - job->one[i]) * job->other[i]);
}

int run_scaler(const double *offset, const double *scale, const Table *table, float *out) {
    Job job = {.run = scaled_rows, .table = table, .one = offset, .other = scale, .out = out};
    return run_rows(&job);
}

static void normalised_rows(const Job *job, long first, long rows, const double *x, double *space) {
    (void)space;
    const Norm norm = *(const Norm *)job->how;
    const long features = job->table->features;
    float *out = job->out + first * features;
    for (long row = 0; row < rows; row++, x += features, out += features) {
        double divisor = norm == MAX_NORM ? x[greatest(x, features)] : 0;
        for (long i = 0; norm == L1_NORM && i < features; i++) divisor += fabs(x[i]);
        for (long i = 0; norm == L2_NORM && i < features; i++) divisor += x[i] * x[i];
        if (norm == L2_NORM) divisor = sqrt(divisor);
        if (divisor == 0) divisor = 1;
        for (long i = 0; i < features; i++) out[i] = (float)(x[i] / divisor);
    }
}

int run_normalizer(Norm norm, const Table *table, float *out) {
    Job job = {.run = normalised_rows, .table = table, .how = &norm, .out = out};
    return run_rows(&job);
}
