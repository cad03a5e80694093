/* One function of elements that broadcast: arithmetic, comparisons, choices and conversions of every plain type. */
#include <math.h>

#include "half.h"
#include "pool.h"
#include "tier.h"

#define BUFFER 512 /* elements that a loop sees at once */
#define CHUNK 8192 /* elements of a row that one unit of work takes */
#define TASK_ELEMENTS 16384

/* y[i] from the elements i of the operands, all next to each other. */
typedef void (*Loop)(char *y, const char *const *x, long n);

#define TWO(name, type, result, expression) \
    static void name(char *out, const char *const *x, long n) { \
        const type *left = (const type *)x[0], *right = (const type *)x[1]; \
        result *y = (result *)out; \
        for (long i = 0; i < n; i++) { \
            const type a = left[i], b = right[i]; \
            y[i] = (result)(expression); \
        } \
    }

#define COMPARISONS(name, type) \
    TWO(equal_##name, type, uint8_t, a == b) \
    TWO(below_##name, type, uint8_t, a < b) \
    TWO(at_most_##name, type, uint8_t, a <= b)

/* `wrapping` is the type whose arithmetic wraps around as NumPy's does. */
#define ARITHMETIC(name, type, wrapping) \
    TWO(add_##name, type, type, (wrapping)a + (wrapping)b) \
    TWO(subtract_##name, type, type, (wrapping)a - (wrapping)b) \
    TWO(multiply_##name, type, type, (wrapping)a * (wrapping)b) \
    TWO(greater_##name, type, type, a > b || a != a ? a : b) \
    TWO(less_##name, type, type, a < b || a != a ? a : b) \
    COMPARISONS(name, type)

ARITHMETIC(float32, float, float)
ARITHMETIC(float64, double, double)
ARITHMETIC(int32, int32_t, uint32_t)
ARITHMETIC(int64, int64_t, uint64_t)
TWO(divide_float32, float, float, a / b)
TWO(divide_float64, double, double, a / b)
COMPARISONS(int8, int8_t)
COMPARISONS(uint8, uint8_t)
TWO(both, uint8_t, uint8_t, (a != 0) & (b != 0))
TWO(either, uint8_t, uint8_t, (a != 0) | (b != 0))
TWO(one_of_both, uint8_t, uint8_t, (a != 0) ^ (b != 0))

static void inverse(char *y, const char *const *x, long n) {
    for (long i = 0; i < n; i++) y[i] = !x[0][i];
}

#define WHERE(size, type) \
    static void where_##size(char *out, const char *const *x, long n) { \
        const uint8_t *condition = (const uint8_t *)x[0]; \
        const type *a = (const type *)x[1], *b = (const type *)x[2]; \
        type *y = (type *)out; \
        for (long i = 0; i < n; i++) y[i] = condition[i] ? a[i] : b[i]; \
    }
WHERE(1, uint8_t)
WHERE(2, uint16_t)
WHERE(4, uint32_t)
WHERE(8, uint64_t)

#define CONVERT(from, to, given, result, expression) \
    static void from##_to_##to(char *out, const char *const *x, long n) { \
        const given *values = (const given *)x[0]; \
        result *y = (result *)out; \
        for (long i = 0; i < n; i++) { \
            const given v = values[i]; \
            y[i] = (result)(expression); \
        } \
    }

/* Towards zero; beyond the range the nearest end, and 0 for NaN. The `limit`, a power of two, is one above the top. */
#define INTO(result, low, top, limit, v) ((v) != (v) ? 0 : (v) >= (limit) ? (top) : (v) < (low) ? (low) : (result)(v))
#define FROM_FLOAT(from, given, cut) \
    CONVERT(from, int8, given, int8_t, INTO(int8_t, INT8_MIN, INT8_MAX, 0x1p7f, cut(v))) \
    CONVERT(from, uint8, given, uint8_t, INTO(uint8_t, 0, UINT8_MAX, 0x1p8f, cut(v))) \
    CONVERT(from, int32, given, int32_t, INTO(int32_t, INT32_MIN, INT32_MAX, 0x1p31f, cut(v))) \
    CONVERT(from, int64, given, int64_t, INTO(int64_t, INT64_MIN, INT64_MAX, 0x1p63f, v)) \
    CONVERT(from, bool, given, uint8_t, v != 0)

FROM_FLOAT(float32, float, truncf)
FROM_FLOAT(float64, double, trunc)
CONVERT(float32, float64, float, double, v)
CONVERT(float64, float32, double, float, v)

#define FROM_INTEGER(from, given) \
    CONVERT(from, float32, given, float, v) \
    CONVERT(from, float64, given, double, v) \
    CONVERT(from, bool, given, uint8_t, v != 0)
FROM_INTEGER(int8, int8_t)
FROM_INTEGER(uint8, uint8_t)
FROM_INTEGER(int32, int32_t)
FROM_INTEGER(int64, int64_t)
#define WIDTHS(from, given, one, one_type, two, two_type, three, three_type) \
    CONVERT(from, one, given, one_type, v) \
    CONVERT(from, two, given, two_type, v) \
    CONVERT(from, three, given, three_type, v)
WIDTHS(int8, int8_t, uint8, uint8_t, int32, int32_t, int64, int64_t)
WIDTHS(uint8, uint8_t, int8, int8_t, int32, int32_t, int64, int64_t)
WIDTHS(int32, int32_t, int8, int8_t, uint8, uint8_t, int64, int64_t)
WIDTHS(int64, int64_t, int8, int8_t, uint8, uint8_t, int32, int32_t)

#define TO_HALF(kind) \
    static void float32_to_##kind(char *y, const char *const *x, long n) { narrow_##kind((uint16_t *)y, (const float *)x[0], n); } \
    static void kind##_to_float32(char *y, const char *const *x, long n) { widen_##kind((float *)y, (const uint16_t *)x[0], n); }
TO_HALF(float16)
TO_HALF(bfloat16)

/* 24 bits hold enough of a sum, difference, product or quotient of two numbers of 11 that it is rounded as if it was exact. */
#define HALVES(name, kind) \
    static void name##_##kind(char *y, const char *const *x, long n) { \
        float a[BUFFER], b[BUFFER]; \
        const char *const wide[] = {(const char *)a, (const char *)b}; \
        widen_##kind(a, (const uint16_t *)x[0], n); \
        widen_##kind(b, (const uint16_t *)x[1], n); \
        name##_float32((char *)a, wide, n); \
        narrow_##kind((uint16_t *)y, a, n); \
    }
#define HALF_ARITHMETIC(kind) \
    HALVES(add, kind) HALVES(subtract, kind) HALVES(multiply, kind) HALVES(divide, kind) HALVES(greater, kind) HALVES(less, kind)
HALF_ARITHMETIC(float16)
HALF_ARITHMETIC(bfloat16)

#define COMPARED(name, kind) \
    static void name##_##kind(char *y, const char *const *x, long n) { \
        float a[BUFFER], b[BUFFER]; \
        const char *const wide[] = {(const char *)a, (const char *)b}; \
        widen_##kind(a, (const uint16_t *)x[0], n); \
        widen_##kind(b, (const uint16_t *)x[1], n); \
        name##_float32(y, wide, n); \
    }
#define HALF_COMPARISONS(kind) COMPARED(equal, kind) COMPARED(below, kind) COMPARED(at_most, kind)
HALF_COMPARISONS(float16)
HALF_COMPARISONS(bfloat16)

/* What converts each type to each other; of what is not there the readable kernel takes care. */
static const Loop conversions[TYPES][TYPES] = {
    [FLOAT32] = {[FLOAT64] = float32_to_float64, [INT8] = float32_to_int8, [UINT8] = float32_to_uint8,
                 [INT32] = float32_to_int32, [INT64] = float32_to_int64, [BOOL] = float32_to_bool,
                 [FLOAT16] = float32_to_float16, [BFLOAT16] = float32_to_bfloat16},
    [FLOAT64] = {[FLOAT32] = float64_to_float32, [INT8] = float64_to_int8, [UINT8] = float64_to_uint8,
                 [INT32] = float64_to_int32, [INT64] = float64_to_int64, [BOOL] = float64_to_bool},
    [INT8] = {[FLOAT32] = int8_to_float32, [FLOAT64] = int8_to_float64, [UINT8] = int8_to_uint8,
              [INT32] = int8_to_int32, [INT64] = int8_to_int64, [BOOL] = int8_to_bool},
    [UINT8] = {[FLOAT32] = uint8_to_float32, [FLOAT64] = uint8_to_float64, [INT8] = uint8_to_int8,
               [INT32] = uint8_to_int32, [INT64] = uint8_to_int64, [BOOL] = uint8_to_bool},
    [INT32] = {[FLOAT32] = int32_to_float32, [FLOAT64] = int32_to_float64, [INT8] = int32_to_int8,
               [UINT8] = int32_to_uint8, [INT64] = int32_to_int64, [BOOL] = int32_to_bool},
    [INT64] = {[FLOAT32] = int64_to_float32, [FLOAT64] = int64_to_float64, [INT8] = int64_to_int8,
               [UINT8] = int64_to_uint8, [INT32] = int64_to_int32, [BOOL] = int64_to_bool},
    [BOOL] = {[FLOAT32] = uint8_to_float32, [FLOAT64] = uint8_to_float64, [INT8] = uint8_to_int8,
              [UINT8] = uint8_to_bool, [INT32] = uint8_to_int32, [INT64] = uint8_to_int64},
    [FLOAT16] = {[FLOAT32] = float16_to_float32},
    [BFLOAT16] = {[FLOAT32] = bfloat16_to_float32},
};

#define OF_NUMBERS(name) [FLOAT32] = name##_float32, [FLOAT64] = name##_float64, [INT32] = name##_int32, [INT64] = name##_int64
#define OF_HALVES(name) [FLOAT16] = name##_float16, [BFLOAT16] = name##_bfloat16
#define OF_ALL(name) OF_NUMBERS(name), [INT8] = name##_int8, [UINT8] = name##_uint8, [BOOL] = name##_uint8
static const Loop functions[MAPPINGS][TYPES] = {
    [MAP_ADD] = {OF_NUMBERS(add), OF_HALVES(add)},
    [MAP_SUBTRACT] = {OF_NUMBERS(subtract), OF_HALVES(subtract)},
    [MAP_MULTIPLY] = {OF_NUMBERS(multiply), OF_HALVES(multiply)},
    [MAP_DIVIDE] = {[FLOAT32] = divide_float32, [FLOAT64] = divide_float64, OF_HALVES(divide)},
    [MAP_GREATER] = {OF_NUMBERS(greater), OF_HALVES(greater)},
    [MAP_LESS] = {OF_NUMBERS(less), OF_HALVES(less)},
    [MAP_EQUAL] = {OF_ALL(equal), OF_HALVES(equal)},
    [MAP_BELOW] = {OF_ALL(below), OF_HALVES(below)},
    [MAP_AT_MOST] = {OF_ALL(at_most), OF_HALVES(at_most)},
    [MAP_AND] = {[BOOL] = both},
    [MAP_OR] = {[BOOL] = either},
    [MAP_XOR] = {[BOOL] = one_of_both},
    [MAP_NOT] = {[BOOL] = inverse},
};

static Loop loop_of(const Mapping *m) {
    if (m->what == MAP_CAST) return conversions[m->type][m->to];
    if (m->what != MAP_WHERE) return functions[m->what][m->type];
    switch (m->sizes[0]) {
        case 1: return where_1;
        case 2: return where_2;
        case 4: return where_4;
        case 8: return where_8;
        default: return NULL;
    }
}

typedef struct {
    const Mapping *m;
    Loop loop;
    Nest n;
    long parts, each, units; /* of a row, of a task, of all */
} Job;

#define SPREAD(type) \
    for (long i = 0; i < n; i++) ((type *)buffer)[i] = *(const type *)(x + i * step); \
    break

/* The next `n` elements of an operand, one beside the other. */
static void spread(char *buffer, const char *x, long n, ptrdiff_t step, long size) {
    switch (size) {
        case 1: SPREAD(uint8_t);
        case 2: SPREAD(uint16_t);
        case 4: SPREAD(uint32_t);
        default: SPREAD(uint64_t);
    }
}

static void map_task(void *context, long ticket) {
    const Job *job = context;
    const Mapping *m = job->m;
    const Nest *n = &job->n;
    const int inner = n->axes - 1, arrays = m->operands + 1;
    const long first = ticket * job->each, end = MINIMUM(job->units, first + job->each);
    uint64_t buffers[MOST_NESTED - 1][BUFFER];
    const char *held[MOST_NESTED] = {NULL}; /* the single element that a buffer is full of */
    Walk w;
    walk_to(&w, n, arrays, inner, first / job->parts);
    for (long unit = first; unit < end; unit++) {
        const long part = unit % job->parts, stop = MINIMUM(n->shape[inner], (part + 1) * CHUNK);
        for (long start = part * CHUNK; start < stop; start += BUFFER) {
            const long length = MINIMUM(BUFFER, stop - start);
            const char *x[MOST_NESTED];
            for (int i = 1; i < arrays; i++) {
                const ptrdiff_t step = n->steps[i][inner];
                x[i - 1] = m->arrays[i] + w.offsets[i] + start * step;
                if (step == m->sizes[i]) continue;
                char *buffer = (char *)buffers[i - 1];
                if (step || held[i] != x[i - 1]) spread(buffer, x[i - 1], step ? length : MINIMUM(BUFFER, n->shape[inner]), step, m->sizes[i]);
                held[i] = step ? NULL : x[i - 1];
                x[i - 1] = buffer;
            }
            job->loop(m->arrays[0] + w.offsets[0] + start * m->sizes[0], x, length);
        }
        if (part == job->parts - 1) walk_on(&w, n, arrays, inner);
    }
}

int NAMED(map_serves)(const Mapping *m) { return loop_of(m) != NULL; }

void NAMED(map)(const Mapping *m) {
    Job job = {.m = m, .loop = loop_of(m), .n = m->nest};
    if (!places(&m->nest, m->nest.axes)) return;
    tidy(&job.n, m->operands + 1, 0);
    if (!job.n.axes) job.n = (Nest){.axes = 1, .shape = {1}};
    const int inner = job.n.axes - 1;
    const long length = job.n.shape[inner];
    job.parts = CEIL_DIV(length, CHUNK);
    job.units = places(&job.n, inner) * job.parts;
    job.each = MAXIMUM(1, TASK_ELEMENTS / MINIMUM(CHUNK, length));
    pool_run(map_task, &job, CEIL_DIV(job.units, job.each));
}
