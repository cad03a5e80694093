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
