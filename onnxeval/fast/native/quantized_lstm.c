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
    float *projected;                 /* (directions, steps, batch, padded): what the input adds to the gates */
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

/* What one matrix adds to the gates of a row: sums of products, times scales. */
typedef struct {
    const IntegerMatrix *b;
    const float *scales;
    RowSums row;
    float row_scale;
} Share;

INLINE Vector share_of(const Share *share, long j, long count) {
    return scaled_sums(&share->row, j, share->b, j, share->row_scale, share->scales, count);
}

INLINE void put(float *to, Vector v, long count) {
    if (count == LANES)
        store(to, v);
    else
        store_first(to, v, count);
}

static void input_task(void *context, long ticket) {
    Job *job = context;
    const QuantizedLstm *l = job->l;
    const long groups = CEIL_DIV(l->features, GROUP), all_rows = l->steps * l->batch, width = 4 * l->hidden;
    const long first = ticket * ROWS_TOGETHER, rows = MINIMUM(ROWS_TOGETHER, all_rows - first);
    int32_t *words = (int32_t *)scratch(SCRATCH_STEPS, (size_t)(rows * groups + l->features)), code_sums[ROWS_TOGETHER];
    if (!words) {
        job->failed = 1;
        return;
    }
    float *copy = (float *)(words + rows * groups);
    for (long i = 0; i < rows; i++)
        code_sums[i] = encode(words + i * groups, row_of(l, first + i, copy), l->features, &job->coding);
    for (long d = 0; d < l->directions; d++) {
        float *to = job->projected + (d * all_rows + first) * job->padded;
        NAMED(multiply_words)(words, groups, l->into[d], (int32_t *)to, job->padded, rows);
        Share share = {.b = l->into[d], .scales = l->into_scales + d * width, .row_scale = job->coding.scale};
        for (long i = 0; i < rows; i++, to += job->padded) {
            share.row = row_sums((int32_t *)to, l->features, code_sums[i], job->coding.zero);
            for (long j = 0; j < width; j += LANES) {
                const long count = MINIMUM(LANES, width - j);
                put(to + j, share_of(&share, j, count), count);
            }
        }
    }
}

/* Gates `from` to `to` of one row, in the place of the sums of the state's products. */
INLINE void open_gates(const Share *state, const float *projected, const float *bias, long width, long from, long to, float *gates,
                       const int is_cell) {
    for (long j = from; j < to; j += LANES) {
        const long count = MINIMUM(LANES, to - j);
        Vector v = share_of(state, j, count) + part(projected + j, count);
        if (bias) v += part(bias + j, count) + part(bias + width + j, count);
        put(gates + j, is_cell ? rational_tanh(v) : rational_logistic(v), count);
    }
}

/* Gates in the order input, output, forget, cell. */
INLINE void step_cells(const float *gates, long hidden, float *memory, float *shown) {
    for (long j = 0; j < hidden; j += LANES) {
        const long count = MINIMUM(LANES, hidden - j);
        const Vector kept = rounded(part(memory + j, count) * part(gates + 2 * hidden + j, count));
        const Vector written = rounded(part(gates + j, count) * part(gates + 3 * hidden + j, count));
        const Vector held = kept + written;
        put(memory + j, held, count);
        put(shown + j, rational_tanh(held) * part(gates + hidden + j, count), count);
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
            const float *projected = job->projected + ((direction * l->steps + time) * l->batch + i) * job->padded;
            int32_t *row = sums + i * job->padded;
            from_state.row = row_sums(row, hidden, code_sums[i], coding.zero);
            open_gates(&from_state, projected, bias, width, 0, 3 * hidden, (float *)row, 0);
            open_gates(&from_state, projected, bias, width, 3 * hidden, width, (float *)row, 1);
            step_cells((float *)row, hidden, memory + i * hidden, next + i * hidden);
        }
        state = next;
    }
    if (state != last) memcpy(last, state, (size_t)size * sizeof *last);
}

int NAMED(run_quantized_lstm)(const QuantizedLstm *l) {
    Job job = {.l = l, .padded = CEIL_DIV(4 * l->hidden, LANES) * LANES};
    const long rows = l->steps * l->batch;
    const size_t floats = (size_t)(rows * l->directions * job.padded);
    /* Not kept for the next call, as long sequences take much */
    job.projected = aligned_alloc(64, (floats * sizeof *job.projected + 63) / 64 * 64);
    job.failed = !job.projected || find_coding(&job);
    if (!job.failed) pool_run(input_task, &job, CEIL_DIV(rows, ROWS_TOGETHER));
    if (!job.failed) pool_run(direction_task, &job, l->directions);
    free(job.projected);
    return job.failed ? -1 : 0;
}
