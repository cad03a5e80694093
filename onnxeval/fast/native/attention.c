/* Attention, a block of queries and one of keys at a time: weights are made and used in the cache, and what earlier blocks
   gave is scaled down where a later one has a higher score. */
#include <math.h>
#include <stdatomic.h>

#include "curves.h"
#include "pool.h"
#include "tier.h"

#define QUERIES 128                             /* of a block, at most */
#define KEYS (CEIL_DIV(128, PANEL) * PANEL)     /* of a block */
#define FEW 4                                   /* queries for which keys are read as they lie, not packed */
#define SMALL 50000                             /* multiplications that no second thread is woken for */

typedef struct {
    const Attention *a;
    long rows;      /* of a block of queries */
    long blocks;    /* of queries, of each head */
    _Atomic int failed;
} Job;

/* One block of queries of one head. */
typedef struct {
    const Attention *a;
    long first, rows;
    const float *q, *k, *v;
    const float *bias;   /* of the first of the queries and key 0; NULL where there is none */
    const uint8_t *mask; /* the same */
    float *y;
    long length;  /* how many keys are no padding */
    long offset;  /* the key beside query 0 */
    float *scores, *packed, *sums, *highest, *totals; /* (rows, KEYS), (size, PANEL), (rows, value_size), (rows), (rows) */
} Block;

/* The keys that a query sees: those from *low to *high, before either mask. */
INLINE void seen(const Block *b, long row, long *low, long *high) {
    const Attention *a = b->a;
    const long place = b->offset + (b->first + row) * a->step;
    *low = a->left < 0 ? 0 : MAXIMUM(0, place - a->left);
    *high = a->right < 0 ? b->length : MINIMUM(b->length, place + a->right + 1);
}

static void score_few(const Block *b, long key, long keys) {
    const Attention *a = b->a;
    for (long row = 0; row < b->rows; row++) {
        const float *q = b->q + row * a->q_row;
        float *scores = b->scores + row * KEYS;
        for (long j = 0; j < keys; j += 4) {
            const float *k[4];
            Vector sums[4] = {zero(), zero(), zero(), zero()};
            for (int u = 0; u < 4; u++) k[u] = b->k + (key + MINIMUM(j + u, keys - 1)) * a->k_row;
            long d = 0;
            for (; d + LANES <= a->size; d += LANES)
                UNROLL for (int u = 0; u < 4; u++) sums[u] += load(q + d) * load(k[u] + d);
            if (d < a->size)
                UNROLL for (int u = 0; u < 4; u++)
                    sums[u] += load_first(q + d, a->size - d) * load_first(k[u] + d, a->size - d);
            for (int u = 0; u < MINIMUM(4, keys - j); u++) scores[j + u] = sum_of(sums[u]);
        }
    }
}

static void score_many(const Block *b, long key, long keys) {
    const Attention *a = b->a;
    for (long j = 0; j < keys; j += PANEL) {
        const long columns = MINIMUM(PANEL, keys - j), width = CEIL_DIV(columns, LANES) * LANES;
        const float *k = b->k + (key + j) * a->k_row;
        Tile t = {.a_row = a->q_row, .a_step = 1, .b = k, .b_step = a->k_step, .c_row = KEYS, .depth = a->size, .columns = columns};
        const int raw = a->k_row == 1;
        if (!raw) {
            const Nest turned = {.axes = 2, .shape = {a->size, columns}, .steps = {{width * 4, 4}, {a->k_step * 4, a->k_row * 4}}};
            NAMED(move)(&turned, 4, (char *)b->packed, (const char *)k);
            for (long d = 0; columns < width && d < a->size; d++)
                memset(b->packed + d * width + columns, 0, (size_t)(width - columns) * 4);
            t.b = b->packed;
            t.b_step = width;
        }
        for (long row = 0; row < b->rows; row += TILE_ROWS) {
            t.a = b->q + row * a->q_row;
            t.c = b->scores + row * KEYS + j;
            run_tile(&t, MINIMUM(TILE_ROWS, b->rows - row), raw);
        }
    }
}

typedef uint8_t Bytes __attribute__((vector_size(LANES)));

/* All that is done to the scores of one query before they become weights, hidden ones being minus infinity; the highest. */
INLINE float finish_scores(const Block *b, long row, long key, long from, long to, long width) {
    const Attention *a = b->a;
    float *scores = b->scores + row * KEYS;
    const Vector scale = all(a->scale), cap = all(a->softcap), inverse = all(a->softcap != 0 ? 1 / a->softcap : 0);
    const float *bias = b->bias ? b->bias + row * a->bias_query + key * a->bias_key : NULL;
    const uint8_t *mask = b->mask ? b->mask + row * a->mask_query + key * a->mask_key : NULL;
    const int adds = a->unseen == HIDDEN_ZERO;
    Vector top = all(-INFINITY);
    for (long j = from / LANES * LANES; j < to; j += LANES) {
        Vector s = load(scores + j) * scale;
        if (a->softcap != 0) s = cap * hyperbolic_tangent(s * inverse);
        const long first = MAXIMUM(0, from - j), last = MINIMUM(LANES, to - j);
        const int whole = first == 0 && last == LANES;
        if (bias && whole && a->bias_key == 1) {
            s += load(bias + j);
        } else if (bias) {
            for (long lane = first; lane < last; lane++) s[lane] += bias[(j + lane) * a->bias_key];
        }
        if (mask && whole && a->mask_key == 1) {
            Bytes given;
            memcpy(&given, mask + j, sizeof given);
            s = choose(__builtin_convertvector(given, Integers) != 0, s, adds ? s + all(-INFINITY) : all(-INFINITY));
        } else if (mask) {
            for (long lane = first; lane < last; lane++)
                if (!mask[(j + lane) * a->mask_key]) s[lane] = adds ? s[lane] - INFINITY : -INFINITY;
        }
        if (!whole)
            for (long lane = 0; lane < LANES; lane++) s[lane] = lane >= first && lane < last ? s[lane] : -INFINITY;
        store(scores + j, s);
        top = larger(top, s);
    }
    for (long j = 0; j < from / LANES * LANES; j++) scores[j] = -INFINITY;
    for (long j = CEIL_DIV(to, LANES) * LANES; j < width; j++) scores[j] = -INFINITY;
    return largest_of(top);
}

/* The highest of scores that are all seen and only to be scaled. */
INLINE float highest_score(const float *scores, long width) {
    Vector top = all(-INFINITY);
    for (long j = 0; j < width; j += LANES) top = larger(top, load(scores + j));
    return largest_of(top);
}

/* exp(x) of x that are not above 0, zero where that is too small for a normal number. */
INLINE Vector weight_of(Vector x) {
    Vector r, n = split_exponent(larger(all(-87.0f), x), &r);
    return choose(x < all(-87.0f), zero(), (small_expm1(r) + all(1.0f)) * power_of_two(n));
}

/* Makes weights of the scores of one query, times `scale`, and brings what is summed so far to the same measure. */
INLINE void weigh(const Block *b, long row, float top, float scale, long width, int first) {
    float *scores = b->scores + row * KEYS, *sums = b->sums + row * b->a->value_size;
    const float before = b->highest[row], highest = first || top > before || top != top ? top : before;
    const Vector shift = all(highest == -INFINITY ? 0 : highest), times = all(scale);
    Vector total = zero();
    for (long j = 0; j < width; j += LANES) {
        const Vector weight = weight_of(load(scores + j) * times - shift);
        total += weight;
        store(scores + j, weight);
    }
    b->highest[row] = highest;
    if (first) {
        b->totals[row] = sum_of(total);
        return;
    }
    if (before != highest) {
        const float factor = exponential(all(before) - shift)[0];
        b->totals[row] *= factor;
        for (long i = 0; i < b->a->value_size; i++) sums[i] *= factor;
    }
    b->totals[row] += sum_of(total);
}

static void add_values(const Block *b, long key, long keys, int first) {
    const Attention *a = b->a;
    const long panels = CEIL_DIV(a->value_size, PANEL), width = CEIL_DIV(CEIL_DIV(a->value_size, panels), LANES) * LANES;
    for (long j = 0; j < a->value_size; j += width) { /* panels of like width: a narrow one waits for its own sums */
        Tile t = {.a_row = KEYS, .a_step = 1, .b = b->v + key * a->v_row + j, .b_step = a->v_row, .c_row = a->value_size, .depth = keys};
        t.columns = MINIMUM(width, a->value_size - j);
        t.accumulate = !first;
        for (long row = 0; row < b->rows; row += TILE_ROWS) {
            t.a = b->scores + row * KEYS;
            t.c = b->sums + row * a->value_size + j;
            run_tile(&t, MINIMUM(TILE_ROWS, b->rows - row), 1);
        }
    }
}

/* Whether a key is hidden from a query by neither window nor mask. */
static int sees_any(const Block *b, long row) {
    const Attention *a = b->a;
    long low, high;
    seen(b, row, &low, &high);
    for (long key = low; key < high; key++) {
        const int masked = b->mask && !b->mask[row * a->mask_query + key * a->mask_key];
        if (!masked && !(b->bias && b->bias[row * a->bias_query + key * a->bias_key] == -INFINITY)) return 1;
    }
    return 0;
}

/* No weights at all: zeros, but NaN where a value is not finite. */
static void weigh_by_zero(const Block *b, float *y) {
    const Attention *a = b->a;
    memset(y, 0, (size_t)a->value_size * sizeof(float));
    for (long key = 0; key < a->keys; key++)
        for (long i = 0; i < a->value_size; i++) y[i] += 0 * b->v[key * a->v_row + i];
}

static void run_block(const Block *b) {
    const Attention *a = b->a;
    long begin, end, low, high;
    seen(b, 0, &begin, &high);
    seen(b, b->rows - 1, &low, &end);
    for (long key = begin; key < end; key += KEYS) {
        const long keys = MINIMUM(KEYS, end - key), width = CEIL_DIV(keys, LANES) * LANES;
        if (b->rows <= FEW && a->k_step == 1)
            score_few(b, key, keys);
        else
            score_many(b, key, keys);
        for (long row = 0; row < b->rows; row++) {
            seen(b, row, &low, &high);
            const long from = MINIMUM(keys, MAXIMUM(0, low - key)), to = MINIMUM(keys, MAXIMUM(from, high - key));
            const int plain = from == 0 && to == width && !b->bias && !b->mask && a->softcap == 0 && a->scale > 0;
            const float top = plain ? highest_score(b->scores + row * KEYS, width) * a->scale : finish_scores(b, row, key, from, to, width);
            weigh(b, row, top, plain ? a->scale : 1, width, key == begin);
        }
        add_values(b, key, keys, key == begin);
    }
    for (long row = 0; row < b->rows; row++) {
        float *y = b->y + row * a->y_row;
        const float *sums = b->sums + row * a->value_size, total = end > begin ? b->totals[row] : 0;
        const int is_nan = total != total && (a->unseen == NAN_ZERO || a->unseen == HIDDEN_ZERO);
        const int blank = (is_nan || (total == 0 && a->unseen != UNSEEN_NAN)) && (a->unseen != HIDDEN_ZERO || !sees_any(b, row));
        if (blank)
            weigh_by_zero(b, y);
        else if (end <= begin)
            for (long i = 0; i < a->value_size; i++) y[i] = NAN;
        else
            for (long i = 0; i < a->value_size; i++) y[i] = sums[i] / total;
    }
}

static void attend_task(void *context, long ticket) {
    Job *job = context;
    const Attention *a = job->a;
    const long block = ticket % job->blocks, head = ticket / job->blocks % a->heads, item = ticket / job->blocks / a->heads;
    const long shared = head / (a->heads / a->kv_heads);
    const size_t wanted = (size_t)job->rows * (KEYS + 2 + (size_t)a->value_size) + (size_t)a->size * PANEL;
    float *space = scratch(SCRATCH_STEPS, wanted + 64);
    if (!space) {
        job->failed = 1;
        return;
    }
    Block b = {.a = a, .first = block * job->rows, .length = a->keys};
    b.rows = MINIMUM(job->rows, a->queries - b.first);
    b.q = a->q + item * a->q_batch + head * a->q_head + b.first * a->q_row;
    b.k = a->k + item * a->k_batch + shared * a->k_head;
    b.v = a->v + item * a->v_batch + shared * a->v_head;
    b.y = a->y + item * a->y_batch + head * a->y_head + b.first * a->y_row;
    if (a->bias) b.bias = a->bias + item * a->bias_batch + head * a->bias_head + b.first * a->bias_query;
    if (a->mask) b.mask = a->mask + item * a->mask_batch + head * a->mask_head + b.first * a->mask_query;
    b.offset = a->offset;
    if (a->lengths) {
        b.length = (long)a->lengths[item];
        b.offset += b.length;
    }
    if (a->starts) b.offset = (long)a->starts[item];
    b.scores = space;
    b.packed = b.scores + job->rows * KEYS;
    b.sums = b.packed + a->size * PANEL;
    b.highest = b.sums + job->rows * a->value_size;
    b.totals = b.highest + job->rows;
    run_block(&b);
}

int NAMED(attend)(const Attention *a) {
    if (!a->batch || !a->heads || !a->queries || !a->value_size) return 0;
    Job job = {.a = a, .rows = MINIMUM(QUERIES, a->queries)};
    const double work = (double)a->batch * (double)a->heads * (double)a->queries * (double)a->keys * (double)(a->size + a->value_size);
    const long heads = a->batch * a->heads, wanted = 2 * pool_threads();
    if (work > SMALL && heads < wanted) {
        const long parts = CEIL_DIV(wanted, heads), rows = CEIL_DIV(CEIL_DIV(a->queries, parts), TILE_ROWS) * TILE_ROWS;
        job.rows = MINIMUM(job.rows, MAXIMUM(rows, 2 * TILE_ROWS));
    }
    job.blocks = CEIL_DIV(a->queries, job.rows);
    const long tickets = heads * job.blocks;
    if (work <= SMALL)
        for (long i = 0; i < tickets; i++) attend_task(&job, i);
    else
        pool_run(attend_task, &job, tickets);
    return job.failed ? -1 : 0;
}
