/* LSTM: the directions beside each other, each step after the one before. */
#include <math.h>
#include <stdatomic.h>

#include "curves.h"
#include "pool.h"
#include "tier.h"

typedef struct {
    const Lstm *l;
    _Atomic int failed;
} Job;

/* What is known of the gates of a few cells becomes their state. */
INLINE void cells(const float *gates, long hidden, float *memory, float *state, long count) {
#define PART(p) (count == LANES ? load(p) : load_first(p, count))
    Vector write = logistic(PART(gates)), reveal = logistic(PART(gates + hidden)), keep = logistic(PART(gates + 2 * hidden));
    Vector candidate = hyperbolic_tangent(PART(gates + 3 * hidden));
    Vector held = keep * PART(memory) + write * candidate, shown = reveal * hyperbolic_tangent(held);
#undef PART
    if (count == LANES) {
        store(memory, held);
        store(state, shown);
    } else {
        store_first(memory, held, count);
        store_first(state, shown, count);
    }
}

/* `count` numbers as bytes: 0 to 255 stand for their range, made to include 0. */
static void quantize(const float *x, long count, uint8_t *bytes, float *scale, int32_t *zero) {
    float low = 0, high = 0, spoilt = 0;
    for (long i = 0; i < count; i++) {
        spoilt += 0 * x[i];
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *scale = (high - low) / 255.0f;
    *zero = 0;
    if (spoilt != 0) *scale = NAN; /* what is not finite makes all of the sums NaN */
    if (!(*scale > 0 && *scale < INFINITY)) {
        memset(bytes, 0, (size_t)count);
        return;
    }
    const float origin = rintf(-low / *scale);
    *zero = (int32_t)origin;
    for (long i = 0; i < count; i++) {
        const float step = rintf(x[i] / *scale) + origin;
        bytes[i] = (uint8_t)(step < 0 ? 0 : step > 255 ? 255 : step);
    }
}

static void direction_task(void *context, long direction) {
    Job *job = context;
    const Lstm *l = job->l;
    const long hidden = l->hidden, width = 4 * hidden, size = l->batch * hidden;
    float *gates = scratch(SCRATCH_STEPS, (size_t)(l->batch * (width + 1) + size));
    if (!gates) {
        job->failed = 1;
        return;
    }
    int32_t *zeros = (int32_t *)(gates + l->batch * width);
    uint8_t *bytes = (uint8_t *)(zeros + l->batch);
    const float *state = l->states + direction * size;
    float *memory = l->memory + direction * size;
    const ptrdiff_t zero = 0;
    for (long step = 0; step < l->steps; step++) {
        const long time = l->backwards[direction] ? l->steps - 1 - step : step;
        const float *projected = l->projected + (direction * l->steps + time) * l->batch * width;
        float *next = l->outputs + (time * l->directions + direction) * size;
        int status;
        if (l->integers) {
            IntegerProduct p = {.m = l->batch, .a = bytes, .a_zero = zeros, .b = l->integers[direction], .scaled = gates,
                                .column_scale = l->column_scales + direction * width, .residual = projected};
            int32_t origin;
            quantize(state, size, bytes, &p.row_scale, &origin);
            for (long i = 0; i < l->batch; i++) zeros[i] = origin;
            status = NAMED(multiply_integers)(&p);
        } else {
            Product p = {.batch = 1, .m = l->batch, .n = width, .k = hidden, .a = state, .a_offsets = &zero, .a_row = hidden,
                         .a_step = 1, .b_offsets = &zero, .packed = l->packed[direction], .c = gates,
                         .epilogue = {.residual = projected, .activation = {CLIP, -INFINITY, INFINITY}}};
            status = NAMED(multiply)(&p);
        }
        if (status) {
            job->failed = 1;
            return;
        }
        for (long i = 0; i < l->batch; i++)
            for (long j = 0; j < hidden; j += LANES)
                cells(gates + i * width + j, hidden, memory + i * hidden + j, next + i * hidden + j, MINIMUM(LANES, hidden - j));
        state = next;
    }
    if (l->steps) memcpy(l->states + direction * size, state, (size_t)size * sizeof(float));
}

int NAMED(run_lstm)(const Lstm *l) {
    Job job = {l, 0};
    if (l->directions > 1)
        pool_run(direction_task, &job, l->directions);
    else
        direction_task(&job, 0);
    return job.failed ? -1 : 0;
}
