/* Convolutions as products of the weights and patches of the input, which are packed as they are needed. */
#include <math.h>
#include <stdatomic.h>

#include "pool.h"
#include "tier.h"

#define DEPTH 320         /* of a block of channels and taps */
#define PANELS_FLOATS 98304 /* of patches that are packed together: they stay in the second cache */
#define MOST_PANELS 12
#define SMALL 200000      /* multiplications that no second thread is woken for */
#define MOST_MAPS 3       /* of a single channel that are quicker one after the other than as a product */
#define LEAST_CHANNELS 16 /* and maps, and pixels, of convolutions whose transforms are worth it */
#define LEAST_PIXELS (LANES > 8 ? 64 : 36)
#define FEW_MAPS 32       /* that transforms are not worth where there are no MANY_PIXELS */
#define MANY_PIXELS 400
#define LARGE_TILES_PIXELS 144 /* that F(4x4) is quicker for than F(2x2) */
#define LARGE_TILES_MANY 1600  /* where there are few maps */
/* Multiplications that the same time goes into */
#define PACK_WINDOWS 6.0  /* packing a vector of patches */
#define PACK_PIXELS 1.5   /* or of an input that is one already */
#define PIXELS_OVERHEAD 1.06
#define TURN_OVER 12.0    /* turning over a vector of sums of maps */
#define APART (TILE_ROWS > 4 ? 0 : 0.3) /* reading a channel in place: its planes are pages apart, and few windows share a line */
#define RAW_UNITS 3       /* as few blocks of maps are as quick with an input that is not packed */

/* Block `unit` of the maps, or of the windows, covers first..last: all blocks are of nearly the same size. */
INLINE long unit_start(long size, long units, long unit) { return size * unit / units; }

static double work_of(const Geometry *g) {
    return (double)g->batch * (double)g->groups * (double)g->maps * (double)g->channels * (double)(g->taps_y * g->taps_x) *
           (double)(g->rows * g->columns);
}

static int is_plain(const Geometry *g) {
    return g->taps_y * g->taps_x == 1 && g->stride_y == 1 && g->stride_x == 1 && !g->top && !g->left &&
           g->rows == g->height && g->columns == g->width;
}

INLINE long units_of(const Geometry *g) { return CEIL_DIV(g->maps, TILE_ROWS); }

typedef struct {
    const Convolution *q;
    const float *end; /* of the input */
    long depth;       /* channels * taps of a group */
    long step;        /* channels of a block */
    long panels, panel_parts, unit_parts, units;
    int raw;
    _Atomic int failed;
} Job;

static void pixels_task(void *context, long ticket) {
    Job *job = context;
    const Convolution *q = job->q;
    const Geometry *g = &q->g;
    const long maps_part = ticket % job->unit_parts, part = ticket / job->unit_parts % job->panel_parts;
    const long image = ticket / job->unit_parts / job->panel_parts / g->groups;
    const long group = ticket / job->unit_parts / job->panel_parts % g->groups;
    const long taps = g->taps_y * g->taps_x, plane = g->height * g->width, pixels = g->rows * g->columns;
    const long vectors = CEIL_DIV(pixels, LANES);
    const long first = job->panels * part / job->panel_parts, last = job->panels * (part + 1) / job->panel_parts;
    const long first_unit = job->units * maps_part / job->unit_parts;
    const long last_unit = job->units * (maps_part + 1) / job->unit_parts;
    const float *x = q->x + (image * g->groups + group) * g->channels * plane;
    const float *weights = q->weights + group * g->maps * job->depth;
    const ptrdiff_t y = (image * g->groups + group) * g->maps * pixels;
    float *patches = NULL;
    if (!job->raw && !(patches = scratch(SCRATCH_PANELS, (size_t)((last - first) * job->step * taps * PANEL)))) {
        job->failed = 1;
        return;
    }
    for (long from = 0; from < g->channels; from += job->step) {
        const long to = MINIMUM(g->channels, from + job->step);
        long start[MOST_PANELS + 1];
        for (long panel = first; panel <= last; panel++)
            start[panel - first] = MINIMUM(pixels, vectors * panel / job->panels * LANES);
        if (!job->raw)
            for (long panel = 0; panel < last - first; panel++)
                NAMED(pack_patches)(patches + panel * job->step * taps * PANEL,
                                    CEIL_DIV(start[panel + 1] - start[panel], LANES) * LANES, x, job->end, g, from, to,
                                    start[panel], start[panel + 1]);
        for (long unit = first_unit; unit < last_unit; unit++) {
            const long map = unit_start(g->maps, job->units, unit);
            const long maps = unit_start(g->maps, job->units, unit + 1) - map;
            Tile t = {.a = weights + map * job->depth + from * taps * maps, .a_row = 1, .a_step = maps, .c_row = pixels,
                      .depth = (to - from) * taps, .accumulate = from > 0};
            for (long panel = 0; panel < last - first; panel++) {
                const ptrdiff_t at = y + map * pixels + start[panel];
                t.columns = start[panel + 1] - start[panel];
                t.b_step = job->raw ? plane : CEIL_DIV(t.columns, LANES) * LANES;
                t.b = job->raw ? x + from * plane + start[panel] : patches + panel * job->step * taps * PANEL;
                t.c = q->y + at;
                if (to == g->channels) NAMED(finish_tile)(&t, &q->epilogue, at, group * g->maps + map, 0);
                run_tile(&t, maps, job->raw);
                if (to == g->channels && !is_at_once(&q->epilogue.activation))
                    for (long i = 0; i < maps; i++)
                        NAMED(activate)(&q->epilogue.activation, t.c + i * pixels, t.c + i * pixels, t.columns);
            }
        }
    }
}

long NAMED(channels_together)(const Convolution *q, long depth) {
    const long channels = q->g.channels, chain = q->chain > 0 ? MINIMUM(depth, q->chain) : depth;
    return CEIL_DIV(channels, CEIL_DIV(channels, MAXIMUM(1, chain / (q->g.taps_y * q->g.taps_x))));
}

int NAMED(convolve_by_pixels)(const Convolution *q) {
    const Geometry *g = &q->g;
    const long taps = g->taps_y * g->taps_x, pixels = g->rows * g->columns;
    Job job = {.q = q, .end = q->x + g->batch * g->groups * g->channels * g->height * g->width};
    job.depth = g->channels * taps;
    job.units = units_of(g);
    job.raw = is_plain(g) && job.units <= RAW_UNITS;
    job.step = NAMED(channels_together)(q, DEPTH);
    job.panels = CEIL_DIV(CEIL_DIV(pixels, LANES), TILE_VECTORS);
    const long together = MAXIMUM(1, MINIMUM(MOST_PANELS, PANELS_FLOATS / (job.step * taps * PANEL)));
    job.panel_parts = CEIL_DIV(job.panels, together);
    const long images = g->batch * g->groups;
    const long wanted = work_of(g) < SMALL ? 1 : 4 * pool_threads();
    if (wanted > 4 && images * job.panel_parts < wanted)
        job.panel_parts = MINIMUM(MAXIMUM(job.panel_parts, CEIL_DIV(wanted, images)), CEIL_DIV(job.panels, 2));
    job.unit_parts = 1;
    if (wanted > 4 && images * job.panel_parts < wanted / 2)
        job.unit_parts = MAXIMUM(1, MINIMUM(CEIL_DIV(wanted, images * job.panel_parts), job.units / 2));
    const long tickets = images * job.panel_parts * job.unit_parts;
    if (wanted == 1)
        for (long i = 0; i < tickets; i++) pixels_task(&job, i);
    else
        pool_run(pixels_task, &job, tickets);
    return job.failed ? -1 : 0;
}

Method NAMED(choose_method)(const Geometry *g, int fast_math) {
    const long pixels = g->rows * g->columns, padded = CEIL_DIV(pixels, LANES) * LANES;
    if (g->channels == 1 && g->maps <= MOST_MAPS && g->taps_x <= MOST_TAPS) return BY_CHANNEL;
    if (g->taps_y == 3 && g->taps_x == 3 && g->stride_y == 1 && g->stride_x == 1 && g->dilation_y == 1 && g->dilation_x == 1 &&
        g->channels >= LEAST_CHANNELS && g->maps >= LEAST_CHANNELS && pixels >= LEAST_PIXELS && (g->maps > FEW_MAPS || pixels >= MANY_PIXELS))
        return fast_math && pixels >= (g->maps > FEW_MAPS ? LARGE_TILES_PIXELS : LARGE_TILES_MANY) ? BY_LARGE_TILES : BY_TILES;
    /* what a vector of results takes, in multiplications of vectors */
    const double depth = (double)(g->channels * g->taps_y * g->taps_x), maps = (double)g->maps;
    const double packing = !is_plain(g) ? PACK_WINDOWS : units_of(g) > RAW_UNITS ? PACK_PIXELS : 0;
    const double by_pixels = depth * (PIXELS_OVERHEAD * (double)padded / (double)pixels + packing / maps);
    const double by_maps = depth * (double)(CEIL_DIV(g->maps, LANES) * LANES) / maps + TURN_OVER +
                           APART * (double)g->channels;
    return by_maps < by_pixels ? BY_MAPS : BY_PIXELS;
}

/* Of a square of results that is a tile; 0 where the method has none. */
INLINE long tile_size(Method method) { return method == BY_TILES ? 2 : method == BY_LARGE_TILES ? 4 : 0; }

size_t NAMED(packed_filters_floats)(const Geometry *g, Method method) {
    const long depth = g->channels * g->taps_y * g->taps_x;
    if (tile_size(method)) return NAMED(packed_tiles_floats)(g, tile_size(method));
    if (method == BY_MAPS) return (size_t)g->groups * NAMED(packed_matrix_floats)(depth, g->maps);
    return (size_t)(g->groups * g->maps * depth);
}

int NAMED(pack_filters)(float *packed, const float *w, const Geometry *g, Method method) {
    const long depth = g->channels * g->taps_y * g->taps_x, units = CEIL_DIV(g->maps, TILE_ROWS);
    if (tile_size(method)) return NAMED(pack_tiles)(packed, w, g, tile_size(method));
    if (method == BY_CHANNEL) return NAMED(pack_channels)(packed, w, g);
    for (long group = 0; group < g->groups; group++, w += g->maps * depth) {
        if (method == BY_MAPS) {
            NAMED(pack_matrix)(packed, w, 1, depth, depth, g->maps);
            packed += NAMED(packed_matrix_floats)(depth, g->maps);
            continue;
        }
        for (long unit = 0; unit < units; unit++) {
            const long map = unit_start(g->maps, units, unit), maps = unit_start(g->maps, units, unit + 1) - map;
            for (long k = 0; k < depth; k++)
                for (long i = 0; i < maps; i++) *packed++ = w[(map + i) * depth + k];
        }
    }
    return 0;
}

int NAMED(convolve)(const Convolution *q, Method method) {
    switch (method) {
        case BY_CHANNEL: return NAMED(convolve_by_channel)(q);
        case BY_TILES:
        case BY_LARGE_TILES: return NAMED(convolve_by_tiles)(q, tile_size(method));
        case BY_MAPS: return NAMED(convolve_by_maps)(q);
        default: return NAMED(convolve_by_pixels)(q);
    }
}
