/* Rows of sums of integers, with a scale for each column, become integers of 8 bits. */
#include "pool.h"
#include "requantize.h"
#include "tier.h"

#define TASK 32768 /* elements of a task */

typedef struct {
    const SumRows *c;
    long each; /* rows of a task */
} Job;

static void exactly(uint8_t *to, const SumRows *c, const int32_t *sums, long column, long count) {
    for (long j = 0; j < count; j++) {
        const int32_t sum = sums[j] + (c->bias ? c->bias[column + j] : 0);
        to[j] = requantized_exactly(sum, c->multiplier[column + j], c->divisor, &c->how);
    }
}

static void rows_task(void *context, long ticket) {
    const Job *job = context;
    const SumRows *c = job->c;
    for (long row = ticket * job->each; row < MINIMUM(c->rows, (ticket + 1) * job->each); row++) {
        const int32_t *sums = c->sums + (ptrdiff_t)row * c->n;
        uint8_t *y = c->y + (ptrdiff_t)row * c->n;
        long column = 0;
        for (; column + COLUMNS <= c->n; column += COLUMNS) {
            Integers v[4];
            Vector worst = {0};
            UNROLL for (int j = 0; j < 4; j++) {
                const long at = column + j * LANES;
                Integers sum = load_words(sums + at);
                if (c->bias) sum += load_words(c->bias + at);
                v[j] = quotients(sum, load(c->factor + at), 0, &worst);
            }
            store_bytes(y + column, saturated(v, &c->how, IN_ORDER));
            if (near_tie(worst)) exactly(y + column, c, sums + column, column, COLUMNS);
        }
        exactly(y + column, c, sums + column, column, c->n - column);
    }
}

int NAMED(requantize_rows)(const SumRows *c) {
    if (!c->rows || !c->n) return 0;
    Job job = {c, MAXIMUM(1, TASK / c->n)};
    pool_run(rows_task, &job, CEIL_DIV(c->rows, job.each));
    return 0;
}
