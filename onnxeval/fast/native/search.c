/* Where along an axis the greatest or the least element is, and running sums along one. */
#include "pool.h"
#include "tier.h"
#include "vector.h"

#define BUFFER 256
#define TASK_ELEMENTS 16384

typedef struct {
    const Lines *l;
    long parts, each, units;
} Job;

/* Whether v comes before the best so far; of equal ones the last does with `last`. A NaN is beyond all. */
#define BETTER(v, best) \
    (least ? (v) < (best) || (last && (v) == (best)) : (v) > (best) || (last && (v) == (best))) || \
        ((v) != (v) && ((best) == (best) || last))

#define SEARCH(name, type) \
    INLINE void search_##name(const Lines *l, long outer, long from, long n, const int least, const int last) { \
        const type *x = (const type *)l->x + outer * l->n * l->inner + from; \
        int64_t *y = (int64_t *)l->y + outer * l->inner + from; \
        type best[BUFFER]; \
        for (long i = 0; i < n; i++) { \
            best[i] = x[i]; \
            y[i] = 0; \
        } \
        for (long row = 1; row < l->n; row++) { \
            x += l->inner; \
            for (long i = 0; i < n; i++) { \
                const type v = x[i]; \
                const int better = BETTER(v, best[i]); \
                best[i] = better ? v : best[i]; \
                y[i] = better ? row : y[i]; \
            } \
        } \
    }
SEARCH(float32, float)
SEARCH(float64, double)
SEARCH(int8, int8_t)
SEARCH(uint8, uint8_t)
SEARCH(int32, int32_t)
SEARCH(int64, int64_t)

INLINE int any_lane(Integers mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    int found = 0;
    for (int lane = 0; lane < LANES; lane++) found |= mask[lane];
    return found;
#endif
}

/* A line of elements beside each other: first what the extreme is, then where. */
INLINE void search_row(const Lines *l, long outer, const int least, const int last) {
    const float *x = (const float *)l->x + outer * l->n;
    const long n = l->n;
    Vector top = all(x[0]);
    float best = x[0];
    long i = 0;
    for (; i + LANES <= n; i += LANES) {
        const Vector v = load(x + i);
        top = choose((least ? v < top : v > top) | (v != v), v, top);
    }
    for (int lane = 0; lane < LANES; lane++)
        best = (least ? top[lane] < best : top[lane] > best) || top[lane] != top[lane] ? top[lane] : best;
    for (; i < n; i++) best = (least ? x[i] < best : x[i] > best) || x[i] != x[i] ? x[i] : best;
    const Vector wanted = all(best);
    long place = last ? n - 1 : 0;
    const long on = last ? -1 : 1;
    for (; best == best && !last && place + LANES <= n; place += LANES) { /* as long as it is in no lane */
        if (any_lane(load(x + place) == wanted)) break;
    }
    if (best != best)
        while (x[place] == x[place]) place += on;
    else
        while (x[place] != best) place += on;
    ((int64_t *)l->y)[outer] = place;
}

static void search_part(const Lines *l, long outer, long from, long n) {
#define FLAGS(function, ...) \
    l->least ? (l->last ? function(__VA_ARGS__, 1, 1) : function(__VA_ARGS__, 1, 0)) \
             : (l->last ? function(__VA_ARGS__, 0, 1) : function(__VA_ARGS__, 0, 0))
#define CASE(of, name) \
    case of: FLAGS(search_##name, l, outer, from, n); return;
    if (l->type == FLOAT32 && l->inner == 1) {
        FLAGS(search_row, l, outer);
        return;
    }
    switch (l->type) {
        CASE(FLOAT32, float32)
        CASE(FLOAT64, float64)
        CASE(INT8, int8)
        CASE(UINT8, uint8)
        CASE(INT32, int32)
        CASE(INT64, int64)
        default: return;
    }
}

/* The sums of floats are of float64, each rounded for itself; those of integers wrap around. */
#define RUNNING(name, type, sum) \
    static void add_up_##name(const Lines *l, long outer, long from, long n) { \
        const type *x = (const type *)l->x + outer * l->n * l->inner + from; \
        type *y = (type *)l->y + outer * l->n * l->inner + from; \
        sum sums[BUFFER]; \
        for (long i = 0; i < n; i++) sums[i] = 0; \
        for (long row = 0; row < l->n; row++) { \
            const long at = (l->reverse ? l->n - 1 - row : row) * l->inner; \
            if (l->exclusive) \
                for (long i = 0; i < n; i++) { \
                    y[at + i] = (type)sums[i]; \
                    sums[i] += (sum)x[at + i]; \
                } \
            else \
                for (long i = 0; i < n; i++) y[at + i] = (type)(sums[i] += (sum)x[at + i]); \
        } \
    }
RUNNING(float32, float, double)
RUNNING(float64, double, double)
RUNNING(int32, int32_t, uint32_t)
RUNNING(int64, int64_t, uint64_t)

static void add_up_part(const Lines *l, long outer, long from, long n) {
    switch (l->type) {
        case FLOAT32: add_up_float32(l, outer, from, n); return;
        case FLOAT64: add_up_float64(l, outer, from, n); return;
        case INT32: add_up_int32(l, outer, from, n); return;
        case INT64: add_up_int64(l, outer, from, n); return;
        default: return;
    }
}

static void lines_task(void *context, long ticket) {
    const Job *job = context;
    const Lines *l = job->l;
    for (long unit = ticket * job->each; unit < MINIMUM(job->units, (ticket + 1) * job->each); unit++) {
        const long from = unit % job->parts * BUFFER, n = MINIMUM(BUFFER, l->inner - from);
        (l->what == LINES_SEARCH ? search_part : add_up_part)(l, unit / job->parts, from, n);
    }
}

int NAMED(lines_serve)(const Lines *l) {
    const int narrow = l->type == INT8 || l->type == UINT8;
    return narrow ? l->what == LINES_SEARCH : l->type == FLOAT32 || l->type == FLOAT64 || l->type == INT32 || l->type == INT64;
}

void NAMED(run_lines)(const Lines *l) {
    if (!l->outer || !l->n || !l->inner) return;
    Job job = {.l = l, .parts = CEIL_DIV(l->inner, BUFFER)};
    job.units = l->outer * job.parts;
    job.each = MAXIMUM(1, TASK_ELEMENTS / (MINIMUM(BUFFER, l->inner) * l->n));
    pool_run(lines_task, &job, CEIL_DIV(job.units, job.each));
}
