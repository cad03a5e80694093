/* Convolutions of 3x3 with stride 1 by Winograd's F(2x2, 3x3): each tile of 2x2 results from a 4x4 part of the input takes
   16 products instead of 36. Tiles lie in the lanes of a vector.

   An element that is not finite would spoil the results beside those that it belongs to: where one is met, the convolution
   is left to another method. */
#include <math.h>
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define POINTS 16
#define CHUNK_UNITS 4       /* blocks of maps between two transforms */
#define DEPTH 128           /* channels of a sum: longer ones lose more than an untransformed one does */
#define BLOCK_FLOATS 131072 /* of a transformed input that stays in the second cache */

typedef struct {
    const Convolution *q;
    long across, tiles; /* tiles of a row of an image, tiles of an image */
    long panels, parts, units, unit_parts;
    _Atomic int failed, unusual;
} Job;

size_t NAMED(packed_tiles_floats)(const Geometry *g) { return (size_t)(POINTS * g->groups * g->maps * g->channels); }

/* G w G' of each kernel, laid out (group, point, block of maps, channel, map of the block). 1 where one is not finite. */
int NAMED(pack_tiles)(float *packed, const float *w, const Geometry *g) {
    const long units = CEIL_DIV(g->maps, TILE_ROWS), matrix = g->maps * g->channels;
    float spoilt = 0;
    for (long group = 0; group < g->groups; group++, packed += POINTS * matrix)
        for (long unit = 0; unit < units; unit++) {
            const long first = g->maps * unit / units, maps = g->maps * (unit + 1) / units - first;
            for (long map = 0; map < maps; map++)
                for (long c = 0; c < g->channels; c++) {
                    const float *each = w + ((group * g->maps + first + map) * g->channels + c) * 9;
                    double rows[4][3];
                    for (int j = 0; j < 3; j++) {
                        const double a = each[j], b = each[3 + j], d = each[6 + j];
                        rows[0][j] = a;
                        rows[1][j] = 0.5 * (a + b + d);
                        rows[2][j] = 0.5 * (a - b + d);
                        rows[3][j] = d;
                    }
                    float *to = packed + (first * g->channels + c * maps + map);
                    for (int i = 0; i < 4; i++, to += 4 * matrix) {
                        const double a = rows[i][0], b = rows[i][1], d = rows[i][2];
                        to[0] = (float)a;
                        to[matrix] = (float)(0.5 * (a + b + d));
                        to[2 * matrix] = (float)(0.5 * (a - b + d));
                        to[3 * matrix] = (float)d;
                        spoilt += 0 * to[0] + 0 * to[matrix] + 0 * to[2 * matrix] + 0 * to[3 * matrix];
                    }
                }
        }
    return spoilt != 0;
}

INLINE long ceil_half(long a) { return a > 0 ? (a + 1) / 2 : -(-a / 2); }

/* B' d B of tiles first..last of one image, for all channels: (point, channel, tile of the panel). Anything but zero where
   one is not finite. */
static float transform_input(const Job *job, const float *x, float *to, long width, long first, long last) {
    const Geometry *g = &job->q->g;
    const ptrdiff_t plane = g->height * g->width, point = g->channels * width;
    Vector spoilt = zero();
    for (long tile = first; tile < last;) {
        const long ty = tile / job->across, tx = tile % job->across;
        const long count = MINIMUM(MINIMUM(LANES, last - tile), job->across - tx);
        const long top = 2 * ty - g->top, left = 2 * tx - g->left, room = width - (tile - first);
        Lanes lanes[4];
        for (long j = 0; j < 4; j++) {
            const long from = MINIMUM(count, MAXIMUM(0, ceil_half(-(left + j))));
            lanes[j] = lanes_of(2, from, MAXIMUM(from, MINIMUM(count, ceil_half(g->width - (left + j)))));
        }
        const float *source = x + top * g->width + left;
        float *target = to + (tile - first);
        for (long c = 0; c < g->channels; c++, source += plane, target += width) {
            Vector d[4][4], t[4][4];
            UNROLL for (int i = 0; i < 4; i++) {
                const int seen = top + i >= 0 && top + i < g->height;
                UNROLL for (int j = 0; j < 4; j++)
                    d[i][j] = seen ? load_set(source + i * g->width + j, 2, &lanes[j]) : zero();
            }
            UNROLL for (int j = 0; j < 4; j++) {
                t[0][j] = d[0][j] - d[2][j];
                t[1][j] = d[1][j] + d[2][j];
                t[2][j] = d[2][j] - d[1][j];
                t[3][j] = d[1][j] - d[3][j];
            }
            UNROLL for (int i = 0; i < 4; i++) {
                d[i][0] = t[i][0] - t[i][2];
                d[i][1] = t[i][1] + t[i][2];
                d[i][2] = t[i][2] - t[i][1];
                d[i][3] = t[i][1] - t[i][3];
            }
            UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < 4; j++) {
                spoilt += d[i][j] * zero();
                if (room >= LANES)
                    store(target + (4 * i + j) * point, d[i][j]); /* what is too much, the next tiles write over */
                else
                    store_first(target + (4 * i + j) * point, d[i][j], MINIMUM(room, count));
            }
        }
        tile += count;
    }
    return sum_of(spoilt);
}

/* Elements of a and b in turn. */
INLINE void interleave(float *to, Vector a, Vector b) {
#if defined(__AVX512F__)
    const Integers low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    store(to, (Vector)_mm512_permutex2var_ps((__m512)a, (__m512i)low, (__m512)b));
    store(to + LANES, (Vector)_mm512_permutex2var_ps((__m512)a, (__m512i)(low + 8), (__m512)b));
#elif defined(__AVX2__)
    __m256 low = _mm256_unpacklo_ps((__m256)a, (__m256)b), high = _mm256_unpackhi_ps((__m256)a, (__m256)b);
    store(to, (Vector)_mm256_permute2f128_ps(low, high, 0x20));
    store(to + LANES, (Vector)_mm256_permute2f128_ps(low, high, 0x31));
#else
    for (int lane = 0; lane < LANES; lane++) {
        to[2 * lane] = a[lane];
        to[2 * lane + 1] = b[lane];
    }
#endif
}

/* A' m A of `count` tiles from the `at`th of a panel on, and from tile `tile` of an image on, into the plane of one map. */
static void transform_output(const Job *job, const float *sums, ptrdiff_t point, float *y, const float *residual, float bias,
                             long tile, long count) {
    const Geometry *g = &job->q->g;
    const Activation *how = &job->q->epilogue.activation;
    const int clips = how->kind == CLIP;
    const Vector lowest = all(clips ? how->alpha : -INFINITY), highest = all(clips ? how->beta : INFINITY), shift = all(bias);
    Vector m[4][4], t[2][4];
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < 4; j++) m[i][j] = load(sums + (4 * i + j) * point);
    UNROLL for (int j = 0; j < 4; j++) {
        t[0][j] = m[0][j] + m[1][j] + m[2][j];
        t[1][j] = m[1][j] - m[2][j] - m[3][j];
    }
    float rows[2][2 * LANES];
    UNROLL for (int i = 0; i < 2; i++)
        interleave(rows[i], t[i][0] + t[i][1] + t[i][2] + shift, t[i][1] - t[i][2] - t[i][3] + shift);
    for (long done = 0; done < count;) {
        const long ty = (tile + done) / job->across, tx = (tile + done) % job->across;
        const long run = MINIMUM(count - done, job->across - tx), columns = MINIMUM(2 * run, g->columns - 2 * tx);
        for (int i = 0; i < 2 && 2 * ty + i < g->rows; i++) {
            const ptrdiff_t at = (2 * ty + i) * g->columns + 2 * tx;
            for (long j = 0; j < columns; j += LANES) {
                const long lanes = MINIMUM(LANES, columns - j);
                Vector v = load_first(rows[i] + 2 * done + j, lanes);
                if (residual) v += load_first(residual + at + j, lanes);
                store_first(y + at + j, smaller(highest, larger(lowest, v)), lanes);
            }
            if (!clips) NAMED(activate)(how, y + at, y + at, columns);
        }
        done += run;
    }
}

static void tiles_task(void *context, long ticket) {
    Job *job = context;
    const Convolution *q = job->q;
    const Geometry *g = &q->g;
    const long maps_part = ticket % job->unit_parts, part = ticket / job->unit_parts % job->parts;
    const long image = ticket / job->unit_parts / job->parts / g->groups, group = ticket / job->unit_parts / job->parts % g->groups;
    const long vectors = CEIL_DIV(job->tiles, LANES);
    const long panel0 = job->panels * part / job->parts, panel1 = job->panels * (part + 1) / job->parts;
    const long matrix = g->maps * g->channels, pixels = g->rows * g->columns;
    const float *x = q->x + (image * g->groups + group) * g->channels * g->height * g->width;
    const float *weights = q->weights + group * POINTS * matrix;
    const size_t room = (size_t)(POINTS * g->channels * PANEL);
    float *input = scratch(SCRATCH_PANELS, room * (size_t)(panel1 - panel0));
    float *sums = scratch(SCRATCH_TILES, POINTS * CHUNK_UNITS * TILE_ROWS * PANEL);
    if (!input || !sums) {
        job->failed = 1;
        return;
    }
    for (long panel = panel0; panel < panel1; panel++) {
        const long first = vectors * panel / job->panels * LANES, last = MINIMUM(job->tiles, vectors * (panel + 1) / job->panels * LANES);
        if (job->unusual) return;
        if (transform_input(job, x, input + (size_t)(panel - panel0) * room, CEIL_DIV(last - first, LANES) * LANES, first, last) != 0) {
            job->unusual = 1;
            return;
        }
    }
    const long unit1 = job->units * (maps_part + 1) / job->unit_parts;
    for (long unit = job->units * maps_part / job->unit_parts; unit < unit1; unit += CHUNK_UNITS) {
        const long stop = MINIMUM(unit1, unit + CHUNK_UNITS);
        const long map0 = g->maps * unit / job->units, maps = g->maps * stop / job->units - map0;
        for (long panel = panel0; panel < panel1; panel++) {
            const long first = vectors * panel / job->panels * LANES, last = MINIMUM(job->tiles, vectors * (panel + 1) / job->panels * LANES);
            const long width = CEIL_DIV(last - first, LANES) * LANES;
            for (long point = 0; point < POINTS; point++)
                for (long each = unit; each < stop; each++) {
                    const long map = g->maps * each / job->units, rows = g->maps * (each + 1) / job->units - map;
                    Tile t = {.a = weights + point * matrix + map * g->channels, .a_row = 1, .a_step = rows, .b_step = width,
                              .c_row = width, .columns = width};
                    t.b = input + (size_t)(panel - panel0) * room + point * g->channels * width;
                    t.c = sums + (point * maps + map - map0) * width;
                    for (long from = 0; from < g->channels; from += DEPTH) {
                        t.depth = MINIMUM(DEPTH, g->channels - from);
                        t.accumulate = from > 0;
                        run_tile(&t, rows, 0);
                        t.a += DEPTH * rows;
                        t.b += DEPTH * width;
                    }
                }
            for (long map = 0; map < maps; map++) {
                const long channel = group * g->maps + map0 + map;
                const ptrdiff_t at = (image * g->groups * g->maps + channel) * pixels;
                const float bias = q->epilogue.row_bias ? q->epilogue.row_bias[channel] : 0;
                const float *residual = q->epilogue.residual ? q->epilogue.residual + at : NULL;
                for (long tile = first; tile < last; tile += LANES)
                    transform_output(job, sums + map * width + (tile - first), maps * width, q->y + at, residual, bias, tile,
                                     MINIMUM(LANES, last - tile));
            }
        }
    }
}

int NAMED(convolve_by_tiles)(const Convolution *q) {
    const Geometry *g = &q->g;
    Job job = {.q = q, .across = CEIL_DIV(g->columns, 2)};
    job.tiles = job.across * CEIL_DIV(g->rows, 2);
    job.panels = CEIL_DIV(CEIL_DIV(job.tiles, LANES), TILE_VECTORS);
    job.units = CEIL_DIV(g->maps, TILE_ROWS);
    const long images = g->batch * g->groups, threads = pool_threads();
    const long together = MAXIMUM(1, BLOCK_FLOATS / (POINTS * g->channels * PANEL));
    job.parts = CEIL_DIV(job.panels, together);
    job.unit_parts = 1;
    if (threads > 1) {
        if (images * job.parts < 4 * threads) job.parts = MINIMUM(job.panels, CEIL_DIV(4 * threads, images));
        if (images * job.parts < 2 * threads)
            job.unit_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(2 * threads, images * job.parts), job.units / CHUNK_UNITS));
    }
    pool_run(tiles_task, &job, images * job.parts * job.unit_parts);
    return job.failed ? -1 : job.unusual;
}
