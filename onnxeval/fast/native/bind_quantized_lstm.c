#include "bindings.h"

#define MOST_DIRECTIONS 2

typedef struct {
    Call call;
    const Kernels *kernels;
    QuantizedLstm lstm;
    const IntegerMatrix *into[MOST_DIRECTIONS], *across[MOST_DIRECTIONS];
} QuantizedLstmCall;

static int perform(Call *call) {
    const QuantizedLstmCall *c = (QuantizedLstmCall *)call;
    return c->kernels->run_quantized_lstm(&c->lstm);
}

/* The matrix of each direction, (k, n). -1 with an exception. */
static int take_matrices(QuantizedLstmCall *c, PyObject *tuple, long k, long n, const IntegerMatrix **matrices) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != c->lstm.directions) goto unfit;
    hold(&c->call, tuple);
    for (long d = 0; d < c->lstm.directions; d++) {
        const Integers8 *each = (const Integers8 *)PyTuple_GetItem(tuple, d);
        if (!Py_IS_TYPE((PyObject *)each, IntegersType.type) || each->matrix.k != k || each->matrix.n != n) goto unfit;
        if (c->kernels && c->kernels != each->kernels) goto unfit;
        c->kernels = each->kernels;
        matrices[d] = &each->matrix;
    }
    return 0;
unfit:
    PyErr_Format(PyExc_ValueError, "expected %ld Integers of %ld rows and %ld columns, packed by one tier",
                 c->lstm.directions, k, n);
    return -1;
}

static int take_arguments(QuantizedLstmCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    QuantizedLstm *l = &c->lstm;
    const Py_buffer *x = take(held, arguments[0], "f", STRIDED, "x");
    const Py_buffer *outputs = x ? take(held, arguments[8], "f", WRITTEN, "the outputs") : NULL;
    if (!outputs) return -1;
    if (x->ndim != 3 || outputs->ndim != 4 || !PyBytes_Check(arguments[11]) || outputs->shape[0] != x->shape[0] ||
        outputs->shape[2] != x->shape[1] || outputs->shape[1] < 1 || outputs->shape[1] > MOST_DIRECTIONS ||
        PyBytes_Size(arguments[11]) != outputs->shape[1]) {
        PyErr_SetString(PyExc_ValueError, "the shapes of x, the outputs and the directions do not fit together");
        return -1;
    }
    const ptrdiff_t element = (ptrdiff_t)sizeof(float);
    l->x = x->buf;
    l->x_time = x->strides[0] / element, l->x_row = x->strides[1] / element, l->x_step = x->strides[2] / element;
    l->steps = x->shape[0], l->batch = x->shape[1], l->features = x->shape[2];
    l->directions = outputs->shape[1], l->hidden = outputs->shape[3];
    l->outputs = outputs->buf;
    hold(&c->call, arguments[11]);
    l->backwards = (const unsigned char *)PyBytes_AsString(arguments[11]);
    const Py_ssize_t width = l->directions * 4 * l->hidden, states = l->directions * l->batch * l->hidden;
    float *into_scales, *across_scales, *bias, *state, *memory;
    if (take_matrices(c, arguments[1], l->features, 4 * l->hidden, c->into) ||
        take_matrices(c, arguments[2], l->hidden, 4 * l->hidden, c->across) ||
        take_floats(held, arguments[3], width, 0, "the scales of the input's weights", &into_scales) ||
        take_floats(held, arguments[4], width, 0, "the scales of the recurrence", &across_scales) ||
        take_floats(held, arguments[5], 2 * width, 0, "the bias", &bias) ||
        take_floats(held, arguments[6], states, 0, "the initial state", &state) ||
        take_floats(held, arguments[7], states, 0, "the initial memory", &memory) ||
        take_floats(held, arguments[9], states, WRITTEN, "the last state", &l->last_state) ||
        take_floats(held, arguments[10], states, WRITTEN, "the last memory", &l->last_memory))
        return -1;
    if (!into_scales || !across_scales || !l->last_state || !l->last_memory) {
        PyErr_SetString(PyExc_TypeError, "scales or last states are None");
        return -1;
    }
    l->into = c->into, l->across = c->across;
    l->into_scales = into_scales, l->across_scales = across_scales;
    l->bias = bias, l->initial_state = state, l->initial_memory = memory;
    return 0;
}

/* quantized_lstm(x, into, across, into_scales, across_scales, bias, initial_state, initial_memory, outputs, last_state,
   last_memory, backwards): Integers for each direction, scales for each of their columns; bias and initial states may be
   None; backwards is a bytes object, one byte for each direction */
PyObject *py_quantized_lstm(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 12, "quantized_lstm")) return NULL;
    QuantizedLstmCall *c = BEGIN(QuantizedLstmCall, perform);
    if (!c) return NULL;
    return take_arguments(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
