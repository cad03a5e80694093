/* Convolutions of 8-bit integers: pixels in the lanes of vectors, words of weights against words of patches. */
#include <stdatomic.h>

#include "bytes.h"
#include "planes.h"
#include "pool.h"
#include "requantize.h"
#include "tier.h"

#define VECTORS 4 /* of words in a panel of COLUMNS pixels */
#if defined(__AVX512F__)
#define ROWS 6
#elif defined(__aarch64__)
#define ROWS 4
#else
#define ROWS 2
#endif
#define SMALL 400000      /* multiplications that no second thread is woken for */
#define PANELS_WORDS 65536 /* of patches that are packed together: they stay in the second cache */
#define MOST_PANELS 16
#define LEAST_PLANES 16384 /* bytes that a task copies */

INLINE long unit_start(long size, long units, long unit) { return size * unit / units; }

typedef struct {
    const IntegerConvolution *q;
    Padded padded;
    const uint8_t *source;   /* planes of the padded input, or the input itself */
    const ptrdiff_t *places; /* of each channel and tap in them, for the first window */
    uint8_t *copies;
    long words, units, unit_parts, panels, panel_parts, each;
    uint8_t flip; /* of what is packed */
    int plain;
    _Atomic int failed;
} Job;

static void copy_task(void *context, long ticket) {
    const Job *job = context;
    const IntegerConvolution *q = job->q;
    const long planes = q->g.batch * q->g.groups * q->g.channels, size = q->g.height * q->g.width;
    const long first = ticket * job->each, last = MINIMUM(planes, first + job->each);
    uint8_t *to = job->copies + first * job->padded.plane;
    if (job->padded.bordered) memset(to, q->x_zero, (size_t)((last - first) * job->padded.plane));
    for (long i = first; i < last; i++, to += job->padded.plane) copy_plane(to, q->x + i * size, &q->g, &job->padded, q->flip);
}

/* The bytes of each of GROUP rows, as so many words of GROUP bytes. */
INLINE void interleave(int32_t *to, const Bytes *rows) {
#if defined(__AVX512F__)
    /* The bytes of a word come from one 128-bit lane: each lane is given four columns of each vector. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i r[GROUP], *v = (__m512i *)to;
    UNROLL for (int i = 0; i < GROUP; i++) r[i] = _mm512_permutexvar_epi32(order, (__m512i)rows[i]);
#define LOW8 _mm512_unpacklo_epi8
#define HIGH8 _mm512_unpackhi_epi8
#define LOW16 _mm512_unpacklo_epi16
#define HIGH16 _mm512_unpackhi_epi16
#define PUT(i, value) _mm512_storeu_si512(v + i, value)
#define NOTHING _mm512_setzero_si512()
#elif defined(__AVX2__)
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    __m256i r[GROUP], *v = (__m256i *)to;
    UNROLL for (int i = 0; i < GROUP; i++) r[i] = _mm256_permutevar8x32_epi32((__m256i)rows[i], order);
#define LOW8 _mm256_unpacklo_epi8
#define HIGH8 _mm256_unpackhi_epi8
#define LOW16 _mm256_unpacklo_epi16
#define HIGH16 _mm256_unpackhi_epi16
#define PUT(i, value) _mm256_storeu_si256(v + i, value)
#elif defined(__SSE2__)
    __m128i r[GROUP], *v = (__m128i *)to;
    UNROLL for (int i = 0; i < GROUP; i++) r[i] = (__m128i)rows[i];
#define LOW8 _mm_unpacklo_epi8
#define HIGH8 _mm_unpackhi_epi8
#define LOW16 _mm_unpacklo_epi16
#define HIGH16 _mm_unpackhi_epi16
#define PUT(i, value) _mm_storeu_si128(v + i, value)
#define NOTHING _mm_setzero_si128()
#endif
#if defined(__SSE2__) && GROUP == 4
    PUT(0, LOW16(LOW8(r[0], r[1]), LOW8(r[2], r[3])));
    PUT(1, HIGH16(LOW8(r[0], r[1]), LOW8(r[2], r[3])));
    PUT(2, LOW16(HIGH8(r[0], r[1]), HIGH8(r[2], r[3])));
    PUT(3, HIGH16(HIGH8(r[0], r[1]), HIGH8(r[2], r[3])));
#elif defined(__SSE2__)
    PUT(0, LOW8(LOW8(r[0], r[1]), NOTHING));
    PUT(1, HIGH8(LOW8(r[0], r[1]), NOTHING));
    PUT(2, LOW8(HIGH8(r[0], r[1]), NOTHING));
    PUT(3, HIGH8(HIGH8(r[0], r[1]), NOTHING));
#else
    for (long j = 0; j < COLUMNS; j++) to[j] = rows[0][j] | (int32_t)rows[1][j] << 16;
#endif
}

/* Windows of one row of windows among those of a panel. `at` is where the first would lie in the plane if the panel began
   in that row. */
typedef struct {
    ptrdiff_t at;
    Some some;
} Run;

static long runs_of(Run *runs, const Geometry *g, const Padded *p, long first, long count) {
    long number = 0;
    for (long done = 0; done < count; number++) {
        const long y = (first + done) / g->columns, x = (first + done) % g->columns;
        const long here = MINIMUM(g->columns - x, count - done);
        runs[number] = (Run){y * p->width + x - done, some_bytes(done, done + here)};
        done += here;
    }
    return number;
}

/* What the windows first..first + count see, at most COLUMNS: a row of COLUMNS words for each GROUP of channels and taps. */
static void pack_panel(const Job *job, int32_t *to, const uint8_t *planes, long first, long count) {
    const Geometry *g = &job->q->g;
    const Padded *p = &job->padded;
    const long depth = g->channels * g->taps_y * g->taps_x;
    const Bytes flips = all_bytes(job->flip);
    Bytes rows[GROUP];
    if (job->plain) {
        const uint8_t *from = planes + first;
        for (long k = 0; k < depth; k += GROUP, to += COLUMNS) {
            for (long i = 0; i < GROUP; i++, from += p->plane)
                rows[i] = k + i >= depth ? all_bytes(0) : (count == COLUMNS ? load_bytes(from) : load_first_bytes(from, count)) ^ flips;
            interleave(to, rows);
        }
        return;
    }
    Run runs[COLUMNS];
    const long number = runs_of(runs, g, p, first, count);
    for (long k = 0; k < depth; k += GROUP, to += COLUMNS) {
        for (long i = 0; i < GROUP; i++) {
            rows[i] = all_bytes(0);
            if (k + i >= depth) continue; /* the weights are zero there */
            const uint8_t *from = planes + job->places[k + i];
            if (number == 1 && count == COLUMNS)
                rows[i] = load_bytes(from + runs[0].at);
            else
                for (const Run *run = runs; run < runs + number; run++) rows[i] = load_some(rows[i], run->some, from + run->at);
        }
        interleave(to, rows);
    }
}

/* Adds the products of `count` words of each row of weights and of the panel, from a and b on. */
INLINE void add_products(Integers (*sum)[VECTORS], const int32_t *a, ptrdiff_t a_row, const int32_t *b, const int rows,
                         const int vectors, const int count) {
    Integers pixels[VECTORS], next[VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) {
        pixels[j] = load_words(b + j * LANES);
        next[j] = load_words(b + (count - 1) * COLUMNS + j * LANES);
    }
    UNROLL for (int i = 0; i < rows; i++) {
        const Integers weights = all_words(a[i * a_row]), next_weights = all_words(a[i * a_row + count - 1]);
        UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = count == 1 ? multiply_add(sum[i][j], pixels[j], weights)
                                   : multiply_add_both(sum[i][j], pixels[j], weights, next[j], next_weights);
    }
}

/* Rows of weights a times a panel; `excess` is added to those of `map` and the following, where it is not NULL. */
INLINE void byte_tile(const int32_t *a, ptrdiff_t a_row, const int32_t *b, long words, const int32_t *start, int32_t *to,
                      const Excess *excess, long map, const int rows, const int vectors, const int together) {
    Integers sum[ROWS][VECTORS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = all_words(start[i]);
    long word = 0;
    for (; word + together <= words; word += together)
        add_products(sum, a + word, a_row, b + word * COLUMNS, rows, vectors, together);
    if (together > 1 && word < words) add_products(sum, a + word, a_row, b + word * COLUMNS, rows, vectors, 1);
    if (SATURATES && excess)
        UNROLL for (int i = 0; i < rows; i++)
            for (long k = excess->starts[map + i]; k < excess->starts[map + i + 1]; k++)
                add_products(sum + i, excess->words + k, 0, b + (ptrdiff_t)excess->places[k] * COLUMNS, 1, vectors, 1);
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        store_words(to + i * COLUMNS + j * LANES, sum[i][j]);
}

typedef void (*ByteTile)(const int32_t *a, ptrdiff_t a_row, const int32_t *b, long words, const int32_t *start, int32_t *to,
                         const Excess *excess, long map);
#define TILE(rows, vectors, together) \
    static void tile_##rows##_##vectors##_##together(const int32_t *a, ptrdiff_t a_row, const int32_t *b, long words, \
                                                     const int32_t *start, int32_t *to, const Excess *excess, long map) { \
        byte_tile(a, a_row, b, words, start, to, excess, map, rows, vectors, together); \
    }
#define TILES(rows, together) TILE(rows, 1, together) TILE(rows, 2, together) TILE(rows, 3, together) TILE(rows, 4, together)
#define NAMES(rows, together) \
    {tile_##rows##_1_##together, tile_##rows##_2_##together, tile_##rows##_3_##together, tile_##rows##_4_##together}
/* By words whose products are added up together, rows and vectors, each less 1. */
#if ROWS == 6
TILES(1, 1) TILES(2, 1) TILES(3, 1) TILES(4, 1) TILES(5, 1) TILES(6, 1)
static const ByteTile byte_tiles[1][ROWS][VECTORS] = {
    {NAMES(1, 1), NAMES(2, 1), NAMES(3, 1), NAMES(4, 1), NAMES(5, 1), NAMES(6, 1)}};
#elif ROWS == 4
TILES(1, 1) TILES(2, 1) TILES(3, 1) TILES(4, 1)
static const ByteTile byte_tiles[1][ROWS][VECTORS] = {{NAMES(1, 1), NAMES(2, 1), NAMES(3, 1), NAMES(4, 1)}};
#else
TILES(1, 1) TILES(2, 1) TILES(1, 2) TILES(2, 2)
static const ByteTile byte_tiles[2][ROWS][VECTORS] = {{NAMES(1, 1), NAMES(2, 1)}, {NAMES(1, 2), NAMES(2, 2)}};
#endif

/* Results `at` from the first, of the sums of a panel of which `count` are meant. */
static void finish_panel(const IntegerConvolution *q, const int32_t *raw, const int32_t *window_sums, long map, ptrdiff_t at,
                         long count) {
    const Integers zeros = all_words(q->w->zero[map]);
    Integers sums[VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++) {
        sums[j] = load_words(raw + j * LANES);
        if (window_sums) sums[j] -= zeros * load_words(window_sums + j * LANES);
    }
    if (q->sums) {
        memcpy(q->sums + at, sums, (size_t)count * sizeof *q->sums);
        return;
    }
    const Bytes bytes = finished(q, sums, map, IN_ORDER);
    if (count == COLUMNS)
        store_bytes(q->y + at, bytes);
    else
        memcpy(q->y + at, &bytes, (size_t)count);
}

static void pixels_task(void *context, long ticket) {
    Job *job = context;
    const IntegerConvolution *q = job->q;
    const Geometry *g = &q->g;
    const IntegerFilters *w = q->w;
    const long maps_part = ticket % job->unit_parts, part = ticket / job->unit_parts % job->panel_parts;
    const long image = ticket / job->unit_parts / job->panel_parts, group = image % g->groups;
    const long pixels = g->rows * g->columns;
    const long first = job->panels * part / job->panel_parts, last = job->panels * (part + 1) / job->panel_parts;
    const long first_unit = job->units * maps_part / job->unit_parts;
    const long last_unit = job->units * (maps_part + 1) / job->unit_parts;
    int32_t *patches = (int32_t *)scratch(SCRATCH_PANELS, (size_t)((last - first) * job->words * COLUMNS));
    int32_t *window_sums = (int32_t *)scratch(SCRATCH_TILES, (size_t)((last - first) * COLUMNS));
    if (!patches || !window_sums) {
        job->failed = 1;
        return;
    }
    for (long panel = first; panel < last; panel++) {
        int32_t *packed = patches + (panel - first) * job->words * COLUMNS;
        const long count = MINIMUM(COLUMNS, pixels - panel * COLUMNS);
        const int32_t nothing = 0;
        pack_panel(job, packed, job->source + image * g->channels * job->padded.plane, panel * COLUMNS, count);
        if (w->any_zero)
            byte_tiles[0][0][VECTORS - 1](w->ones, 0, packed, job->words, &nothing, window_sums + (panel - first) * COLUMNS, NULL, 0);
    }
    const ByteTile(*tiles)[VECTORS] = byte_tiles[w->excess.together - 1];
    int32_t raw[ROWS * COLUMNS] __attribute__((aligned(64))) = {0}, start[ROWS];
    for (long unit = first_unit; unit < last_unit; unit++) {
        const long map = unit_start(g->maps, job->units, unit), maps = unit_start(g->maps, job->units, unit + 1) - map;
        const long number = group * g->maps + map;
        for (long i = 0; i < maps; i++) start[i] = constant_of(q, number + i);
        for (long panel = first; panel < last; panel++) {
            const long count = MINIMUM(COLUMNS, pixels - panel * COLUMNS);
            tiles[maps - 1][CEIL_DIV(count, LANES) - 1](w->words + number * job->words, job->words,
                                                        patches + (panel - first) * job->words * COLUMNS, job->words, start,
                                                        raw, &w->excess, number);
            for (long i = 0; i < maps; i++)
                finish_panel(q, raw + i * COLUMNS, w->any_zero ? window_sums + (panel - first) * COLUMNS : NULL, number + i,
                             (image * g->maps + map + i) * pixels + panel * COLUMNS, count);
        }
    }
}

static int is_single(const Geometry *g) { return g->channels == 1 && g->taps_y * g->taps_x <= MOST_CHANNEL_TAPS; }

size_t NAMED(integer_filter_words)(const Geometry *g) {
    return (size_t)(is_single(g) ? NAMED(channel_words)(g) : CEIL_DIV(g->channels * g->taps_y * g->taps_x, GROUP));
}

static void pack_filter(int32_t *to, const uint8_t *weights, uint8_t flip, const Geometry *g) {
    const long depth = g->channels * g->taps_y * g->taps_x;
    if (is_single(g))
        NAMED(pack_channel)(to, weights, flip, g);
    else
        for (long k = 0; k < depth; k += GROUP) *to++ = word_of(weights + k, 1, MINIMUM(GROUP, depth - k), flip, 1);
}

int NAMED(pack_integer_filters)(IntegerFilters *w, const uint8_t *weights, uint8_t flip, const Geometry *g) {
    const size_t words = NAMED(integer_filter_words)(g);
    uint8_t ones[MOST_CHANNEL_TAPS];
    memset(ones, 1, sizeof ones);
    if (is_single(g))
        NAMED(pack_channel)(w->ones, ones, 0, g);
    else
        for (long k = 0; k < w->depth; k += GROUP) w->ones[k / GROUP] = word_of(ones, 1, MINIMUM(GROUP, w->depth - k), 0, 1);
    for (long map = 0; map < w->maps; map++, weights += w->depth) {
        int32_t sum = 0;
        for (long k = 0; k < w->depth; k++) sum += (int8_t)(weights[k] ^ flip);
        w->sums[map] = sum;
        pack_filter(w->words + (size_t)map * words, weights, flip, g);
    }
    w->excess.together = 1;
    if (!SATURATES) return 0;
    if (!is_single(g)) w->excess.together = 2;
    return NAMED(limit_words)(&w->excess, w->words, w->maps, (long)words, 1, 1);
}

static void run(Task task, Job *job, long tickets, int small) {
    if (small)
        for (long i = 0; i < tickets; i++) task(job, i);
    else
        pool_run(task, job, tickets);
}

int NAMED(convolve_integers)(const IntegerConvolution *q) {
    const Geometry *g = &q->g;
    const long taps = g->taps_y * g->taps_x, pixels = g->rows * g->columns, images = g->batch * g->groups;
    Job job = {.q = q, .padded = padded_of(g), .unit_parts = 1};
    const double work = (double)images * (double)g->maps * (double)(g->channels * taps) * (double)pixels;
    const int small = work < SMALL;
    const long wanted = small ? 1 : 4 * pool_threads();
    if (is_single(g)) return NAMED(convolve_single_channels)(q);
    job.plain = taps == 1 && g->stride_y == 1 && g->stride_x == 1 && !g->top && !g->left && g->rows == g->height &&
                g->columns == g->width;
    job.flip = job.plain ? q->flip : 0;
    job.source = q->x;
    if (!job.plain) {
        const size_t bytes = (size_t)(images * g->channels) * (size_t)job.padded.plane;
        job.copies = (uint8_t *)scratch(SCRATCH_REGION, bytes / 4 + 2 * COLUMNS);
        if (!job.copies) return -1;
        job.source = job.copies;
        job.each = CEIL_DIV(LEAST_PLANES, job.padded.plane);
        run(copy_task, &job, CEIL_DIV(images * g->channels, job.each), small);
    }
    ptrdiff_t *places = (ptrdiff_t *)scratch(SCRATCH_STEPS, (size_t)(g->channels * taps) * sizeof *places / 4);
    if (!places) return -1;
    job.places = places;
    for (long channel = 0; channel < g->channels; channel++)
        for (long tap = 0; tap < taps; tap++)
            *places++ = channel * job.padded.plane + tap_at(g, &job.padded, tap / g->taps_x, tap % g->taps_x);
    job.words = CEIL_DIV(g->channels * taps, GROUP);
    job.units = CEIL_DIV(g->maps, ROWS);
    job.panels = CEIL_DIV(pixels, COLUMNS);
    const long together = MAXIMUM(1, MINIMUM(MOST_PANELS, PANELS_WORDS / (job.words * COLUMNS)));
    job.panel_parts = CEIL_DIV(job.panels, together);
    if (wanted > 4 && images * job.panel_parts < wanted)
        job.panel_parts = MINIMUM(job.panels, CEIL_DIV(wanted, images));
    if (wanted > 4 && images * job.panel_parts < wanted)
        job.unit_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, images * job.panel_parts), job.units / 2));
    run(pixels_task, &job, images * job.panel_parts * job.unit_parts, small);
    return job.failed ? -1 : 0;
}
