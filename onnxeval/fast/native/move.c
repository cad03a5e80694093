/* Elements moved from one layout to another: by rows where both have rows, by square blocks where they are turned. */
#include "pool.h"
#include "tier.h"

#define TASK_BYTES 65536
#define BLOCK 32
#define CHUNK 16384 /* elements of a row that one unit of work moves */

typedef uint8_t Item1 __attribute__((may_alias));
typedef uint16_t Item2 __attribute__((aligned(1), may_alias));
typedef uint32_t Item4 __attribute__((aligned(1), may_alias));
typedef uint64_t Item8 __attribute__((aligned(1), may_alias));
typedef uint64_t Item16 __attribute__((vector_size(16), aligned(1), may_alias));

/* Plane (a, b) of the result, b being next to each other in it, as a are in what is moved. */
typedef struct {
    char *y;
    const char *x;
    long a, b;
    ptrdiff_t y_step, x_step; /* of a in the result, of b in what is moved */
} Plane;

#define MOVERS(size) \
    static void move_row_##size(char *y, const char *x, long n, ptrdiff_t y_step, ptrdiff_t x_step) { \
        if (x_step == 0 && y_step == size) { \
            const Item##size same = *(const Item##size *)x; \
            for (long i = 0; i < n; i++) *(Item##size *)(y + i * size) = same; \
        } else { \
            for (long i = 0; i < n; i++) *(Item##size *)(y + i * y_step) = *(const Item##size *)(x + i * x_step); \
        } \
    } \
    static void turn_##size(const Plane *p) { \
        const ptrdiff_t y_step = p->y_step, x_step = p->x_step; /* what is stored might be these, for all the compiler knows */ \
        const long rows = p->a, columns = p->b; \
        if (rows == 3) { /* the colours of pixels */ \
            char *y = p->y; \
            const char *x = p->x; \
            for (long b = 0; b < columns; b++, y += size, x += x_step) { \
                *(Item##size *)y = *(const Item##size *)x; \
                *(Item##size *)(y + y_step) = *(const Item##size *)(x + size); \
                *(Item##size *)(y + 2 * y_step) = *(const Item##size *)(x + 2 * size); \
            } \
            return; \
        } \
        for (long b = 0; b < columns; b += BLOCK) \
            for (long a = 0; a < rows; a++) { \
                char *y = p->y + a * y_step; \
                const char *x = p->x + a * size; \
                for (long i = b; i < MINIMUM(b + BLOCK, columns); i++) \
                    *(Item##size *)(y + i * size) = *(const Item##size *)(x + i * x_step); \
            } \
    }
MOVERS(1)
MOVERS(2)
MOVERS(4)
MOVERS(8)
MOVERS(16)

typedef uint32_t Quad __attribute__((vector_size(16)));
typedef uint32_t LooseQuad __attribute__((vector_size(16), aligned(1), may_alias));
#if defined(__clang__)
#define PICK(v, w, ...) __builtin_shufflevector(v, w, __VA_ARGS__)
#else
#define PICK(v, w, ...) __builtin_shuffle(v, w, (Quad){__VA_ARGS__})
#endif

static void turn_4_by_squares(const Plane *p) {
    const long whole_a = p->a / 4 * 4, whole_b = p->b / 4 * 4;
    for (long b = 0; b < whole_b; b += 4) {
        const char *x = p->x + b * p->x_step;
        char *y = p->y + b * 4;
        for (long a = 0; a < whole_a; a += 4) {
            Quad rows[4], halves[4];
            for (int i = 0; i < 4; i++) rows[i] = *(const LooseQuad *)(x + i * p->x_step + a * 4);
            halves[0] = PICK(rows[0], rows[1], 0, 4, 1, 5);
            halves[1] = PICK(rows[0], rows[1], 2, 6, 3, 7);
            halves[2] = PICK(rows[2], rows[3], 0, 4, 1, 5);
            halves[3] = PICK(rows[2], rows[3], 2, 6, 3, 7);
            for (int i = 0; i < 2; i++) {
                char *to = y + (a + 2 * i) * p->y_step;
                *(LooseQuad *)to = PICK(halves[i], halves[i + 2], 0, 1, 4, 5);
                *(LooseQuad *)(to + p->y_step) = PICK(halves[i], halves[i + 2], 2, 3, 6, 7);
            }
        }
    }
    if (whole_a < p->a) {
        const Plane right = {p->y + whole_a * p->y_step, p->x + whole_a * 4, p->a - whole_a, whole_b, p->y_step, p->x_step};
        turn_4(&right);
    }
    const Plane below = {p->y + whole_b * 4, p->x + whole_b * p->x_step, p->a, p->b - whole_b, p->y_step, p->x_step};
    turn_4(&below);
}

typedef void (*RowMover)(char *, const char *, long, ptrdiff_t, ptrdiff_t);
typedef void (*Turner)(const Plane *);

static RowMover row_mover(long size) {
    switch (size) {
        case 1: return move_row_1;
        case 2: return move_row_2;
        case 4: return move_row_4;
        case 8: return move_row_8;
        default: return move_row_16;
    }
}

static Turner turner(long size) {
    switch (size) {
        case 1: return turn_1;
        case 2: return turn_2;
        case 4: return turn_4_by_squares;
        case 8: return turn_8;
        default: return turn_16;
    }
}

typedef struct {
    Nest n;
    char *y;
    const char *x;
    long size;
    int outer;           /* how many axes are walked: the others are of one unit of work */
    int turned;          /* whether a are next to each other in what is moved, not b */
    long a, b;           /* their sizes; a is 1 where there is a single axis */
    long a_parts, parts; /* of a place of the walk */
    long each, units;    /* of a task, of all */
} Job;

static void move_task(void *context, long ticket) {
    const Job *job = context;
    const Nest *n = &job->n;
    const long first = ticket * job->each, end = MINIMUM(job->units, first + job->each);
    const int inner = n->axes - 1;
    const ptrdiff_t y_step = n->steps[0][inner], x_step = n->steps[1][inner];
    const ptrdiff_t y_next = inner ? n->steps[0][inner - 1] : 0, x_next = inner ? n->steps[1][inner - 1] : 0;
    const int by_rows = y_step == job->size && x_step == job->size;
    const RowMover move_row = row_mover(job->size);
    Walk w;
    walk_to(&w, n, 2, job->outer, first / job->parts);
    for (long unit = first; unit < end; unit++) {
        const long part = unit % job->parts, start = part / job->a_parts * CHUNK, length = MINIMUM(CHUNK, job->b - start);
        const long first_a = part % job->a_parts * BLOCK, many = MINIMUM(BLOCK, job->a - first_a);
        char *y = job->y + w.offsets[0] + start * y_step + first_a * y_next;
        const char *x = job->x + w.offsets[1] + start * x_step + first_a * x_next;
        if (job->turned) {
            const Plane p = {y, x, many, length, y_next, x_step};
            turner(job->size)(&p);
        } else if (by_rows) {
            for (long a = 0; a < many; a++) memcpy(y + a * y_next, x + a * x_next, (size_t)(length * job->size));
        } else {
            for (long a = 0; a < many; a++) move_row(y + a * y_next, x + a * x_next, length, y_step, x_step);
        }
        if (part == job->parts - 1) walk_on(&w, n, 2, job->outer);
    }
}

/* Axes of a few elements next to each other in both become larger elements. */
static void widen(Job *job) {
    Nest *n = &job->n;
    while (n->axes > 1) {
        const int inner = n->axes - 1;
        const long wide = job->size * n->shape[inner];
        const int close = n->steps[0][inner] == job->size && n->steps[1][inner] == job->size;
        if (!close || wide > 16 || (wide & (wide - 1))) return;
        job->size = wide;
        n->axes--;
    }
}

/* Brings the axis whose elements are next to each other in what is moved before the last one. 0 where there is none. */
static int turns(Job *job) {
    Nest *n = &job->n;
    const int inner = n->axes - 1;
    if (n->steps[0][inner] != job->size || n->steps[1][inner] == job->size || n->steps[1][inner] == 0) return 0;
    for (int axis = 0; axis < inner; axis++) {
        if (n->steps[1][axis] != job->size) continue;
        const long length = n->shape[axis];
        const ptrdiff_t step = n->steps[0][axis];
        for (int i = axis; i + 1 < inner; i++) {
            n->shape[i] = n->shape[i + 1];
            for (int each = 0; each < 2; each++) n->steps[each][i] = n->steps[each][i + 1];
        }
        n->shape[inner - 1] = length;
        n->steps[0][inner - 1] = step;
        n->steps[1][inner - 1] = job->size;
        return 1;
    }
    return 0;
}

void NAMED(move)(const Nest *given, long size, char *y, const char *x) {
    Job job = {.n = *given, .y = y, .x = x, .size = size};
    if (!places(given, given->axes)) return;
    tidy(&job.n, 2, 1);
    widen(&job);
    if (!job.n.axes) job.n = (Nest){.axes = 1, .shape = {1}};
    job.turned = turns(&job);
    const int inner = job.n.axes - 1;
    job.outer = inner ? inner - 1 : 0;
    job.b = job.n.shape[inner];
    job.a = inner ? job.n.shape[inner - 1] : 1;
    job.a_parts = CEIL_DIV(job.a, BLOCK);
    job.parts = job.a_parts * CEIL_DIV(job.b, CHUNK);
    job.units = places(&job.n, job.outer) * job.parts;
    const long bytes = MINIMUM(job.a, BLOCK) * MINIMUM(job.b, CHUNK) * job.size;
    job.each = MAXIMUM(1, TASK_BYTES / bytes);
    pool_run(move_task, &job, CEIL_DIV(job.units, job.each));
}
