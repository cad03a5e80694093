/* Slices and elements picked by their indices, or put where these say. No index is used before all are checked. */
#include "pool.h"
#include "tier.h"

#define TASK_BYTES 65536

INLINE long index_at(const Indices *i, long place) {
    return i->wide ? (long)((const int64_t *)i->numbers)[place] : ((const int32_t *)i->numbers)[place];
}

/* Whether indices, of which those `at`, `at` + `step` and so on count, lie in [-size, size). */
static int inside(const Indices *i, long count, long at, long step, long size) {
    const uint64_t span = 2 * (uint64_t)size;
    int outside = 0;
    if (i->wide) {
        const int64_t *numbers = i->numbers;
        for (long k = at; k < count; k += step) outside |= (uint64_t)numbers[k] + (uint64_t)size >= span;
    } else {
        const int32_t *numbers = i->numbers;
        for (long k = at; k < count; k += step) outside |= (uint64_t)(int64_t)numbers[k] + (uint64_t)size >= span;
    }
    return !outside;
}

typedef struct {
    const Slices *s;
    long each;
} Job;

typedef uint8_t Item1 __attribute__((may_alias));
typedef uint16_t Item2 __attribute__((aligned(1), may_alias));
typedef uint32_t Item4 __attribute__((aligned(1), may_alias));
typedef uint64_t Item8 __attribute__((aligned(1), may_alias));

#define PLACE(numbers) ((numbers)[k] + ((numbers)[k] < 0 ? size : 0))
#define TAKE(size_, numbers) \
    for (long k = 0; k < n; k++) ((Item##size_ *)part)[k] = ((const Item##size_ *)whole)[PLACE(numbers)]
#define TAKER(name, type) \
    static int take_##name(char *part, const char *whole, const type *numbers, long n, long size, long bytes) { \
        switch (bytes) { \
            case 1: TAKE(1, numbers); return 1; \
            case 2: TAKE(2, numbers); return 1; \
            case 4: TAKE(4, numbers); return 1; \
            case 8: TAKE(8, numbers); return 1; \
            default: return 0; \
        } \
    }
TAKER(wide, int64_t)
TAKER(narrow, int32_t)

/* The slices `first` to `last` of one outer place. */
static void move_some(const Slices *s, long outer, long first, long last) {
    long block = s->bytes;
    for (int axis = 0; axis < s->depth; axis++) block *= s->sizes[axis];
    char *whole = s->data + outer * block, *part = s->slices + (outer * s->count + first) * s->bytes;
    const long tuple = (s->shared ? 0 : outer * s->count) + first;
    if (s->depth == 1 && !s->puts) {
        const int64_t *wide = s->indices.numbers;
        const int32_t *narrow = s->indices.numbers;
        if (s->indices.wide ? take_wide(part, whole, wide + tuple, last - first, s->sizes[0], s->bytes)
                            : take_narrow(part, whole, narrow + tuple, last - first, s->sizes[0], s->bytes))
            return;
    }
    for (long k = 0; k < last - first; k++, part += s->bytes) {
        long place = 0;
        for (int axis = 0; axis < s->depth; axis++) {
            const long index = index_at(&s->indices, (tuple + k) * s->depth + axis);
            place = place * s->sizes[axis] + index + (index < 0 ? s->sizes[axis] : 0);
        }
        if (s->puts)
            memcpy(whole + place * s->bytes, part, (size_t)s->bytes);
        else
            memcpy(part, whole + place * s->bytes, (size_t)s->bytes);
    }
}

static void slices_task(void *context, long ticket) {
    const Job *job = context;
    const Slices *s = job->s;
    const long end = MINIMUM(s->outer * s->count, (ticket + 1) * job->each);
    for (long slice = ticket * job->each; slice < end;) {
        const long outer = slice / s->count, first = slice % s->count, last = MINIMUM(s->count, first + end - slice);
        move_some(s, outer, first, last);
        slice += last - first;
    }
}

int NAMED(move_slices)(const Slices *s) {
    const long tuples = s->shared ? s->count : s->outer * s->count;
    for (int axis = 0; axis < s->depth; axis++)
        if (!inside(&s->indices, tuples * s->depth, axis, s->depth, s->sizes[axis])) return 1;
    const long all = s->outer * s->count;
    if (!all || !s->bytes) return 0;
    Job job = {s, s->puts ? all : MAXIMUM(1, TASK_BYTES / (s->bytes + 16))}; /* of two slices put to one place the last stays */
    pool_run(slices_task, &job, CEIL_DIV(all, job.each));
    return 0;
}

/* One row of elements: the part that no index decides goes on by x_step, and what an index decides by `step`. */
#define ROW(type) \
    for (long i = 0; i < n; i++) { \
        const long index = index_at(&indices, i * stride); \
        char *whole = data + i * x_step + (index + (index < 0 ? e->size : 0)) * e->step, *part = y + i * y_step; \
        if (e->puts) \
            memcpy(whole, part, sizeof(type)); \
        else \
            memcpy(part, whole, sizeof(type)); \
    } \
    break

int NAMED(move_elements)(const Picks *e) {
    const long count = places(&e->nest, e->nest.axes), width = e->indices.wide ? 8 : 4;
    if (!inside(&e->indices, count, 0, 1, e->size)) return 1;
    if (!count) return 0;
    Nest nest = e->nest;
    tidy(&nest, 3, 0);
    if (!nest.axes) nest = (Nest){.axes = 1, .shape = {1}};
    const int inner = nest.axes - 1;
    const long n = nest.shape[inner], stride = nest.steps[2][inner] / width;
    const ptrdiff_t y_step = nest.steps[0][inner], x_step = nest.steps[1][inner];
    Walk w;
    walk_to(&w, &nest, 3, inner, 0);
    for (long row = 0; row < count / n; row++, walk_on(&w, &nest, 3, inner)) {
        char *y = e->elements + w.offsets[0], *data = e->data + w.offsets[1];
        const Indices indices = {(const char *)e->indices.numbers + w.offsets[2], e->indices.wide};
        switch (e->bytes) {
            case 1: ROW(uint8_t);
            case 2: ROW(uint16_t);
            case 4: ROW(uint32_t);
            case 8: ROW(uint64_t);
            default: ROW(uint64_t[2]);
        }
    }
    return 0;
}
