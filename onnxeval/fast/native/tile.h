/* The innermost product: a few rows of a times a few vectors of b, all sums in registers. */
#ifndef ONNXEVAL_TILE_H
#define ONNXEVAL_TILE_H

#include "kernels.h"
#include "vector.h"

/* As many sums as there are registers for, beside the vectors of b and one element of a. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define TILE_ROWS 8
#define TILE_VECTORS 3
#elif defined(__AVX2__)
#define TILE_ROWS 4
#define TILE_VECTORS 3
#else
#define TILE_ROWS 4
#define TILE_VECTORS 2
#endif
#define PANEL (TILE_VECTORS * LANES)

/* Sixteen registers are just enough for sums and factors: Clang finds that out only when each sum has to be in one. */
#if defined(__clang__) && defined(__AVX2__) && !defined(__AVX512F__)
#define IN_REGISTER(v) __asm__("" : "+x"(v))
#else
#define IN_REGISTER(v) (void)0
#endif

typedef struct {
    const float *a;
    ptrdiff_t a_row, a_step;
    const float *b;
    ptrdiff_t b_step;
    float *c;
    ptrdiff_t c_row;
    long depth;
    long columns;                                   /* of c: the last vector may be a part of one */
    const float *row_bias, *column_bias, *residual; /* at this tile; NULL where there is none */
    int accumulate;                                 /* whether c holds a sum already */
    int activated;                                  /* by `activation` */
    Activation activation;
} Tile;

/* Sums of these kinds are activated before they are stored; others are quicker afterwards, many at a time. */
INLINE int is_at_once(const Activation *how) { return how->kind == CLIP || how->kind == HARD_SWISH; }

INLINE Vector activated_at_once(Vector v, const Activation *how) {
    const Vector alpha = all(how->alpha), beta = all(how->beta);
    if (how->kind == HARD_SWISH) return v * smaller(all(1.0f), larger(zero(), alpha * v + beta));
    return smaller(beta, larger(alpha, v));
}

typedef void (*TileKernel)(const Tile *);

/* By rows - 1, vectors - 1, and whether b is raw: then the last vector of a row is read as far as `columns` goes. */
extern const TileKernel NAMED(tiles)[TILE_ROWS][TILE_VECTORS][2];

INLINE void run_tile(const Tile *t, long rows, int raw) {
    NAMED(tiles)[rows - 1][CEIL_DIV(t->columns, LANES) - 1][raw](t);
}

#endif
