/* The table of one tier. */
#include "tier.h"
#include "tables.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const Kernels NAMED(kernels) = {
    .name = TEXT(TIER),
    .multiply = NAMED(multiply),
    .packed_matrix_floats = NAMED(packed_matrix_floats),
    .pack_matrix = NAMED(pack_matrix),
    .activate = NAMED(activate),
    .softmax = NAMED(softmax),
    .layer_norm = NAMED(layer_norm),
};
