/* DynamicQuantizeLSTM with the usual activations. What falls between two codes becomes one or the other with its last bit:
   the order of operations and all rounding are those of ops/contrib/dynamic_quantize_lstm.py. */
#include <stdatomic.h>
#include <stdlib.h>

#include "codes.h"
#include "pool.h"
#include "sums.h"
#include "tier.h"

#define ROWS_TOGETHER 16 /* of the input, whose products one thread makes one after the other */

typedef struct {
    const QuantizedLstm *l;
    Coding coding;                    /* of the input */
    int32_t *projected, *row_sums;    /* (directions, steps, batch, padded) sums of products; of the codes of each row */
    long padded;                      /* 4 * hidden, filled up to whole vectors */
    _Atomic int failed;
} Job;

/* One row of the input, contiguous: where it lies, or in `copy`. */
static const float *row_of(const QuantizedLstm *l, long row, float *copy) {
    const float *x = l->x + row / l->batch * l->x_time + row % l->batch * l->x_row;
    if (l->x_step == 1) return x;
    for (long i = 0; i < l->features; i++) copy[i] = x[i * l->x_step];
    return copy;
}

static int find_coding(Job *job) {
    const QuantizedLstm *l = job->l;
    Range range = {{0}, {0}, {0}};
    float *copy = scratch(SCRATCH_STEPS, (size_t)l->features);
    if (!copy) return -1;
    for (long row = 0; row < l->steps * l->batch; row++) widen(&range, row_of(l, row, copy), l->features);
    const Bounds bounds = bounds_of(&range);
    job->coding = coding_of(&bounds);
    return 0;
}

static void input_task(void *context, long ticket) {
    Job *job = context;
    const QuantizedLstm *l = job->l;
    const long groups = CEIL_DIV(l->features, GROUP), all_rows = l->steps * l->batch;
    const long first = ticket * ROWS_TOGETHER, rows = MINIMUM(ROWS_TOGETHER, all_rows - first);
    int32_t *words = (int32_t *)scratch(SCRATCH_STEPS, (size_t)(rows * groups + l->features));
    if (!words) {
        job->failed = 1;
        return;
    }
    float *copy = (float *)(words + rows * groups);
    for (long i = 0; i < rows; i++)
        job->row_sums[first + i] = encode(words + i * groups, row_of(l, first + i, copy), l->features, &job->coding);
    for (long d = 0; d < l->directions; d++)
        NAMED(multiply_words)(words, groups, l->into[d], job->projected + (d * all_rows + first) * job->padded, job->padded, rows);
}

/* What one direction adds to the gates: sums of products, times these scales. */
typedef struct {
    const IntegerMatrix *b;
    const float *scales;
    RowSums row;
    float row_scale;
} Share;

/* What a few cells become in one step. */
INLINE void step_cells(const Share *input, const Share *state, const float *bias, long hidden, long j, float *memory, float *shown,
                       long count) {
    Vector gates[4]; /* input, output, forget, cell */
    UNROLL for (int k = 0; k < 4; k++) {
        const long at = k * hidden + j;
        gates[k] = scaled_sums(&state->row, at, state->b, at, state->row_scale, state->scales, count) +
                   scaled_sums(&input->row, at, input->b, at, input->row_scale, input->scales, count);
        if (bias) gates[k] += part(bias + at, count) + part(bias + 4 * hidden + at, count);
    }
    const Vector kept = rounded(part(memory, count) * rational_logistic(gates[2]));
    const Vector written = rounded(rational_logistic(gates[0]) * rational_tanh(gates[3]));
    const Vector held = kept + written, state_now = rational_tanh(held) * rational_logistic(gates[1]);
    if (count == LANES) {
        store(memory, held);
        store(shown, state_now);
    } else {
        store_first(memory, held, count);
        store_first(shown, state_now, count);
    }
}

static void start(float *to, const float *from, long count) {
    if (from)
        memcpy(to, from, (size_t)count * sizeof *to);
    else
        memset(to, 0, (size_t)count * sizeof *to);
}

static void direction_task(void *context, long direction) {
    Job *job = context;
    const QuantizedLstm *l = job->l;
    const long hidden = l->hidden, size = l->batch * hidden, groups = CEIL_DIV(hidden, GROUP), width = 4 * hidden;
    int32_t *words = (int32_t *)scratch(SCRATCH_STEPS, (size_t)(l->batch * (groups + job->padded + 1)));
    if (!words) {
        job->failed = 1;
        return;
    }
    int32_t *sums = words + l->batch * groups, *code_sums = sums + l->batch * job->padded;
    Share from_input = {.b = l->into[direction], .scales = l->into_scales + direction * width, .row_scale = job->coding.scale};
    Share from_state = {.b = l->across[direction], .scales = l->across_scales + direction * width};
    const float *bias = l->bias ? l->bias + direction * 2 * width : NULL; /* of the input, then of the state */
    float *memory = l->last_memory + direction * size, *last = l->last_state + direction * size;
    const float *state = last;
    start(last, l->initial_state ? l->initial_state + direction * size : NULL, size);
    start(memory, l->initial_memory ? l->initial_memory + direction * size : NULL, size);
    for (long step = 0; step < l->steps; step++) {
        const long time = l->backwards[direction] ? l->steps - 1 - step : step;
        float *next = l->outputs + (time * l->directions + direction) * size;
        Range range = {{0}, {0}, {0}};
        widen(&range, state, size);
        const Bounds bounds = bounds_of(&range);
        const Coding coding = coding_of(&bounds);
        from_state.row_scale = coding.scale;
        for (long i = 0; i < l->batch; i++)
            code_sums[i] = encode(words + i * groups, state + i * hidden, hidden, &coding);
        NAMED(multiply_words)(words, groups, l->across[direction], sums, job->padded, l->batch);
        for (long i = 0; i < l->batch; i++) {
            const long row = time * l->batch + i;
            const int32_t *projected = job->projected + (direction * l->steps * l->batch + row) * job->padded;
            from_input.row = row_sums(projected, l->features, job->row_sums[row], job->coding.zero);
            from_state.row = row_sums(sums + i * job->padded, hidden, code_sums[i], coding.zero);
            for (long j = 0; j < hidden; j += LANES)
                step_cells(&from_input, &from_state, bias, hidden, j, memory + i * hidden + j, next + i * hidden + j,
                           MINIMUM(LANES, hidden - j));
        }
        state = next;
    }
    if (state != last) memcpy(last, state, (size_t)size * sizeof *last);
}

int NAMED(run_quantized_lstm)(const QuantizedLstm *l) {
    Job job = {.l = l, .padded = CEIL_DIV(4 * l->hidden, LANES) * LANES};
    const long rows = l->steps * l->batch;
    const size_t words = (size_t)(rows * (l->directions * job.padded + 1));
    /* Not kept for the next call, as long sequences take much */
    job.projected = aligned_alloc(64, (words * sizeof *job.projected + 63) / 64 * 64);
    job.failed = !job.projected || find_coding(&job);
    if (!job.failed) {
        job.row_sums = job.projected + l->directions * rows * job.padded;
        pool_run(input_task, &job, CEIL_DIV(rows, ROWS_TOGETHER));
    }
    if (!job.failed) pool_run(direction_task, &job, l->directions);
    free(job.projected);
    return job.failed ? -1 : 0;
}
