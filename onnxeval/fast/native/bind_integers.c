#include "bindings.h"

#include <stdlib.h>

/* The buffer of 8-bit integers, and what to flip in them for `is_signed` ones. */
static const Py_buffer *take_bytes(Buffers *held, PyObject *object, const char *name, int *is_signed) {
    Py_buffer probe;
    if (PyObject_GetBuffer(object, &probe, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return NULL;
    *is_signed = probe.format && probe.format[0] == 'b';
    PyBuffer_Release(&probe);
    return take(held, object, *is_signed ? "b" : "B", 0, name);
}

/* Integers(b, zero_points): b (K, N) of int8 or uint8, a zero point (int32) for each column */
static PyObject *integers_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    PyObject *object, *zeros;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &zeros)) return NULL;
    Buffers held = {.count = 0};
    Integers8 *self = NULL;
    int is_signed;
    const Py_buffer *b = take_bytes(&held, object, "the matrix", &is_signed);
    const Py_buffer *zero = b ? take(&held, zeros, "i", 0, "the zero points") : NULL;
    if (!zero) goto done;
    if (b->ndim != 2 || count_of(zero) != b->shape[1]) {
        PyErr_SetString(PyExc_ValueError, "the matrix has no two axes, or no zero point for each column");
        goto done;
    }
    self = (Integers8 *)PyType_GenericAlloc(type, 0);
    if (!self) goto done;
    IntegerMatrix *m = &self->matrix;
    interrupt_recording();
    self->kernels = active;
    m->k = b->shape[0];
    m->n = b->shape[1];
    const size_t columns = (size_t)m->n, words = active->packed_integers_words(m->k, m->n);
    m->words = aligned_alloc(64, (words * 4 + 127) / 64 * 64);
    m->sums = calloc(columns + 1, sizeof *m->sums);
    m->zero = calloc(columns + 1, sizeof *m->zero);
    if (!m->words || !m->sums || !m->zero) {
        Py_CLEAR(self);
        PyErr_NoMemory();
        goto done;
    }
    for (size_t j = 0; j < columns; j++) m->zero[j] = ((const int32_t *)zero->buf)[j] - (is_signed ? 0 : 128);
    active->pack_integers(m, b->buf, is_signed ? 0 : 0x80, m->k, m->n);
done:
    release(&held);
    return (PyObject *)self;
}

static void integers_dealloc(Integers8 *self) {
    free(self->matrix.words);
    free(self->matrix.sums);
    free(self->matrix.zero);
    free_object((PyObject *)self);
}

static PyType_Slot integers_slots[] = {
    {Py_tp_doc, (void *)"A right factor of 8-bit integers, packed once, with a zero point for each column."},
    {Py_tp_new, integers_new},
    {Py_tp_dealloc, integers_dealloc},
    {0, NULL},
};

Type IntegersType = {
    .spec = {
        .name = "onnxeval.fast._native.Integers",
        .basicsize = sizeof(Integers8),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = integers_slots,
    },
};

typedef struct {
    Call call;
    const Kernels *kernels;
    IntegerProduct product;
    const int32_t *given_zero; /* of each row, as it is given */
    int32_t zero_shift;        /* what makes it one of the unsigned numbers */
    int32_t *zero;
} MultiplyIntegers;

static int perform_multiply_integers(Call *call) {
    MultiplyIntegers *c = (MultiplyIntegers *)call;
    for (long i = 0; i < c->product.m; i++) c->zero[i] = c->given_zero[i] + c->zero_shift;
    return c->kernels->multiply_integers(&c->product);
}

/* Reads what multiply_integers is given. -1 with an exception. */
static int take_integer_product(MultiplyIntegers *call, PyObject *const *arguments) {
    if (!Py_IS_TYPE(arguments[2], IntegersType.type)) {
        PyErr_SetString(PyExc_TypeError, "b is no Integers");
        return -1;
    }
    const Integers8 *b = (const Integers8 *)arguments[2];
    hold(&call->call, arguments[2]);
    Buffers *held = &call->call.held;
    IntegerProduct *p = &call->product;
    int is_signed;
    const int scaled = arguments[5] != Py_None;
    const Py_buffer *a = take_bytes(held, arguments[0], "a", &is_signed);
    const Py_buffer *zero = a ? take(held, arguments[1], "i", 0, "the zero points of a") : NULL;
    const Py_buffer *out = zero ? take(held, arguments[3], scaled ? "f" : "i", WRITTEN, "out") : NULL;
    if (!out) return -1;
    if (a->ndim != 2 || a->shape[1] != b->matrix.k || count_of(zero) != a->shape[0] ||
        count_of(out) != a->shape[0] * b->matrix.n) {
        PyErr_SetString(PyExc_ValueError, "the shapes of a, its zero points, b and out do not fit together");
        return -1;
    }
    call->kernels = b->kernels;
    p->b = &b->matrix;
    p->m = a->shape[0];
    p->a = a->buf;
    p->flip = is_signed ? 0x80 : 0;
    if (scaled) {
        float *scale, *bias;
        p->scaled = out->buf;
        p->row_scale = (float)PyFloat_AsDouble(arguments[4]);
        if (PyErr_Occurred() || take_floats(held, arguments[5], b->matrix.n, 0, "the scales of b", &scale) ||
            take_floats(held, arguments[6], b->matrix.n, 0, "the bias", &bias))
            return -1;
        p->column_scale = scale;
        p->column_bias = bias;
    } else {
        p->sums = out->buf;
    }
    call->given_zero = zero->buf;
    call->zero_shift = is_signed ? 128 : 0;
    call->call.memory = malloc((size_t)(p->m + 1) * sizeof *call->zero);
    if (!call->call.memory) {
        PyErr_NoMemory();
        return -1;
    }
    p->a_zero = call->zero = call->call.memory;
    return 0;
}

/* multiply_integers(a, a_zero, b, out, row_scale, column_scale, bias): a (m, k) of int8 or uint8, a_zero (m) of int32;
   out (m, n) is int32, or float32 where there are scales: sums * (row_scale * column_scale) + bias */
PyObject *py_multiply_integers(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 7, "multiply_integers")) return NULL;
    MultiplyIntegers *c = BEGIN(MultiplyIntegers, perform_multiply_integers);
    if (!c) return NULL;
    return take_integer_product(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

#define MOST_DIRECTIONS 2

typedef struct {
    Call call;
    const Kernels *kernels;
    Lstm lstm;
    const float *packed[MOST_DIRECTIONS];
    const IntegerMatrix *integers[MOST_DIRECTIONS];
} LstmCall;

static int perform_lstm(Call *call) {
    const LstmCall *c = (LstmCall *)call;
    return c->kernels->run_lstm(&c->lstm);
}

/* Reads what lstm is given. -1 with an exception. */
static int take_lstm(LstmCall *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    Lstm *l = &call->lstm;
    const Py_buffer *projected = take(held, arguments[0], "f", 0, "the projected input");
    const Py_buffer *outputs = projected ? take(held, arguments[5], "f", WRITTEN, "the outputs") : NULL;
    if (!outputs) return -1;
    if (projected->ndim != 4 || outputs->ndim != 4 || !PyTuple_Check(arguments[1]) ||
        !PyBytes_Check(arguments[6]) || projected->shape[0] < 1 || projected->shape[0] > MOST_DIRECTIONS ||
        PyTuple_Size(arguments[1]) != projected->shape[0] || PyBytes_Size(arguments[6]) != projected->shape[0] ||
        outputs->shape[0] != projected->shape[1] || outputs->shape[1] != projected->shape[0] ||
        outputs->shape[2] != projected->shape[2] || projected->shape[3] != 4 * outputs->shape[3]) {
        PyErr_SetString(PyExc_ValueError, "the shapes of the projected input, the recurrences and the outputs do not fit");
        return -1;
    }
    hold(&call->call, arguments[1]);
    hold(&call->call, arguments[6]);
    l->steps = outputs->shape[0];
    l->directions = outputs->shape[1];
    l->batch = outputs->shape[2];
    l->hidden = outputs->shape[3];
    const Py_ssize_t states = l->directions * l->batch * l->hidden;
    float *scales;
    if (take_floats(held, arguments[2], l->directions * 4 * l->hidden, 0, "the scales", &scales) ||
        take_floats(held, arguments[3], states, UPDATED, "the states", &l->states) ||
        take_floats(held, arguments[4], states, UPDATED, "the memory", &l->memory))
        return -1;
    if (!l->states || !l->memory) {
        PyErr_SetString(PyExc_TypeError, "states or memory is None");
        return -1;
    }
    for (long d = 0; d < l->directions; d++) {
        PyObject *each = PyTuple_GetItem(arguments[1], d);
        long k, n;
        const Kernels *own;
        if (!scales && Py_IS_TYPE(each, MatrixType.type)) {
            const Matrix *matrix = (const Matrix *)each;
            call->packed[d] = matrix->packed, k = matrix->k, n = matrix->n, own = matrix->kernels;
        } else if (scales && Py_IS_TYPE(each, IntegersType.type)) {
            const Integers8 *matrix = (const Integers8 *)each;
            call->integers[d] = &matrix->matrix, k = matrix->matrix.k, n = matrix->matrix.n, own = matrix->kernels;
        } else {
            PyErr_SetString(PyExc_TypeError, "a recurrence is no Matrix, nor Integers with scales");
            return -1;
        }
        if (k != l->hidden || n != 4 * l->hidden || (call->kernels && call->kernels != own)) {
            PyErr_SetString(PyExc_ValueError, "a recurrence does not fit the hidden size");
            return -1;
        }
        call->kernels = own;
    }
    l->projected = projected->buf;
    l->backwards = (const unsigned char *)PyBytes_AsString(arguments[6]);
    l->outputs = outputs->buf;
    l->column_scales = scales;
    if (scales)
        l->integers = call->integers;
    else
        l->packed = call->packed;
    return 0;
}

/* lstm(projected, recurrences, scales, states, memory, outputs, backwards): a Matrix for each direction, or Integers and
   their scales; backwards is a bytes object, one byte for each direction */
PyObject *py_lstm(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 7, "lstm")) return NULL;
    LstmCall *c = BEGIN(LstmCall, perform_lstm);
    if (!c) return NULL;
    return take_lstm(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
