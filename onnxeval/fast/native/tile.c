#include "tile.h"

INLINE void tile(const Tile *t, const int rows, const int vectors, const int raw) {
    Vector sum[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = zero();
    const long last = t->columns - (vectors - 1) * LANES;
    const float *a = t->a, *b = t->b;
    const ptrdiff_t a_row = t->a_row, a_step = t->a_step, b_step = t->b_step;
    if (!raw || last == LANES) {
        for (long k = t->depth; k > 0; k--, a += a_step, b += b_step) {
            Vector right[TILE_VECTORS];
            UNROLL for (int j = 0; j < vectors; j++) right[j] = load(b + j * LANES);
            UNROLL for (int i = 0; i < rows; i++) {
                Vector left = all(a[i * a_row]);
                UNROLL for (int j = 0; j < vectors; j++) {
                    sum[i][j] += left * right[j];
                    IN_REGISTER(sum[i][j]);
                }
            }
        }
    } else {
        for (long k = t->depth; k > 0; k--, a += a_step, b += b_step) {
            Vector right[TILE_VECTORS];
            UNROLL for (int j = 0; j < vectors - 1; j++) right[j] = load(b + j * LANES);
            right[vectors - 1] = load_first(b + (vectors - 1) * LANES, last);
            UNROLL for (int i = 0; i < rows; i++) {
                Vector left = all(a[i * a_row]);
                UNROLL for (int j = 0; j < vectors; j++) {
                    sum[i][j] += left * right[j];
                    IN_REGISTER(sum[i][j]);
                }
            }
        }
    }
#define AT(p, j) (last == LANES || (j) < vectors - 1 ? load(p) : load_first(p, last))
    float *const c = t->c;
    const ptrdiff_t c_row = t->c_row;
    if (t->accumulate)
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] += AT(c + i * c_row + j * LANES, j);
    if (t->row_bias)
        UNROLL for (int i = 0; i < rows; i++) {
            Vector bias = all(t->row_bias[i]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += bias;
        }
    if (t->column_bias)
        UNROLL for (int j = 0; j < vectors; j++) {
            Vector bias = AT(t->column_bias + j * LANES, j);
            UNROLL for (int i = 0; i < rows; i++) sum[i][j] += bias;
        }
    if (t->residual)
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] += AT(t->residual + i * c_row + j * LANES, j);
    if (t->activated && t->activation.kind == CLIP) {
        const Activation clip = {CLIP, t->activation.alpha, t->activation.beta};
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = activated_at_once(sum[i][j], &clip);
    } else if (t->activated) {
        const Activation swish = {HARD_SWISH, t->activation.alpha, t->activation.beta};
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
            sum[i][j] = activated_at_once(sum[i][j], &swish);
    }
#undef AT
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors - 1; j++) store(c + i * c_row + j * LANES, sum[i][j]);
        if (last == LANES)
            store(c + i * c_row + (vectors - 1) * LANES, sum[i][vectors - 1]);
        else
            store_first(c + i * c_row + (vectors - 1) * LANES, sum[i][vectors - 1], last);
    }
}

#define ONE(rows, vectors) \
    static void tile_##rows##_##vectors##_packed(const Tile *t) { tile(t, rows, vectors, 0); } \
    static void tile_##rows##_##vectors##_raw(const Tile *t) { tile(t, rows, vectors, 1); }
#define PAIR(rows, vectors) \
    { tile_##rows##_##vectors##_packed, tile_##rows##_##vectors##_raw }
#if TILE_VECTORS == 3
#define ALL(rows) ONE(rows, 1) ONE(rows, 2) ONE(rows, 3)
#define ROW(rows) \
    { PAIR(rows, 1), PAIR(rows, 2), PAIR(rows, 3) }
#else
#define ALL(rows) ONE(rows, 1) ONE(rows, 2)
#define ROW(rows) \
    { PAIR(rows, 1), PAIR(rows, 2) }
#endif

ALL(1) ALL(2) ALL(3) ALL(4)
#if TILE_ROWS == 8
ALL(5) ALL(6) ALL(7) ALL(8)
const TileKernel NAMED(tiles)[TILE_ROWS][TILE_VECTORS][2] = {ROW(1), ROW(2), ROW(3), ROW(4),
                                                             ROW(5), ROW(6), ROW(7), ROW(8)};
#else
const TileKernel NAMED(tiles)[TILE_ROWS][TILE_VECTORS][2] = {ROW(1), ROW(2), ROW(3), ROW(4)};
#endif
