#include "bindings.h"

#include <stdlib.h>

/* Integers(b, zero_points): b (K, N) of int8 or uint8, a zero point (int32) for each column */
static PyObject *integers_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    PyObject *object, *zeros;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &zeros)) return NULL;
    Buffers held = {.count = 0};
    Integers8 *self = NULL;
    int is_signed;
    const Py_buffer *b = take_bytes(&held, object, 0, "the matrix", &is_signed);
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
    m->centred = 1;
    for (size_t j = 0; j < columns; j++) {
        m->zero[j] = ((const int32_t *)zero->buf)[j] - (is_signed ? 0 : 128);
        m->centred &= !m->zero[j];
    }
    if (active->pack_integers(m, b->buf, is_signed ? 0 : 0x80, m->k, m->n)) {
        Py_CLEAR(self);
        PyErr_NoMemory();
    }
done:
    release(&held);
    return (PyObject *)self;
}

static void integers_dealloc(Integers8 *self) {
    free(self->matrix.words);
    free(self->matrix.sums);
    free(self->matrix.zero);
    free(self->matrix.excess.starts);
    free(self->matrix.excess.places);
    free(self->matrix.excess.words);
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
