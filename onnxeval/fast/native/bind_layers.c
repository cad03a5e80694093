#include "bindings.h"

#define MOST_DIRECTIONS 2

/* The packed matrices (k, n) of each direction. -1 with an exception where they are not there. */
static int take_matrices(PyObject *object, long directions, long k, long n, const Kernels **kernels, const float **packed) {
    if (!PyTuple_Check(object) || PyTuple_Size(object) != directions) {
        PyErr_SetString(PyExc_TypeError, "the weights are no tuple with a Matrix for each direction");
        return -1;
    }
    for (long d = 0; d < directions; d++) {
        PyObject *each = PyTuple_GetItem(object, d);
        const Matrix *matrix = (const Matrix *)each;
        if (!Py_IS_TYPE(each, MatrixType.type) || matrix->k != k || matrix->n != n || (*kernels && *kernels != matrix->kernels)) {
            PyErr_Format(PyExc_ValueError, "the weights are no Matrix (%ld, %ld)", k, n);
            return -1;
        }
        *kernels = matrix->kernels;
        packed[d] = matrix->packed;
    }
    return 0;
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Layer layer;
    const float *into[MOST_DIRECTIONS], *across[MOST_DIRECTIONS], *candidates[MOST_DIRECTIONS];
} LayerCall;

static int perform_layer(Call *call) {
    const LayerCall *c = (LayerCall *)call;
    return c->kernels->run_layer(&c->layer);
}

/* Reads what run_layer is given. -1 with an exception. */
static int take_layer(LayerCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Layer *l = &c->layer;
    const long kind = PyLong_AsLong(arguments[0]);
    if (kind == -1 && PyErr_Occurred()) return -1;
    const Py_buffer *x = take(held, arguments[1], "f", STRIDED, "the input");
    const Py_buffer *outputs = x ? take(held, arguments[8], "f", WRITTEN, "the outputs") : NULL;
    if (!outputs) return -1;
    if (kind < 0 || kind > GRU_AFTER || x->ndim != 3 || outputs->ndim != 4 || !PyBytes_Check(arguments[11]) ||
        outputs->shape[0] != x->shape[0] || outputs->shape[2] != x->shape[1] || outputs->shape[1] < 1 ||
        outputs->shape[1] > MOST_DIRECTIONS || PyBytes_Size(arguments[11]) != outputs->shape[1] || !count_of(x) ||
        !count_of(outputs)) {
        PyErr_SetString(PyExc_ValueError, "the shapes of the input and the outputs and the directions do not fit");
        return -1;
    }
    l->kind = (LayerKind)kind;
    l->steps = x->shape[0];
    l->batch = x->shape[1];
    l->features = x->shape[2];
    l->directions = outputs->shape[1];
    l->hidden = outputs->shape[3];
    const long gates = kind == LSTM ? 4 : kind == RNN ? 1 : 3, size = l->directions * l->batch * l->hidden;
    const long together = (kind == GRU_BEFORE ? 2 : gates) * l->hidden;
    if (take_matrices(arguments[2], l->directions, l->features, gates * l->hidden, &c->kernels, c->into) ||
        take_matrices(arguments[3], l->directions, l->hidden, together, &c->kernels, c->across) ||
        (kind == GRU_BEFORE &&
         take_matrices(arguments[4], l->directions, l->hidden, l->hidden, &c->kernels, c->candidates)))
        return -1;
    float *bias, *initial_state, *initial_memory = NULL;
    if (take_floats(held, arguments[5], l->directions * 2 * gates * l->hidden, 0, "the bias", &bias) ||
        take_floats(held, arguments[6], size, 0, "the first state", &initial_state) ||
        take_floats(held, arguments[9], size, WRITTEN, "the last state", &l->last_state) ||
        (kind == LSTM && take_floats(held, arguments[7], size, 0, "the first memory", &initial_memory)) ||
        (kind == LSTM && take_floats(held, arguments[10], size, WRITTEN, "the last memory", &l->last_memory)) ||
        take_activation(arguments + 12, &l->activation))
        return -1;
    if (arguments[15] != Py_None) {
        const Py_buffer *lengths = take(held, arguments[15], "i", 0, "the lengths");
        if (!lengths) return -1;
        if (count_of(lengths) != l->batch) {
            PyErr_SetString(PyExc_ValueError, "there is no length for each sequence");
            return -1;
        }
        l->lengths = lengths->buf;
    }
    if (!l->last_state || (kind == LSTM && !l->last_memory)) {
        PyErr_SetString(PyExc_TypeError, "the last state or memory is None");
        return -1;
    }
    for (int matrices = 2; matrices <= 4; matrices++) hold(&c->call, arguments[matrices]);
    hold(&c->call, arguments[11]);
    l->x = x->buf;
    l->x_time = x->strides[0] / 4;
    l->x_row = x->strides[1] / 4;
    l->x_step = x->strides[2] / 4;
    l->backwards = (const unsigned char *)PyBytes_AsString(arguments[11]);
    l->into = c->into;
    l->across = c->across;
    l->candidates = c->candidates;
    l->bias = bias;
    l->initial_state = initial_state;
    l->initial_memory = initial_memory;
    l->outputs = outputs->buf;
    return 0;
}

/* run_layer(kind, x, into, across, candidates, bias, initial_state, initial_memory, outputs, last_state, last_memory,
   backwards, activation, alpha, beta, lengths): matrices are tuples of a Matrix for each direction, candidates are of a GRU whose
   reset gate comes before them; backwards is a bytes object, one byte for each direction; the activation is of RNN;
   lengths are of int32, None where all sequences last to the end */
PyObject *py_run_layer(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 16, "run_layer")) return NULL;
    LayerCall *c = BEGIN(LayerCall, perform_layer);
    if (!c) return NULL;
    return take_layer(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
