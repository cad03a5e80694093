/* What the kernel files of one tier share. */
#ifndef ONNXEVAL_TIER_H
#define ONNXEVAL_TIER_H

#include "kernels.h"
#include "tile.h"

int NAMED(multiply)(const Product *);
size_t NAMED(packed_matrix_floats)(long k, long n);
void NAMED(pack_matrix)(float *packed, const float *b, ptrdiff_t b_step, ptrdiff_t b_column, long k, long n);

size_t NAMED(packed_integers_words)(long k, long n);
int NAMED(pack_integers)(IntegerMatrix *, const uint8_t *b, uint8_t flip, long k, long n);
int NAMED(multiply_integers)(const IntegerProduct *);
int NAMED(quantize)(const Quantization *);
/* Limits units of `places` times `width` words so that the products of excess->together of them one after the other, or 1 where
   that is better, can be added up in 16 bits. The places of `beside` units, or what is left of them, lie in turns. */
int NAMED(limit_words)(Excess *, int32_t *words, long units, long places, long width, long beside);
/* Up to BLOCK_ROWS rows of words times the columns of one panel; rows of the result are to_row apart, whole vectors. */
#define BLOCK_ROWS 4
#if defined(__AVX2__) && !defined(__AVX512F__)
#define WORD_VECTORS 2 /* products and a vector of ones need registers, too */
#else
#define WORD_VECTORS TILE_VECTORS
#endif
#define WORD_PANEL (WORD_VECTORS * LANES)
void NAMED(panel_sums)(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *, long panel, int32_t *to, ptrdiff_t to_row, long rows);
/* Sums of products of words (rows, k) and the matrix, to_row apart; rows are filled up to whole vectors. */
void NAMED(multiply_words)(const int32_t *a, ptrdiff_t a_row, const IntegerMatrix *, int32_t *to, ptrdiff_t to_row, long rows);
size_t NAMED(integer_filter_words)(const Geometry *);
int NAMED(pack_integer_filters)(IntegerFilters *, const uint8_t *weights, uint8_t flip, const Geometry *);
int NAMED(convolve_integers)(const IntegerConvolution *);
/* Taps of a single channel that have words of their own. */
#define MOST_CHANNEL_TAPS 128
long NAMED(channel_words)(const Geometry *);
void NAMED(pack_channel)(int32_t *to, const uint8_t *weights, uint8_t flip, const Geometry *);
int NAMED(convolve_single_channels)(const IntegerConvolution *);
int NAMED(cast_bytes)(const ByteCasts *);
int NAMED(multiply_bits)(const BitsProduct *);
int NAMED(requantize_rows)(const SumRows *);
int NAMED(join_bytes)(const ByteJoin *);
int NAMED(look_up_bytes)(const ByteTable *);
int NAMED(pool_bytes)(const BytePool *);
int NAMED(mean_of_bytes)(const ByteMeans *);
int NAMED(run_quantized_lstm)(const QuantizedLstm *);
int NAMED(run_layer)(const Layer *);
void NAMED(run_chain)(const ElementChain *);
int NAMED(pool_planes)(const Pool *);
void NAMED(softmax)(const Rows *, int logarithm);
void NAMED(layer_norm)(const Rows *, int centred);
void NAMED(normalise_channels)(const Neighbours *);

void NAMED(move)(const Nest *, long size, char *y, const char *x);
int NAMED(move_slices)(const Slices *);
int NAMED(move_elements)(const Picks *);
int NAMED(map_serves)(const Mapping *);
void NAMED(map)(const Mapping *);
int NAMED(reduce_serves)(const Reduction *);
void NAMED(reduce)(const Reduction *);
int NAMED(lines_serve)(const Lines *);
void NAMED(run_lines)(const Lines *);
void NAMED(resample)(const Resampling *);
int NAMED(attend)(const Attention *);
int NAMED(rotate)(const Rotation *);

Method NAMED(choose_method)(const Geometry *, int fast_math);
size_t NAMED(packed_filters_floats)(const Geometry *, Method);
int NAMED(pack_filters)(float *packed, const float *w, const Geometry *, Method);
int NAMED(convolve)(const Convolution *, Method);
/* size: of the square of results that is a tile, 2 or 4 */
size_t NAMED(packed_tiles_floats)(const Geometry *, long size);
int NAMED(pack_tiles)(float *packed, const float *w, const Geometry *, long size);
int NAMED(pack_channels)(float *packed, const float *w, const Geometry *);
int NAMED(convolve_by_tiles)(const Convolution *, long size);
/* Channels whose products are added up before what other channels gave: as equal parts as there can be, of `depth` products
   at most. */
long NAMED(channels_together)(const Convolution *, long depth);
int NAMED(convolve_by_pixels)(const Convolution *);
int NAMED(convolve_by_maps)(const Convolution *);
/* Where each tap of that many is on the input, on the axis of the lanes, is kept for all rows of a plane. */
#define MOST_TAPS 32
int NAMED(convolve_by_channel)(const Convolution *);

/* What the windows `first` to `last` of one image see of the channels from..to of one group, starting at x: a row of `width`
   for each channel and tap. `end` is where x cannot be read any more. */
void NAMED(pack_patches)(float *patches, long width, const float *x, const float *end, const Geometry *, long from, long to,
                         long first, long last);

/* Lets the tile end its sums: `at` counts from the start of the residual, row and column from that of the biases. */
void NAMED(finish_tile)(Tile *, const Epilogue *, ptrdiff_t at, long row, long column);

/* y = activation(x), which may be the same. */
void NAMED(activate)(const Activation *, const float *x, float *y, long n);

#endif
