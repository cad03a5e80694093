/* Trees, several walked beside each other: the next node is known only once the one before has come from memory. */
#include "ml.h"

#include <stdatomic.h>
#include <string.h>

#include "pool.h"
#include "vector.h"

#define BESIDE 8          /* walks at once */
#define BLOCK_ROWS 64     /* whose scores and features stay in the first cache while the trees go by */
#define BLOCK_SCORES 8192 /* at most, where there are several rows */
#define SMALL 4096        /* walks that no second thread is woken for */

/* From the nodes `at` down to their leaves, each by a row of its own. No path is longer than there are nodes. `heeds_nan`:
   whether NaN counts as at most anywhere. */
#define WALK(name, Node, Number, heeds_nan) \
    static void name(const Node *nodes, long most, const Number *const *rows, int32_t *at) { \
        for (int32_t moved = 1; moved && most > 0; most--) { \
            moved = 0; \
            UNROLL for (int i = 0; i < BESIDE; i++) { \
                const Node *node = &nodes[at[i]]; \
                const Number x = rows[i][node->feature >> 1]; \
                int is_low = x <= node->threshold; \
                if (heeds_nan) is_low |= (x != x) & (int)(node->feature & 1); \
                const int32_t next = node->next[is_low]; \
                moved |= next ^ at[i]; \
                at[i] = next; \
            } \
        } \
    }
WALK(walk_floats, FloatNode, float, 0)
WALK(walk_floats_and_nan, FloatNode, float, 1)
WALK(walk_doubles, DoubleNode, double, 1)

typedef struct {
    const Trees *trees;
    const Table *table;
    Aggregate aggregate;
    const Ending *ending;
    long each; /* rows of a task */
    _Atomic int failed;
} Job;

static void walk(const Trees *t, const void *const *rows, int32_t *at) {
    if (t->floats && t->heeds_nan)
        walk_floats_and_nan(t->floats, t->nodes, (const float *const *)rows, at);
    else if (t->floats)
        walk_floats(t->floats, t->nodes, (const float *const *)rows, at);
    else
        walk_doubles(t->doubles, t->nodes, (const double *const *)rows, at);
}

/* A leaf's votes count for the scores of a row. `seen`: which of its targets had a vote before, of the extremes alone. */
static inline void count_votes(const Job *job, int32_t leaf, double *scores, unsigned char *seen) {
    const Trees *t = job->trees;
    for (int32_t vote = t->first[leaf]; vote < t->first[leaf + 1]; vote++) {
        const int32_t target = t->targets[vote];
        const double weight = t->weights[vote];
        if (job->aggregate == SUM || job->aggregate == AVERAGE) {
            scores[target] += weight;
            continue;
        }
        const int further = job->aggregate == LEAST ? weight < scores[target] : weight > scores[target];
        if (!seen[target] || further || weight != weight) scores[target] = weight;
        seen[target] = 1;
    }
}

/* All trees for one row. */
static void run_row(const Job *job, const void *x, double *scores, unsigned char *seen) {
    const Trees *t = job->trees;
    const void *rows[BESIDE];
    for (int i = 0; i < BESIDE; i++) rows[i] = x;
    for (long tree = 0; tree < t->trees; tree += BESIDE) {
        const long left = t->trees - tree, count = left < BESIDE ? left : BESIDE;
        int32_t at[BESIDE];
        for (long i = 0; i < BESIDE; i++) at[i] = t->roots[tree + (i < count ? i : 0)];
        walk(t, rows, at);
        for (long i = 0; i < count; i++) count_votes(job, at[i], scores, seen);
    }
}

/* All trees for some rows, of `bytes` each. */
static void run_rows(const Job *job, const char *x, size_t bytes, long rows, double *scores, unsigned char *seen) {
    const Trees *t = job->trees;
    const long targets = job->ending->count, together = rows - rows % BESIDE;
    for (long tree = 0; together && tree < t->trees; tree++)
        for (long row = 0; row < together; row += BESIDE) {
            const void *beside[BESIDE];
            int32_t at[BESIDE];
            for (long i = 0; i < BESIDE; i++) {
                beside[i] = x + (size_t)(row + i) * bytes;
                at[i] = t->roots[tree];
            }
            walk(t, beside, at);
            for (long i = 0; i < BESIDE; i++)
                count_votes(job, at[i], scores + (row + i) * targets, seen + (row + i) * targets);
        }
    for (long row = together; row < rows; row++)
        run_row(job, x + (size_t)row * bytes, scores + row * targets, seen + row * targets);
}

static void trees_task(void *context, long ticket) {
    Job *job = context;
    const Table *table = job->table;
    const long first = ticket * job->each, left = table->rows - first, rows = left < job->each ? left : job->each;
    const long numbers = rows * job->ending->count, converted = job->trees->floats ? 0 : rows * table->features;
    const size_t bytes = (size_t)(numbers + converted) * sizeof(double) + (size_t)numbers;
    double *scores = (double *)scratch(SCRATCH_STEPS, bytes / sizeof(float) + 1);
    if (!scores) {
        job->failed = 1;
        return;
    }
    double *space = scores + numbers;
    unsigned char *seen = (unsigned char *)(space + converted);
    memset(scores, 0, (size_t)numbers * sizeof *scores);
    memset(seen, 0, (size_t)numbers);
    if (job->trees->floats)
        run_rows(job, (const char *)((const float *)table->x + first * table->features),
                 (size_t)table->features * sizeof(float), rows, scores, seen);
    else
        run_rows(job, (const char *)as_doubles(table, first, rows, space), (size_t)table->features * sizeof(double), rows,
                 scores, seen);
    const double trees = (double)(job->trees->trees ? job->trees->trees : 1);
    for (long i = 0; job->aggregate == AVERAGE && i < numbers; i++) scores[i] /= trees;
    end_scores(job->ending, scores, first, rows);
}

int run_trees(const Trees *trees, const Table *table, Aggregate aggregate, const Ending *ending) {
    Job job = {.trees = trees, .table = table, .aggregate = aggregate, .ending = ending};
    const long fitting = BLOCK_SCORES / ending->count;
    job.each = fitting < 1 ? 1 : fitting < BLOCK_ROWS ? fitting : BLOCK_ROWS;
    const long tasks = (table->rows + job.each - 1) / job.each;
    if ((double)table->rows * (double)trees->trees < SMALL)
        for (long task = 0; task < tasks; task++) trees_task(&job, task);
    else
        pool_run(trees_task, &job, tasks);
    return job.failed ? -1 : 0;
}
