/* Convolutions of 8-bit integers of one channel a group: several taps of a row of windows are words of the bytes around. */
#include <stdatomic.h>

#include "bytes.h"
#include "planes.h"
#include "pool.h"
#include "requantize.h"
#include "tier.h"

#define VECTORS 4
#define SMALL 100000       /* multiplications that no second thread is woken for */
#define LEAST_PLANES 32768 /* bytes that a task convolves */
#define FARTHEST 12        /* of the first byte of a word to its last: four words together reach over 16 bytes */

/* GROUP taps or fewer that see one row, for all windows: those of a vector see it from `at` on. */
typedef struct {
    ptrdiff_t at;
    int count, taps[GROUP];
    uint8_t places[16] __attribute__((aligned(16))); /* of the bytes of four words: 0x80 is none */
} Word;

typedef struct {
    const IntegerConvolution *q;
    Padded padded;
    Word words[MOST_CHANNEL_TAPS];
    long count; /* of words */
    long each;
    _Atomic int failed;
} Job;

static void place_bytes(Word *word, const uint8_t *offsets) {
    memset(word->places, 0x80, sizeof word->places);
    for (int lane = 0; lane < 4; lane++)
        for (int i = 0; i < word->count; i++) word->places[4 * lane + 4 / GROUP * i] = (uint8_t)(lane + offsets[i]);
}

/* The taps of one row and one remainder lie side by side or a dilation apart: those near each other are a word. */
static long find_words(Word *words, const Geometry *g, const Padded *p) {
    Word *next = words;
    for (long tap_y = 0; tap_y < g->taps_y; tap_y++)
        for (long phase = 0; phase < p->phases_x; phase++) {
            Word *word = NULL;
            uint8_t offsets[GROUP];
            for (long tap_x = 0; tap_x < g->taps_x; tap_x++) {
                if (tap_x * g->dilation_x % g->stride_x != phase) continue;
                const ptrdiff_t at = tap_at(g, p, tap_y, tap_x);
                if (!word || word->count == GROUP || at - word->at > FARTHEST) {
                    if (word) place_bytes(word, offsets);
                    word = next++;
                    word->at = at;
                    word->count = 0;
                }
                offsets[word->count] = (uint8_t)(at - word->at);
                word->taps[word->count++] = (int)(tap_y * g->taps_x + tap_x);
            }
            if (word) place_bytes(word, offsets);
        }
    return next - words;
}

/* Words of the bytes that four windows of each 128 bits see. */
INLINE Integers seen(const uint8_t *p, const Word *word) {
#if defined(__AVX512F__)
    const __m512i places = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)word->places));
    return (Integers)_mm512_shuffle_epi8(_mm512_loadu_si512(p), places);
#elif defined(__AVX2__)
    const __m256i places = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)word->places));
    return (Integers)_mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)p), places);
#elif defined(__SSSE3__)
    return (Integers)_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), _mm_load_si128((const __m128i *)word->places));
#else
    uint8_t bytes[4 * LANES];
    for (int i = 0; i < 4 * LANES; i++) bytes[i] = word->places[i % 16] < 16 ? p[i / 16 * 16 + word->places[i % 16]] : 0;
    Integers v;
    memcpy(&v, bytes, sizeof v);
    return v;
#endif
}

INLINE void add_word(Integers *sums, const uint8_t *plane, const Word *word, int32_t weights) {
    UNROLL for (int j = 0; j < VECTORS; j++)
        sums[j] = multiply_add(sums[j], seen(plane + word->at + 4 * j, word), all_words(weights));
}

/* Adds up what COLUMNS windows see, by lanes. */
INLINE void add_words(Integers *sums, const uint8_t *plane, const Job *job, const int32_t *weights) {
    for (long i = 0; i < job->count; i++) add_word(sums, plane, &job->words[i], weights[i]);
}

/* The words of a filter of (taps_y, taps_x) do not depend on the sizes of what it is laid over. */
long NAMED(channel_words)(const Geometry *g) {
    Word words[MOST_CHANNEL_TAPS];
    const Padded p = padded_of(g);
    return find_words(words, g, &p);
}

void NAMED(pack_channel)(int32_t *to, const uint8_t *weights, uint8_t flip, const Geometry *g) {
    Word words[MOST_CHANNEL_TAPS];
    const Padded p = padded_of(g);
    const long count = find_words(words, g, &p);
    for (long i = 0; i < count; i++) {
        uint8_t bytes[GROUP];
        for (int j = 0; j < GROUP; j++) bytes[j] = j < words[i].count ? weights[words[i].taps[j]] ^ flip : 0;
        to[i] = word_of(bytes, 1, GROUP, 0, 1);
    }
}

/* Rows of a plane of results, from rows `pitch` apart. */
static void bring_together(uint8_t *to, const uint8_t *from, long rows, long bytes, long pitch) {
    for (long row = 0; row < rows; row++) copy_flipped(to + row * bytes, from + row * pitch, bytes, 0);
}

static void channel_task(void *context, long ticket) {
    Job *job = context;
    const IntegerConvolution *q = job->q;
    const Geometry *g = &q->g;
    const IntegerFilters *w = q->w;
    const Padded *p = &job->padded;
    const long planes = g->batch * g->groups, pixels = g->rows * g->columns;
    const long windows = (g->rows - 1) * p->width + g->columns; /* with those that begin near the end of a row */
    const long size = q->sums ? 4 : 1, room = CEIL_DIV(windows, COLUMNS) * COLUMNS;
    uint8_t *plane = (uint8_t *)scratch(SCRATCH_PANELS, (size_t)p->plane / 4 + 2 * COLUMNS);
    uint8_t *results = (uint8_t *)scratch(SCRATCH_TILES, (size_t)(room * size / 4));
    if (!plane || !results) {
        job->failed = 1;
        return;
    }
    if (p->bordered) memset(plane, q->x_zero, (size_t)p->plane);
    for (long image = ticket * job->each; image < MINIMUM(planes, (ticket + 1) * job->each); image++) {
        copy_plane(plane, q->x + image * g->height * g->width, g, p, q->flip);
        for (long map = 0; map < g->maps; map++) {
            const long number = image % g->groups * g->maps + map;
            const Integers start = all_words(constant_of(q, number)), zeros = all_words(w->zero[number]);
            const int32_t *weights = w->words + number * job->count;
            const long first_more = SATURATES ? w->excess.starts[number] : 0;
            const long last_more = SATURATES ? w->excess.starts[number + 1] : 0;
            for (long window = 0; window < windows; window += COLUMNS) {
                Integers sums[VECTORS] = {start, start, start, start};
                add_words(sums, plane + window, job, weights);
                for (long i = first_more; i < last_more; i++)
                    add_word(sums, plane + window, &job->words[w->excess.places[i]], w->excess.words[i]);
                if (w->any_zero) {
                    Integers sums_of_x[VECTORS] = {{0}};
                    add_words(sums_of_x, plane + window, job, w->ones);
                    UNROLL for (int j = 0; j < VECTORS; j++) sums[j] -= zeros * sums_of_x[j];
                }
                if (q->sums) {
                    int32_t each[COLUMNS], *to = (int32_t *)results + window;
                    for (int j = 0; j < VECTORS; j++) store_words(each + j * LANES, sums[j]);
                    for (long j = 0; j < COLUMNS; j++) to[j] = each[place_of(j, BY_LANES)];
                } else {
                    store_bytes(results + window, finished(q, sums, number, BY_LANES));
                }
            }
            uint8_t *to = (q->sums ? (uint8_t *)q->sums : q->y) + (image * g->maps + map) * pixels * size;
            bring_together(to, results, g->rows, g->columns * size, p->width * size);
        }
    }
}

int NAMED(convolve_single_channels)(const IntegerConvolution *q) {
    const Geometry *g = &q->g;
    const long planes = g->batch * g->groups;
    Job job = {.q = q, .padded = padded_of(g)};
    job.count = find_words(job.words, g, &job.padded);
    const double work = (double)planes * (double)(g->maps * g->rows * g->columns * g->taps_y * g->taps_x);
    job.each = work < SMALL ? planes : MAXIMUM(1, MINIMUM(planes / (4 * pool_threads()), CEIL_DIV(LEAST_PLANES, job.padded.plane)));
    if (job.each == planes)
        channel_task(&job, 0);
    else
        pool_run(channel_task, &job, CEIL_DIV(planes, job.each));
    return job.failed ? -1 : 0;
}
