/* The table of one tier. */
#include "tier.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const Kernels NAMED(kernels) = {
    .name = TEXT(TIER),
    .multiply = NAMED(multiply),
    .packed_matrix_floats = NAMED(packed_matrix_floats),
    .pack_matrix = NAMED(pack_matrix),
    .choose_method = NAMED(choose_method),
    .packed_filters_floats = NAMED(packed_filters_floats),
    .pack_filters = NAMED(pack_filters),
    .convolve = NAMED(convolve),
    .packed_integers_words = NAMED(packed_integers_words),
    .pack_integers = NAMED(pack_integers),
    .multiply_integers = NAMED(multiply_integers),
    .quantize = NAMED(quantize),
    .run_quantized_lstm = NAMED(run_quantized_lstm),
    .run_layer = NAMED(run_layer),
    .pool = NAMED(pool_planes),
    .run_chain = NAMED(run_chain),
    .activate = NAMED(activate),
    .softmax = NAMED(softmax),
    .layer_norm = NAMED(layer_norm),
    .move = NAMED(move),
    .move_slices = NAMED(move_slices),
    .move_elements = NAMED(move_elements),
    .map_serves = NAMED(map_serves),
    .map = NAMED(map),
    .reduce_serves = NAMED(reduce_serves),
    .reduce = NAMED(reduce),
    .lines_serve = NAMED(lines_serve),
    .run_lines = NAMED(run_lines),
    .resample = NAMED(resample),
    .attend = NAMED(attend),
};
