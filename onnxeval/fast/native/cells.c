/* LSTM, GRU and RNN of floats: the directions beside each other, each step after the one before. What comes of the input
   is computed for some steps at once. */
#include <math.h>
#include <stdatomic.h>

#include "curves.h"
#include "pool.h"
#include "tier.h"

#define AHEAD_FLOATS (1 << 17) /* of what comes of the input: they stay in the second cache */

typedef struct {
    const Layer *l;
    _Atomic int failed;
} Job;

/* Of the steps of one direction: the width of its gates, and what is needed beside the layer itself. */
typedef struct {
    long direction, width;
    float *bias, *recurrent_bias; /* the second: what is added to what the state makes */
    float *zeros, *recurrent, *let, *ahead;
    ptrdiff_t *offsets; /* of the input at each step that is computed ahead */
} Space;

INLINE Vector load_some(const float *p, long count) { return count == LANES ? load(p) : load_first(p, count); }

INLINE void store_some(float *p, Vector v, long count) {
    if (count == LANES)
        store(p, v);
    else
        store_first(p, v, count);
}

/* Gates in the order input, output, forget, cell. */
INLINE void lstm_cells(const float *gates, long hidden, float *memory, float *state, long count) {
    Vector write = logistic(load_some(gates, count)), reveal = logistic(load_some(gates + hidden, count));
    Vector keep = logistic(load_some(gates + 2 * hidden, count));
    Vector candidate = hyperbolic_tangent(load_some(gates + 3 * hidden, count));
    Vector held = keep * load_some(memory, count) + write * candidate, shown = reveal * hyperbolic_tangent(held);
    store_some(memory, held, count);
    store_some(state, shown, count);
}

/* Gates in the order update, reset, hidden: what comes of the input and what of the state, whose last part the reset
   gate lets through. */
INLINE void gru_cells(const float *input, const float *recurrent, long hidden, const float *before, float *state, long count) {
    Vector update = logistic(load_some(input, count) + load_some(recurrent, count));
    Vector reset = logistic(load_some(input + hidden, count) + load_some(recurrent + hidden, count));
    Vector let = reset * load_some(recurrent + 2 * hidden, count);
    Vector candidate = hyperbolic_tangent(load_some(input + 2 * hidden, count) + let);
    store_some(state, (all(1.0f) - update) * candidate + update * load_some(before, count), count);
}

static const Activation none = {CLIP, -INFINITY, INFINITY};

/* activation(states * packed + bias + residual), of a whole batch of states. */
static int multiply_states(const Layer *l, const float *states, const float *packed, long n, float *result,
                           const float *bias, const float *residual, Activation activation) {
    static const ptrdiff_t start = 0;
    Product p = {.batch = 1, .m = l->batch, .n = n, .k = l->hidden, .a = states, .a_offsets = &start, .a_row = l->hidden,
                 .a_step = 1, .b_offsets = &start, .packed = packed, .c = result,
                 .epilogue = {.column_bias = bias, .residual = residual, .activation = activation}};
    return NAMED(multiply)(&p);
}

/* The biases of input and recurrence are added up, but for what the reset gate lets through. */
static void add_biases(const Layer *l, Space *s) {
    const long together = l->kind == GRU_AFTER ? 2 * l->hidden : s->width;
    const float *given = l->bias ? l->bias + s->direction * 2 * s->width : NULL;
    for (long j = 0; j < s->width; j++) {
        const float other = given ? given[s->width + j] : 0;
        s->bias[j] = (given ? given[j] : 0) + (j < together ? other : 0);
        s->recurrent_bias[j] = j < together ? 0 : other;
    }
}

/* Whether a sequence has ended at a time. */
static int has_ended(const Layer *l, long sequence, long time) { return l->lengths && time >= l->lengths[sequence]; }

/* One step: from what comes of the input and the state before to the next state. The memory of what has ended stays. */
static int take_step(const Layer *l, const Space *s, long time, const float *input, const float *before, float *memory,
                     float *next) {
    const long hidden = l->hidden, width = s->width, d = s->direction;
    switch (l->kind) {
        case RNN: return multiply_states(l, before, l->across[d], width, next, NULL, input, l->activation);
        case LSTM:
            if (multiply_states(l, before, l->across[d], width, s->recurrent, NULL, input, none)) return -1;
            for (long i = 0; i < l->batch; i++)
                for (long j = 0; j < hidden && !has_ended(l, i, time); j += LANES)
                    lstm_cells(s->recurrent + i * width + j, hidden, memory + i * hidden + j, next + i * hidden + j,
                               MINIMUM(LANES, hidden - j));
            return 0;
        case GRU_AFTER:
            if (multiply_states(l, before, l->across[d], width, s->recurrent, s->recurrent_bias, NULL, none))
                return -1;
            for (long i = 0; i < l->batch; i++)
                for (long j = 0; j < hidden; j += LANES)
                    gru_cells(input + i * width + j, s->recurrent + i * width + j, hidden, before + i * hidden + j,
                              next + i * hidden + j, MINIMUM(LANES, hidden - j));
            return 0;
        case GRU_BEFORE: break;
    }
    float *gates = s->recurrent, *candidates = gates + l->batch * 2 * hidden;
    if (multiply_states(l, before, l->across[d], 2 * hidden, gates, NULL, NULL, none)) return -1;
    for (long i = 0; i < l->batch; i++)
        for (long j = 0; j < hidden; j += LANES) {
            const long count = MINIMUM(LANES, hidden - j);
            const float *given = input + i * width + hidden + j;
            Vector reset = logistic(load_some(given, count) + load_some(gates + (2 * i + 1) * hidden + j, count));
            store_some(s->let + i * hidden + j, reset * load_some(before + i * hidden + j, count), count);
        }
    if (multiply_states(l, s->let, l->candidates[d], hidden, candidates, NULL, NULL, none)) return -1;
    for (long i = 0; i < l->batch; i++)
        for (long j = 0; j < hidden; j += LANES) {
            const long count = MINIMUM(LANES, hidden - j);
            const float *given = input + i * width + j;
            Vector update = logistic(load_some(given, count) + load_some(gates + 2 * i * hidden + j, count));
            Vector candidate = hyperbolic_tangent(load_some(given + 2 * hidden, count) +
                                                  load_some(candidates + i * hidden + j, count));
            Vector kept = update * load_some(before + i * hidden + j, count);
            store_some(next + i * hidden + j, (all(1.0f) - update) * candidate + kept, count);
        }
    return 0;
}

/* What comes of the input at `count` steps. */
static int look_ahead(const Layer *l, const Space *s, long first, long count) {
    Product p = {.batch = 1, .m = count * l->batch, .n = s->width, .k = l->features, .a = l->x + first * l->x_time,
                 .a_offsets = s->offsets, .a_row = l->x_row, .a_step = l->x_step, .b_offsets = s->offsets,
                 .packed = l->into[s->direction], .c = s->ahead, .epilogue = {.column_bias = s->bias, .activation = none}};
    if (l->batch == 1) {
        p.a_row = l->x_time;
    } else if (count > 1 && l->x_time != l->batch * l->x_row) {
        p.batch = count;
        p.m = l->batch;
    }
    return NAMED(multiply)(&p);
}

/* The outputs of sequences that have ended are zero, and their states stay; those of others go on. */
static void keep_running(const Layer *l, long time, float *next, float *last) {
    const size_t bytes = (size_t)l->hidden * sizeof(float);
    for (long i = 0; i < l->batch; i++, next += l->hidden, last += l->hidden)
        if (has_ended(l, i, time))
            memset(next, 0, bytes);
        else
            memcpy(last, next, bytes);
}

static int run_direction(const Layer *l, const Space *s, long steps_ahead) {
    const long d = s->direction, size = l->batch * l->hidden, width = s->width;
    float *last = l->last_state + d * size;
    const float *state = l->lengths ? last : s->zeros;
    if (!l->initial_state)
        memset(l->lengths ? last : s->zeros, 0, (size_t)size * sizeof(float));
    else if (l->lengths)
        memcpy(last, l->initial_state + d * size, (size_t)size * sizeof(float));
    else
        state = l->initial_state + d * size;
    float *memory = l->last_memory ? l->last_memory + d * size : NULL;
    if (memory && l->initial_memory)
        memcpy(memory, l->initial_memory + d * size, (size_t)size * sizeof(float));
    else if (memory)
        memset(memory, 0, (size_t)size * sizeof(float));
    for (long start = 0; start < l->steps; start += steps_ahead) {
        const long count = MINIMUM(steps_ahead, l->steps - start);
        const long first = l->backwards[d] ? l->steps - start - count : start;
        if (look_ahead(l, s, first, count)) return -1;
        for (long step = 0; step < count; step++) {
            const long within = l->backwards[d] ? count - 1 - step : step;
            const long time = first + within;
            float *next = l->outputs + (time * l->directions + d) * size;
            if (take_step(l, s, time, s->ahead + within * l->batch * width, state, memory, next)) return -1;
            if (l->lengths)
                keep_running(l, time, next, last);
            else
                state = next;
        }
    }
    if (!l->lengths) memcpy(last, state, (size_t)size * sizeof(float));
    return 0;
}

static void direction_task(void *context, long direction) {
    Job *job = context;
    const Layer *l = job->l;
    const long width = l->hidden * (l->kind == LSTM ? 4 : l->kind == RNN ? 1 : 3), size = l->batch * l->hidden;
    const long steps_ahead = MAXIMUM(1, MINIMUM(l->steps, AHEAD_FLOATS / (l->batch * width)));
    const long offsets = steps_ahead * (long)(sizeof(ptrdiff_t) / sizeof(float));
    float *space = scratch(SCRATCH_STEPS, (size_t)(offsets + 2 * width + 2 * size + l->batch * width * (1 + steps_ahead)));
    if (!space) {
        job->failed = 1;
        return;
    }
    Space s = {.direction = direction, .width = width, .offsets = (ptrdiff_t *)space, .bias = space + offsets};
    s.recurrent_bias = s.bias + width;
    for (long step = 0; step < steps_ahead; step++) s.offsets[step] = step * l->x_time;
    s.zeros = s.recurrent_bias + width;
    s.let = s.zeros + size;
    s.recurrent = s.let + size;
    s.ahead = s.recurrent + l->batch * width;
    add_biases(l, &s);
    if (run_direction(l, &s, steps_ahead)) job->failed = 1;
}

int NAMED(run_layer)(const Layer *l) {
    Job job = {l, 0};
    if (l->directions > 1)
        pool_run(direction_task, &job, l->directions);
    else
        direction_task(&job, 0);
    return job.failed ? -1 : 0;
}
