/* What moves, maps and reduces arrays of any element type is asked to do. */
#ifndef ONNXEVAL_ARRAYS_H
#define ONNXEVAL_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

#include "nest.h"

/* Indices of 8 bytes or 4. */
typedef struct {
    const void *numbers;
    int wide;
} Indices;

/* Slices of `bytes` of data (outer, sizes..., bytes) at tuples of `depth` indices: `count` for each outer place, or the same
   for all. They are taken from the data into `slices`, or put into it. */
typedef struct {
    long outer, count, depth, bytes, sizes[MOST_AXES];
    int shared, puts;
    Indices indices;
    char *data, *slices;
} Slices;

/* The same of single elements. The nest is of the elements, of the data without the axis that the indices are on, and of
   the indices; that axis has `size` places, `step` bytes apart. */
typedef struct {
    Nest nest;
    long bytes, size;
    ptrdiff_t step;
    int puts;
    Indices indices;
    char *data, *elements;
} Picks;

/* Element types, where more than one is served. */
typedef enum { FLOAT32, FLOAT64, INT8, UINT8, INT32, INT64, BOOL, FLOAT16, BFLOAT16, TYPES } ElementType;

/* What `map` makes of the elements of one operand or two, or of a condition and two. */
typedef enum {
    MAP_ADD,
    MAP_SUBTRACT,
    MAP_MULTIPLY,
    MAP_DIVIDE, /* floats alone */
    MAP_GREATER, /* NaN where either is, as below */
    MAP_LESS,
    MAP_EQUAL, /* comparisons: bool */
    MAP_BELOW,
    MAP_AT_MOST,
    MAP_AND, /* of bool, as the next three */
    MAP_OR,
    MAP_XOR,
    MAP_NOT,
    MAP_WHERE,
    MAP_CAST,
    MAPPINGS
} Mapped;

/* Array 0 is the result, whose elements lie beside each other; the others broadcast into it. */
typedef struct {
    Nest nest;
    Mapped what;
    ElementType type, to; /* of the operands; what they are cast to */
    int operands;
    long sizes[MOST_NESTED]; /* bytes of an element of each array */
    char *arrays[MOST_NESTED];
} Mapping;

typedef enum {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_SQUARES,  /* the sum of */
    REDUCE_ABSOLUTE, /* the sum of absolute values */
    REDUCE_NORM,     /* the root of the sum of squares */
    REDUCE_GREATEST,
    REDUCE_LEAST,
    REDUCTIONS
} Reduced;

/* The nest is of the result, which stands still along the axes that give way, and of what is reduced. */
typedef struct {
    Nest nest;
    Reduced what;
    ElementType type;
    const char *x;
    char *y;
} Reduction;

/* Along the middle axis of (outer, n, inner): int64 (outer, inner) places of extremes, or sums so far. */
typedef enum { LINES_SEARCH, LINES_ADD_UP } LineWork;
typedef struct {
    LineWork what;
    ElementType type;
    long outer, n, inner;
    const char *x;
    char *y;
    int least, last;        /* of a search: for the least element; the last one of equals */
    int exclusive, reverse; /* of sums: of the elements before alone; from the back */
} Lines;

/* Along the middle axis of (outer, size, inner): a new one of `length` places, each the sum of `taps` elements at `places` times
   `weights`, both (taps, length). */
typedef struct {
    long outer, size, inner, length, taps;
    const int32_t *places;
    const float *weights, *x;
    float *y;
} Resampling;

#endif
