/* What a tier offers: one table of functions for each instruction set that the extension was compiled for. */
#ifndef ONNXEVAL_KERNELS_H
#define ONNXEVAL_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "arrays.h"
#include "attention.h"

/* The number is what Python hands over. A clip to [alpha, beta] covers Relu and none at all as well. */
typedef enum {
    CLIP,
    LEAKY_RELU,   /* x or alpha * x */
    HARD_SIGMOID, /* clip(alpha * x + beta, 0, 1) */
    HARD_SWISH,   /* x * clip(alpha * x + beta, 0, 1) */
    SIGMOID,
    SILU, /* x * sigmoid(alpha * x) */
    TANH,
    GELU,      /* x * normal distribution(x) */
    GELU_TANH, /* its approximation by tanh */
    ERF,
    EXP,
    SOFTPLUS,
    MISH,
    ELU, /* x or alpha * (exp(x) - 1) */
    ABSOLUTE,
    NEGATIVE,
    ROOT,
    RECIPROCAL,
    SQUARE,
    ROUND_FLOAT16, /* to the numbers of that type */
    ROUND_BFLOAT16,
    ACTIVATIONS
} ActivationKind;

typedef struct {
    ActivationKind kind;
    float alpha, beta;
} Activation;

/* What happens to a product before it is stored: plus bias, plus residual, then the activation. */
typedef struct {
    const float *row_bias, *column_bias; /* NULL where there is none */
    const float *residual;               /* laid out as the result; NULL where there is none */
    Activation activation;
} Epilogue;

/* `batch` products (m, k) x (k, n) -> (m, n). Strides count elements and may be anything; the results lie one after the
   other. The right factor is either raw, or packed by `pack_matrix` and then the same for the whole batch. */
typedef struct {
    long batch, m, n, k;
    const float *a;
    const ptrdiff_t *a_offsets; /* where each product of the batch begins */
    ptrdiff_t a_row, a_step;    /* from one row to the next, from one k to the next */
    const float *b;
    const ptrdiff_t *b_offsets;
    ptrdiff_t b_step, b_column;
    const float *packed; /* NULL where b is raw */
    float *c;
    Epilogue epilogue;
} Product;

/* Windows over the last two axes of (batch, groups * channels, height, width): how many there are and where they lie. */
typedef struct {
    long batch, groups, channels, maps; /* channels and maps of one group */
    long height, width, taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x, top, left, rows, columns;
} Geometry;

/* How a convolution goes about it; each has its own layout of weights (groups * maps, channels, taps_y, taps_x). */
typedef enum {
    BY_PIXELS,      /* pixels in the lanes of a vector: products of weights and patches of the input */
    BY_MAPS,        /* maps in the lanes: windows read the input where it lies */
    BY_TILES,       /* Winograd's F(2x2, 3x3) */
    BY_LARGE_TILES, /* F(4x4, 3x3): quicker and less exact */
    BY_CHANNEL,     /* one channel a group: no product at all; weights as they are */
    METHODS
} Method;

typedef struct {
    Geometry g;
    const float *x, *weights; /* packed for the method */
    float *y;
    Epilogue epilogue; /* row_bias: one for each map of all groups */
    long chain;        /* of so many products sums are added up, if they are sums of products; 0 for what is quickest */
} Convolution;

/* What joins the result so far with an operand; activations have the numbers below. */
typedef enum {
    ADD = 64,
    SUBTRACT,      /* the operand from the result */
    SUBTRACT_FROM, /* the result from the operand */
    MULTIPLY,
    DIVIDE,    /* the result by the operand */
    DIVIDE_BY, /* the operand by the result */
    GREATER,   /* NaN where either is */
    LESS,
    SLOPE,     /* the result, times the operand where it is negative */
    NORMALISE, /* the result less the operand, times the next operand, plus the one after that: all three lie alike */
    JOINS_END
} Join;

typedef struct {
    int32_t what, operand; /* operand: its place, of joins alone */
    float alpha, beta;     /* of activations */
} Instruction;

/* How an operand lies beside a result of `rows` rows of `length` elements: row r sees its part (r / repeat) % count, which
   is a row of `length` elements of its own, or one element. */
typedef struct {
    const float *elements;
    long is_row, repeat, count;
} Operand;

/* A chain of element-wise operations, on operand 0. */
typedef struct {
    long rows, length, count;
    const Instruction *instructions;
    const Operand *operands;
    float *y;
} ElementChain;

/* The maximum of what each window sees, or its mean: the sum over row_counts times column_counts. */
typedef struct {
    Geometry g; /* batch planes; one group, channel and map */
    const float *x;
    float *y;
    const float *row_counts, *column_counts; /* NULL for the maximum */
} Pool;

/* Windows along one axis: tap t of window o is at o * stride + t * dilation - begin. */
typedef struct {
    long size, windows, taps, stride, dilation, begin;
} WindowAxis;

/* The greatest element of each window of (planes, size, size, size), the first of equal ones, NaN before all, and where it is in
   the whole of x: each plane counted by rows or by columns. A window that sees nothing has the place before its plane. */
typedef struct {
    long planes;
    WindowAxis axes[3];
    int by_columns;
    const float *x;
    float *y;
    int64_t *places;
} Maxima;

void search_maxima(const Maxima *);

/* Softmax, log-softmax and normalisations of `rows` rows of `n` elements each. */
typedef struct {
    long rows, n;
    const float *x, *scale, *shift; /* scale and shift of n elements, NULL where there is none */
    float *y, *mean, *deviation;    /* the last two of `rows` elements, NULL where nobody asks */
    float epsilon;
} Rows;

/* Each element over (bias + factor * sum of squares) ** (quarters / 4): the squares of its pixel, from as many channels below
   to as many above its own, where there are so many. */
typedef struct {
    long images, channels, pixels, below, above, quarters;
    float factor, bias;
    const float *x;
    float *y;
} Neighbours;

/* What weights are more than their packed words say: words that are added to those at some places, unit after unit. */
typedef struct {
    int together;     /* words one after the other whose products have a sum of 16 bits */
    long count, room; /* of places */
    long *starts;     /* of each unit, and the end; NULL where no words are limited */
    int32_t *places, *words;
} Excess;

/* A matrix of 8-bit integers, each of which stands for its distance to the zero point of its column. */
typedef struct {
    long k, n;
    int32_t *words;      /* packed by `pack_integers` */
    int32_t *sums, *zero; /* of each column: the sum of its integers, its zero point; both as they are packed, signed */
    int centred;         /* whether all zero points are 0 */
    Excess excess;       /* of each vector of columns */
} IntegerMatrix;

/* Rows of floats that are quantized together: elements side by side, along axes that lie as they like. */
typedef struct {
    const float *x;
    int axes;
    const ptrdiff_t *shape, *strides; /* of the axes, in bytes */
} FloatRows;

/* Rows of 8-bit integers times such a matrix, exactly but that sums wrap around. */
typedef struct {
    long m;
    /* Either bytes. `flip` turns the bits of signed ones into those of unsigned ones 128 higher: 0x80, or 0. */
    const uint8_t *a, *a_zero; /* a_zero: one, or NULL for 0 */
    uint8_t flip;
    const float *a_scale; /* one */
    /* Or floats: the sum of both where `added` is not NULL, its hyperbolic tangent where `tanh` is set. */
    const FloatRows *x, *added;
    int tanh;
    const IntegerMatrix *b;
    int32_t *sums; /* (m, n): the result */
    /* Where it is not NULL: the sums times a_scale times column_scale, plus bias, instead. */
    float *scaled;
    const float *column_scale; /* of each column */
    const float *column_bias;  /* NULL where there is none */
} IntegerProduct;

/* Floats become codes of 8 bits, as DynamicQuantizeLinear has it. */
typedef struct {
    long rows, k;
    const FloatRows *x;
    uint8_t *codes; /* (rows, k) */
    float *scale;
    uint8_t *zero;
} Quantization;

/* Sums become integers of 8 bits: rint(sum * multiplier / divisor) + zero, from lowest to highest. */
typedef struct {
    int32_t zero, lowest, highest;
    int is_signed, is_bounded; /* the result; by more than the range of its type */
} Requantization;

/* Weights of a convolution of 8-bit integers, each of which stands for its distance to the zero point of its map; and what
   becomes of the sums of each map. */
typedef struct {
    long maps, depth;      /* maps of all groups; channels and taps of one */
    int32_t *words, *ones; /* packed by `pack_integer_filters`; as the weights of one map that are all 1 */
    Excess excess;         /* of each map */
    int32_t *sums, *zero;  /* of each map: the sum of its integers, its zero point; both as they are packed, signed */
    int32_t *bias;
    int any_zero; /* whether any zero point is not 0 */
    double *multiplier, divisor;
    float *factor; /* multiplier / divisor */
} IntegerFilters;

typedef struct {
    Geometry g;
    const uint8_t *x;
    uint8_t flip;   /* as in IntegerProduct */
    int32_t x_zero; /* of the unsigned numbers */
    const IntegerFilters *w;
    int32_t *sums; /* the result, NULL where it is y */
    uint8_t *y;
    Requantization how;
} IntegerConvolution;

/* Floats to integers of 8 bits, or back: rows of `length` elements. Scales and zero points are one number, or one for each of
   `count` rows that recur, or one for each element of a row. */
typedef struct {
    long rows, length, count;
    float *floats;
    uint8_t *bytes;
    const float *scale;
    const uint8_t *zero; /* NULL where it is 0 */
    int to_bytes, is_signed, along;
} ByteCasts;

/* Rows of n sums become integers of 8 bits: rint((sum + bias) * multiplier / divisor) + zero. */
typedef struct {
    long rows, n;
    const int32_t *sums, *bias; /* of each column; NULL where there is none: its sum with any of the others has 32 bits */
    const double *multiplier;
    const float *factor; /* multiplier / divisor */
    double divisor;
    uint8_t *y;
    Requantization how;
} SumRows;

/* y (m, n) = a (m, k) times the transpose of weights (n, k) of 4 or 8 bits, the first in the low bits, plus bias. Each block of a
   row of weights has a scale and a zero point. */
typedef struct {
    long m, n, k, block, blocks; /* block: weights of one; blocks: of a row, the last of which may reach beyond k */
    int bits;
    const float *a, *scales, *bias;
    const uint8_t *codes, *zeros; /* zeros: packed as the weights, NULL where they are in the middle of the range */
    float *y;
} BitsProduct;

/* How an operand of bytes lies beside a result of `rows` rows of `length` elements. */
typedef enum { WHOLE, SINGLE, PER_ROW, ALONG_ROW, LAYOUTS } Layout;

/* Integers of 8 bits that count from a zero point in steps of a scale; row r has element r % count, PER_ROW. */
typedef struct {
    const uint8_t *elements;
    long layout, count;
    float scale;
    int32_t zero;
    int is_signed;
} ByteOperand;

/* What two such tensors stand for is added or multiplied, and becomes such integers again. */
typedef struct {
    long rows, length;
    Join what; /* ADD or MULTIPLY */
    ByteOperand left, right;
    uint8_t *y;
    float scale;
    Requantization how;
} ByteJoin;

/* The entry of each byte, for rows of `length` bytes; those of the result are `pitch` apart. */
typedef struct {
    long rows, length, pitch;
    const uint8_t *x, *table;
    uint8_t *y;
} ByteTable;

/* The largest integer that each window sees; one group, channel and map, and batch planes. */
typedef struct {
    Geometry g;
    const uint8_t *x;
    uint8_t flip; /* 0x80 for signed ones */
    uint8_t *y;
} BytePool;

/* The mean of each row of `length` integers: rint(mean * x_scale / y_scale) + zero in 64-bit floats. */
typedef struct {
    long rows, length;
    const uint8_t *x;
    uint8_t flip;
    int32_t x_zero;
    uint8_t *y;
    double x_scale, y_scale;
    Requantization how;
} ByteMeans;

/* DynamicQuantizeLSTM with the usual activations: gates in the order input, output, forget, cell. */
typedef struct {
    long steps, directions, batch, features, hidden;
    const float *x;                     /* (steps, batch, features), strides count elements and may be anything */
    ptrdiff_t x_time, x_row, x_step;
    const unsigned char *backwards;     /* of each direction: whether time runs backwards */
    const IntegerMatrix *const *into, *const *across; /* of each direction: (features or hidden, 4 * hidden) */
    const float *into_scales, *across_scales;         /* (directions, 4 * hidden) */
    const float *bias;                  /* (directions, 8 * hidden): of the input, of the state; NULL where there is none */
    const float *initial_state, *initial_memory;      /* (directions, batch, hidden); NULL for zeros */
    float *last_state, *last_memory;
    float *outputs;                     /* (steps, directions, batch, hidden) */
} QuantizedLstm;

/* How the reset gate of a GRU lets the state through: before it meets the weights, or what they made of it. */
typedef enum { LSTM, RNN, GRU_BEFORE, GRU_AFTER } LayerKind;

/* A recurrent layer of floats. Gates stand in the order of the standard. */
typedef struct {
    LayerKind kind;
    long steps, directions, batch, features, hidden;
    const float *x;                 /* (steps, batch, features), strides count elements and may be anything */
    ptrdiff_t x_time, x_row, x_step;
    const unsigned char *backwards; /* of each direction: whether time runs backwards */
    /* Of each direction, packed: (features, gates * hidden), (hidden, gates * hidden) and, of GRU_BEFORE, whose second has
       two gates, (hidden, hidden). */
    const float *const *into, *const *across, *const *candidates;
    const float *bias; /* (directions, 2 * gates * hidden), of the input and of the state; NULL where there is none */
    const int32_t *lengths; /* of each sequence of the batch; NULL where all last to the end */
    const float *initial_state, *initial_memory; /* (directions, batch, hidden); NULL for zeros */
    float *last_state, *last_memory;             /* the same; memory of LSTM alone */
    float *outputs;                              /* (steps, directions, batch, hidden) */
    Activation activation;                       /* of RNN */
} Layer;

typedef struct {
    const char *name;
    /* 0, or -1 where there is not enough memory. */
    int (*multiply)(const Product *);
    size_t (*packed_matrix_floats)(long k, long n);
    void (*pack_matrix)(float *packed, const float *b, ptrdiff_t b_step, ptrdiff_t b_column, long k, long n);
    Method (*choose_method)(const Geometry *, int fast_math); /* fast_math: whether a less exact one will do */
    size_t (*packed_filters_floats)(const Geometry *, Method);
    /* 0; 1 where another method must do it, BY_PIXELS, as something is not finite; -1 where there is not enough memory. */
    int (*pack_filters)(float *packed, const float *w, const Geometry *, Method);
    int (*convolve)(const Convolution *, Method);
    size_t (*packed_integers_words)(long k, long n);
    /* This and the other that packs: 0, or -1 where there is not enough memory. */
    int (*pack_integers)(IntegerMatrix *, const uint8_t *b, uint8_t flip, long k, long n);
    int (*multiply_integers)(const IntegerProduct *);
    int (*quantize)(const Quantization *);
    /* Words of a map. Of the geometry, both look at channels, taps, strides and dilations alone. */
    size_t (*integer_filter_words)(const Geometry *);
    int (*pack_integer_filters)(IntegerFilters *, const uint8_t *weights, uint8_t flip, const Geometry *);
    int (*convolve_integers)(const IntegerConvolution *);
    int (*cast_bytes)(const ByteCasts *);
    int (*multiply_bits)(const BitsProduct *);
    int (*requantize_rows)(const SumRows *);
    int (*join_bytes)(const ByteJoin *);
    int (*look_up_bytes)(const ByteTable *);
    int (*pool_bytes)(const BytePool *);
    int (*mean_of_bytes)(const ByteMeans *);
    int (*run_quantized_lstm)(const QuantizedLstm *);
    int (*run_layer)(const Layer *);
    int (*pool)(const Pool *);
    void (*run_chain)(const ElementChain *);
    void (*activate)(const Activation *, const float *x, float *y, long n);
    void (*softmax)(const Rows *, int logarithm);
    void (*layer_norm)(const Rows *, int centred);
    void (*normalise_channels)(const Neighbours *);
    /* Array 1 of the nest into array 0, elements of `size` bytes. */
    void (*move)(const Nest *, long size, char *y, const char *x);
    /* 0, or 1 where an index is outside: then nothing is done. */
    int (*move_slices)(const Slices *);
    int (*move_elements)(const Picks *);
    /* Whether there is such a thing for elements of that type, and the thing itself. */
    int (*map_serves)(const Mapping *);
    void (*map)(const Mapping *);
    int (*reduce_serves)(const Reduction *);
    void (*reduce)(const Reduction *);
    int (*lines_serve)(const Lines *);
    void (*run_lines)(const Lines *);
    void (*resample)(const Resampling *);
    int (*attend)(const Attention *); /* 0, or -1 where there is not enough memory */
    int (*rotate)(const Rotation *);  /* 0, or 1 where a position is outside: then nothing is done */
} Kernels;

#endif
