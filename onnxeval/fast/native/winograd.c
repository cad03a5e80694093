/* Convolutions of 3x3 with stride 1 by Winograd's F(2x2, 3x3) and F(4x4, 3x3): each tile of size x size results from a part
   of the input that is two wider and higher takes as many products as that has elements, instead of 9 a result. Tiles lie in
   the lanes of a vector.

   An element that is not finite would spoil the results beside those that it belongs to: where one is met, the convolution
   is left to another method. */
#include <math.h>
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define MOST_SIZE 4               /* of a tile */
#define MOST_SIDE (MOST_SIZE + 2) /* of what it sees */
#define PACKED_CHANNELS 8   /* of a block of maps, packed before they are stored: points are far apart */
#define CHUNK_UNITS 4       /* blocks of maps between two transforms */
#define DEPTH 128           /* channels of a sum: longer ones lose more than an untransformed one does */
#define BLOCK_FLOATS 131072 /* of a transformed input that stays in the second cache */

/* The polynomials of F(4x4) are interpolated at 0, NEAR, -NEAR, FAR, -FAR and infinity. Those at 0, 1, -1, 2, -2 lose four
   times as much; squares and the product of these are exact. */
#define NEAR 0.70710678118654752440
#define FAR 1.41421356237309504880

/* Weights of a block of maps: exact where there is something to lose. */
typedef double Doubles __attribute__((vector_size(TILE_ROWS * sizeof(double))));
typedef float Floats __attribute__((vector_size(TILE_ROWS * sizeof(float))));

typedef struct Job Job;
typedef float InputTransform(const Job *, const float *x, float *to, long width, long first, long last);
typedef void OutputTransform(const Job *, const float *sums, ptrdiff_t point, float *y, const float *residual, float bias,
                             long tile, long count);

struct Job {
    const Convolution *q;
    long size;
    InputTransform *transform_input;
    OutputTransform *transform_output;
    long across, tiles; /* tiles of a row of an image, tiles of an image */
    long panels, parts, units, unit_parts;
    _Atomic int failed, unusual;
};

INLINE long points_of(long size) { return (size + 2) * (size + 2); }

/* From one point to the next, of `rows` of `width`: a multiple of a page would leave them few lines of the first cache. */
INLINE long point_step(long rows, long width) { return rows * width + 16; }

size_t NAMED(packed_tiles_floats)(const Geometry *g, long size) {
    return (size_t)(points_of(size) * g->groups * g->maps * g->channels);
}

/* G w of three vectors of weights that are `step` apart. */
INLINE void transform_weights(Doubles *to, const Doubles *w, const int step, const int size) {
    const Doubles a = w[0], b = w[step], c = w[2 * step];
    to[0] = a;
    if (size == 2) {
        to[1] = 0.5 * (a + b + c);
        to[2] = 0.5 * (a - b + c);
    } else {
        to[1] = (a + NEAR * b + 0.5 * c) / -1.5;
        to[2] = (a - NEAR * b + 0.5 * c) / -1.5;
        to[3] = (a + FAR * b + 2 * c) / 6;
        to[4] = (a - FAR * b + 2 * c) / 6;
    }
    to[size + 1] = c;
}

/* 2^128 over what transformed weights and inputs are less than: the sums of their products overflow nowhere, where
   differences of infinities would be NaN. Larger ones count as not finite. */
#define WEIGHTS_BELOW 0x1p88f
#define INPUTS_BELOW 0x1p64f

/* G w G' of each kernel, laid out (group, point, block of maps, channel, map of the block). 1 where one is not finite. */
INLINE int pack(float *packed, const float *w, const Geometry *g, const int size) {
    const long units = CEIL_DIV(g->maps, TILE_ROWS), matrix = g->maps * g->channels;
    const int side = size + 2;
    float some[MOST_SIDE * MOST_SIDE][PACKED_CHANNELS * TILE_ROWS];
    Floats spoilt = {0};
    for (long group = 0; group < g->groups; group++, packed += side * side * matrix)
        for (long unit = 0; unit < units; unit++) {
            const long first = g->maps * unit / units, maps = g->maps * (unit + 1) / units - first;
            for (long from = 0; from < g->channels; from += PACKED_CHANNELS) {
                const long channels = MINIMUM(PACKED_CHANNELS, g->channels - from);
                const float *each = w + ((group * g->maps + first) * g->channels + from) * 9;
                for (long c = 0; c < channels; c++, each += 9) {
                    Doubles taps[9] = {{0}}, columns[3 * MOST_SIDE], points[MOST_SIDE];
                    for (long map = 0; map < maps; map++)
                        UNROLL for (int i = 0; i < 9; i++) taps[i][map] = each[map * g->channels * 9 + i];
                    UNROLL for (int j = 0; j < 3; j++) transform_weights(columns + side * j, taps + j, 3, size);
                    for (int i = 0; i < side; i++) {
                        transform_weights(points, columns + i, side, size);
                        for (int j = 0; j < side; j++) {
                            const Floats values = __builtin_convertvector(points[j], Floats);
                            memcpy(some[side * i + j] + c * maps, &values, (size_t)maps * sizeof(float));
                            spoilt += 0 * (values * WEIGHTS_BELOW);
                        }
                    }
                }
                for (int point = 0; point < side * side; point++)
                    memcpy(packed + point * matrix + first * g->channels + from * maps, some[point],
                           (size_t)(channels * maps) * sizeof(float));
            }
        }
    for (int map = 0; map < TILE_ROWS; map++)
        if (spoilt[map] != 0) return 1;
    return 0;
}

int NAMED(pack_tiles)(float *packed, const float *w, const Geometry *g, long size) {
    return size == 2 ? pack(packed, w, g, 2) : pack(packed, w, g, 4);
}

/* B' d of a line of vectors that are `step` apart. */
INLINE void transform_line(Vector *to, const Vector *d, const long step, const int size) {
    if (size == 2) {
        to[0] = d[0] - d[2 * step];
        to[step] = d[step] + d[2 * step];
        to[2 * step] = d[2 * step] - d[step];
        to[3 * step] = d[step] - d[3 * step];
    } else {
        const Vector near_even = d[4 * step] - 2 * d[2 * step], near_odd = (float)NEAR * (d[3 * step] - 2 * d[step]);
        const Vector far_even = d[4 * step] - 0.5f * d[2 * step], far_odd = (float)FAR * (d[3 * step] - 0.5f * d[step]);
        to[0] = d[4 * step] - 2.5f * d[2 * step] + d[0];
        to[step] = near_even + near_odd;
        to[2 * step] = near_even - near_odd;
        to[3 * step] = far_even + far_odd;
        to[4 * step] = far_even - far_odd;
        to[5 * step] = d[5 * step] - 2.5f * d[3 * step] + d[step];
    }
}

/* Which lanes of what `load_tiles` reads are inside a row of `width`, of which `count` tiles see the part from `left` on. */
INLINE void set_lanes(Lanes *lanes, long left, long width, long count, const int size) {
    for (int k = 0; k < size + 2; k++) {
        const long stride = size == 2 ? 2 : 1, some = size == 2 ? count : k < size ? LANES : 1;
        const long at = left + (size == 2 ? k : MINIMUM(k, size) * LANES + (k > size));
        const long from = MINIMUM(some, MAXIMUM(0, ceil_div(-at, stride)));
        lanes[k] = lanes_of(stride, from, MAXIMUM(from, MINIMUM(some, ceil_div(width - at, stride))));
    }
}

/* What tiles side by side see of a row: element j of each of them in vector j. */
INLINE void load_tiles(Vector *d, const float *p, const Lanes *lanes, const int size) {
    if (size == 2) {
        UNROLL for (int j = 0; j < 4; j++) d[j] = load_set(p + j, 2, &lanes[j]);
    } else {
        Vector v[4];
        UNROLL for (int k = 0; k < 4; k++) v[k] = load_set(p + k * LANES, 1, &lanes[k]);
        const Vector even[2] = {even_of(v[0], v[1]), even_of(v[2], v[3])}, odd[2] = {odd_of(v[0], v[1]), odd_of(v[2], v[3])};
        d[0] = even_of(even[0], even[1]);
        d[1] = even_of(odd[0], odd[1]);
        d[2] = odd_of(even[0], even[1]);
        d[3] = odd_of(odd[0], odd[1]);
        d[4] = shifted(d[0], load_set(p + 4 * LANES, 1, &lanes[4])); /* the first of the next tile */
        d[5] = shifted(d[1], load_set(p + 4 * LANES + 1, 1, &lanes[5]));
    }
}

/* B' d B of tiles first..last of one image, for all channels: (point, channel, tile of the panel). Anything but zero where
   one is not finite. */
INLINE float transform_input(const Job *job, const float *x, float *to, long width, long first, long last, const int size) {
    const Geometry *g = &job->q->g;
    const int side = size + 2;
    const ptrdiff_t plane = g->height * g->width, point = point_step(g->channels, width);
    Vector spoilt = zero();
    for (long tile = first; tile < last;) {
        const long ty = tile / job->across, tx = tile % job->across;
        const long count = MINIMUM(MINIMUM(LANES, last - tile), job->across - tx);
        const long top = size * ty - g->top, left = size * tx - g->left, room = width - (tile - first);
        Lanes lanes[MOST_SIDE];
        set_lanes(lanes, left, g->width, count, size);
        const float *source = x + top * g->width + left;
        float *target = to + (tile - first);
        for (long c = 0; c < g->channels; c++, source += plane, target += width) {
            Vector d[MOST_SIDE * MOST_SIDE], t[MOST_SIDE * MOST_SIDE];
            UNROLL for (int i = 0; i < side; i++) {
                if (top + i >= 0 && top + i < g->height)
                    load_tiles(d + side * i, source + i * g->width, lanes, size);
                else
                    UNROLL for (int j = 0; j < side; j++) d[side * i + j] = zero();
            }
            UNROLL for (int j = 0; j < side; j++) transform_line(t + j, d + j, side, size);
            UNROLL for (int i = 0; i < side; i++) transform_line(d + side * i, t + side * i, 1, size);
            UNROLL for (int i = 0; i < side * side; i++) {
                spoilt += d[i] * all(INPUTS_BELOW) * zero();
                if (room >= LANES)
                    store(target + i * point, d[i]); /* what is too much, the next tiles write over */
                else
                    store_first(target + i * point, d[i], MINIMUM(room, count));
            }
        }
        tile += count;
    }
    return sum_of(spoilt);
}

/* Elements of a and b in turn. */
INLINE void interleave(Vector *to, Vector a, Vector b) {
#if defined(__AVX512F__)
    const Integers low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    to[0] = (Vector)_mm512_permutex2var_ps((__m512)a, (__m512i)low, (__m512)b);
    to[1] = (Vector)_mm512_permutex2var_ps((__m512)a, (__m512i)(low + 8), (__m512)b);
#elif defined(__AVX2__)
    __m256 low = _mm256_unpacklo_ps((__m256)a, (__m256)b), high = _mm256_unpackhi_ps((__m256)a, (__m256)b);
    to[0] = (Vector)_mm256_permute2f128_ps(low, high, 0x20);
    to[1] = (Vector)_mm256_permute2f128_ps(low, high, 0x31);
#elif defined(__SSE2__)
    to[0] = (Vector)_mm_unpacklo_ps((__m128)a, (__m128)b);
    to[1] = (Vector)_mm_unpackhi_ps((__m128)a, (__m128)b);
#else
    to[0] = (Vector){a[0], b[0], a[1], b[1]};
    to[1] = (Vector){a[2], b[2], a[3], b[3]};
#endif
}

/* A' m of a line of vectors that are `step` apart. */
INLINE void transform_sums(Vector *y, const Vector *m, const long step, const int size) {
    if (size == 2) {
        y[0] = m[0] + m[step] + m[2 * step];
        y[1] = m[step] - m[2 * step] - m[3 * step];
    } else {
        const Vector near_even = m[step] + m[2 * step], near_odd = (float)NEAR * (m[step] - m[2 * step]);
        const Vector far_even = m[3 * step] + m[4 * step], far_odd = (float)FAR * (m[3 * step] - m[4 * step]);
        y[0] = m[0] + near_even + far_even;
        y[1] = near_odd + far_odd;
        y[2] = 0.5f * near_even + 2 * far_even;
        y[3] = 0.5f * near_odd + 2 * far_odd + m[5 * step];
    }
}

/* A' m A of `count` tiles from the `at`th of a panel on, and from tile `tile` of an image on, into the plane of one map. */
INLINE void transform_output(const Job *job, const float *sums, ptrdiff_t point, float *y, const float *residual, float bias,
                             long tile, long count, const int size) {
    const Geometry *g = &job->q->g;
    const int side = size + 2;
    const Activation *how = &job->q->epilogue.activation;
    const int at_once = is_at_once(how);
    const Vector shift = all(bias);
    Vector columns[MOST_SIDE * MOST_SIZE]; /* of a tile: (side, size) */
    UNROLL for (int j = 0; j < side; j++) {
        Vector m[MOST_SIDE];
        UNROLL for (int i = 0; i < side; i++) m[i] = load(sums + (side * i + j) * point);
        transform_sums(columns + size * j, m, 1, size);
    }
    float rows[MOST_SIZE][MOST_SIZE * LANES];
    UNROLL for (int i = 0; i < size; i++) {
        Vector each[MOST_SIZE], pairs[MOST_SIZE], turns[MOST_SIZE];
        transform_sums(each, columns + i, size, size);
        UNROLL for (int j = 0; j < size; j++) each[j] += shift;
        if (size == 2) {
            interleave(turns, each[0], each[1]);
        } else {
            interleave(pairs, each[0], each[2]);
            interleave(pairs + 2, each[1], each[3]);
            interleave(turns, pairs[0], pairs[2]);
            interleave(turns + 2, pairs[1], pairs[3]);
        }
        UNROLL for (int j = 0; j < size; j++) store(rows[i] + j * LANES, turns[j]);
    }
    for (long done = 0; done < count;) {
        const long ty = (tile + done) / job->across, tx = (tile + done) % job->across;
        const long run = MINIMUM(count - done, job->across - tx), columns_left = MINIMUM(size * run, g->columns - size * tx);
        for (int i = 0; i < size && size * ty + i < g->rows; i++) {
            const ptrdiff_t at = (size * ty + i) * g->columns + size * tx;
            for (long j = 0; j < columns_left; j += LANES) {
                const long lanes = MINIMUM(LANES, columns_left - j);
                Vector v = load_first(rows[i] + size * done + j, lanes);
                if (residual) v += load_first(residual + at + j, lanes);
                store_first(y + at + j, at_once ? activated_at_once(v, how) : v, lanes);
            }
            if (!at_once) NAMED(activate)(how, y + at, y + at, columns_left);
        }
        done += run;
    }
}

static void tiles_task(void *context, long ticket) {
    Job *job = context;
    const long points = points_of(job->size);
    const Convolution *q = job->q;
    const Geometry *g = &q->g;
    const long maps_part = ticket % job->unit_parts, part = ticket / job->unit_parts % job->parts;
    const long image = ticket / job->unit_parts / job->parts / g->groups, group = ticket / job->unit_parts / job->parts % g->groups;
    const long vectors = CEIL_DIV(job->tiles, LANES);
    const long panel0 = job->panels * part / job->parts, panel1 = job->panels * (part + 1) / job->parts;
    const long matrix = g->maps * g->channels, pixels = g->rows * g->columns;
    const float *x = q->x + (image * g->groups + group) * g->channels * g->height * g->width;
    const float *weights = q->weights + group * points * matrix;
    const size_t room = (size_t)(points * point_step(g->channels, PANEL));
    float *input = scratch(SCRATCH_PANELS, room * (size_t)(panel1 - panel0));
    float *sums = scratch(SCRATCH_TILES, (size_t)(points * point_step(CHUNK_UNITS * TILE_ROWS, PANEL)));
    if (!input || !sums) {
        job->failed = 1;
        return;
    }
    for (long panel = panel0; panel < panel1; panel++) {
        const long first = vectors * panel / job->panels * LANES, last = MINIMUM(job->tiles, vectors * (panel + 1) / job->panels * LANES);
        if (job->unusual) return;
        if (job->transform_input(job, x, input + (size_t)(panel - panel0) * room, CEIL_DIV(last - first, LANES) * LANES, first, last) != 0) {
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
            for (long point = 0; point < points; point++)
                for (long each = unit; each < stop; each++) {
                    const long map = g->maps * each / job->units, rows = g->maps * (each + 1) / job->units - map;
                    Tile t = {.a = weights + point * matrix + map * g->channels, .a_row = 1, .a_step = rows, .b_step = width,
                              .c_row = width, .columns = width};
                    t.b = input + (size_t)(panel - panel0) * room + point * point_step(g->channels, width);
                    t.c = sums + point * point_step(maps, width) + (map - map0) * width;
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
                    job->transform_output(job, sums + map * width + (tile - first), point_step(maps, width), q->y + at, residual, bias, tile,
                                     MINIMUM(LANES, last - tile));
            }
        }
    }
}

#define TRANSFORMS(size) \
    static float transform_input_##size(const Job *job, const float *x, float *to, long width, long first, long last) { \
        return transform_input(job, x, to, width, first, last, size); \
    } \
    static void transform_output_##size(const Job *job, const float *sums, ptrdiff_t point, float *y, const float *residual, \
                                        float bias, long tile, long count) { \
        transform_output(job, sums, point, y, residual, bias, tile, count, size); \
    }

TRANSFORMS(2)
TRANSFORMS(4)

int NAMED(convolve_by_tiles)(const Convolution *q, long size) {
    const Geometry *g = &q->g;
    Job job = {.q = q, .size = size, .across = CEIL_DIV(g->columns, size)};
    job.transform_input = size == 2 ? transform_input_2 : transform_input_4;
    job.transform_output = size == 2 ? transform_output_2 : transform_output_4;
    job.tiles = job.across * CEIL_DIV(g->rows, size);
    job.panels = CEIL_DIV(CEIL_DIV(job.tiles, LANES), TILE_VECTORS);
    job.units = CEIL_DIV(g->maps, TILE_ROWS);
    const long images = g->batch * g->groups, threads = pool_threads();
    const long together = MAXIMUM(1, BLOCK_FLOATS / (points_of(size) * g->channels * PANEL));
    job.parts = CEIL_DIV(job.panels, together);
    job.unit_parts = 1;
    if (threads > 1) {
        if (images * job.parts < 4 * threads) job.parts = MINIMUM(job.panels, CEIL_DIV(4 * threads, images));
        /* each of them transforms the input of its part, too */
        const long wanted = size == 2 ? 2 * threads : threads;
        if (images * job.parts < wanted)
            job.unit_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, images * job.parts), job.units / CHUNK_UNITS));
    }
    pool_run(tiles_task, &job, images * job.parts * job.unit_parts);
    return job.failed ? -1 : job.unusual;
}
