/* What the kernel files of one tier share. */
#ifndef ONNXEVAL_TIER_H
#define ONNXEVAL_TIER_H

#include "kernels.h"
#include "tile.h"

int NAMED(multiply)(const Product *);
size_t NAMED(packed_matrix_floats)(long k, long n);
void NAMED(pack_matrix)(float *packed, const float *b, ptrdiff_t b_step, ptrdiff_t b_column, long k, long n);

void NAMED(softmax)(const Rows *, int logarithm);
void NAMED(layer_norm)(const Rows *, int centred);

/* Lets the tile end its sums: `at` counts from the start of the residual, row and column from that of the biases. */
void NAMED(finish_tile)(Tile *, const Epilogue *, ptrdiff_t at, long row, long column);

/* y = activation(x), which may be the same. */
void NAMED(activate)(const Activation *, const float *x, float *y, long n);

#endif
