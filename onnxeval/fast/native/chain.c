/* Chains of element-wise operations, a block of elements after the other: each goes through all of them in the cache. */
#include "curves.h"
#include "pool.h"
#include "tier.h"

#define BLOCK 2048
#define TASK_FLOATS 16384

INLINE Vector joined(const int how, Vector a, Vector b) {
    switch (how) {
        case ADD: return a + b;
        case SUBTRACT: return a - b;
        case SUBTRACT_FROM: return b - a;
        case MULTIPLY: return a * b;
        case DIVIDE: return a / b;
        case DIVIDE_BY: return b / a;
        case GREATER: return choose(a != a, a, larger(a, b));
        case LESS: return choose(a != a, a, smaller(a, b));
        default: return choose(a < zero(), a * b, a);
    }
}

/* y = x joined with b, which is a single element or as many as x has. */
INLINE void join(const int how, const float *x, const float *b, const int single, float *y, long n) {
    const Vector same = single ? all(*b) : zero();
    long i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, joined(how, load(x + i), single ? same : load(b + i)));
    if (i < n) {
        Vector other = single ? same : load_first(b + i, n - i);
        store_first(y + i, joined(how, load_first(x + i, n - i), other), n - i);
    }
}

static void run_join(int how, const float *x, const float *b, int single, float *y, long n) {
#define CASE(how) \
    case how: \
        single ? join(how, x, b, 1, y, n) : join(how, x, b, 0, y, n); \
        return;
    switch (how) { CASE(ADD) CASE(SUBTRACT) CASE(SUBTRACT_FROM) CASE(MULTIPLY) CASE(DIVIDE) CASE(DIVIDE_BY) CASE(GREATER) CASE(LESS) CASE(SLOPE) }
#undef CASE
}

static void fill(float *y, float value, long n) {
    const Vector same = all(value);
    long i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, same);
    if (i < n) store_first(y + i, same, n - i);
}

typedef struct {
    Vector low, high;
} Bounds;

/* y = (x - mean) * factor + shift, within bounds. These three are single elements, or as many as x has. */
INLINE void normalise(const float *x, const float *mean, const float *factor, const float *shift, const int single,
                      const Bounds *bounds, float *y, long n) {
    const Vector low = bounds->low, high = bounds->high;
    Vector m = all(*mean), f = all(*factor), s = all(*shift);
    long i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (!single) m = load(mean + i), f = load(factor + i), s = load(shift + i);
        store(y + i, smaller(high, larger(low, (load(x + i) - m) * f + s)));
    }
    if (i < n) {
        const long left = n - i;
        if (!single) m = load_first(mean + i, left), f = load_first(factor + i, left), s = load_first(shift + i, left);
        store_first(y + i, smaller(high, larger(low, (load_first(x + i, left) - m) * f + s)), left);
    }
}

/* What a row sees of an operand, from an element on. */
INLINE const float *part_of(const Operand *operand, long row, long start, long length) {
    long part = operand->repeat == 1 ? row : row / operand->repeat; /* to divide takes longer than a short row */
    if (part >= operand->count) part %= operand->count;
    return operand->elements + (operand->is_row ? (ptrdiff_t)part * length + start : part);
}

typedef struct {
    const ElementChain *c;
    long pieces, each; /* blocks of a row, blocks of a task */
} Job;

static void chain_task(void *context, long ticket) {
    const Job *job = context;
    const ElementChain *c = job->c;
    for (long block = ticket * job->each; block < MINIMUM(c->rows * job->pieces, (ticket + 1) * job->each); block++) {
        const long row = block / job->pieces, start = block % job->pieces * BLOCK;
        const long n = MINIMUM(BLOCK, c->length - start);
        const float *x = part_of(c->operands, row, start, c->length);
        float *y = c->y + (ptrdiff_t)row * c->length + start;
        if (!c->operands->is_row) {
            fill(y, *x, n);
            x = y;
        }
        for (long i = 0; i < c->count; i++, x = y) {
            const Instruction *instruction = &c->instructions[i];
            if (instruction->what < ADD) {
                const Activation how = {(ActivationKind)instruction->what, instruction->alpha, instruction->beta};
                NAMED(activate)(&how, x, y, n);
                continue;
            }
            const Operand *operand = &c->operands[instruction->operand];
            if (instruction->what == NORMALISE) {
                const float *mean = part_of(operand, row, start, c->length);
                const float *factor = operand[1].elements + (mean - operand->elements);
                const float *shift = operand[2].elements + (mean - operand->elements);
                Bounds bounds = {all(-INFINITY), all(INFINITY)};
                if (i + 1 < c->count && instruction[1].what == CLIP) {
                    bounds = (Bounds){all(instruction[1].alpha), all(instruction[1].beta)};
                    i++;
                }
                operand->is_row ? normalise(x, mean, factor, shift, 0, &bounds, y, n)
                                : normalise(x, mean, factor, shift, 1, &bounds, y, n);
                continue;
            }
            run_join(instruction->what, x, part_of(operand, row, start, c->length), !operand->is_row, y, n);
        }
    }
}

void NAMED(run_chain)(const ElementChain *c) {
    if (!c->rows || !c->length) return;
    Job job = {c, CEIL_DIV(c->length, BLOCK), 1};
    job.each = MAXIMUM(1, TASK_FLOATS / MINIMUM(BLOCK, c->length));
    pool_run(chain_task, &job, CEIL_DIV(c->rows * job.pieces, job.each));
}
