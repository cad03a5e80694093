#include "bindings.h"

#include <stdlib.h>

static PyObject *matrix_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    PyObject *object;
    if (!PyArg_ParseTuple(arguments, "O", &object)) return NULL;
    Buffers held = {.count = 0};
    Matrix *self = NULL;
    const Py_buffer *b = take(&held, object, "f", STRIDED, "the matrix");
    if (!b) goto done;
    if (b->ndim != 2) {
        PyErr_Format(PyExc_ValueError, "the matrix has rank %d", b->ndim);
        goto done;
    }
    self = (Matrix *)PyType_GenericAlloc(type, 0);
    if (!self) goto done;
    interrupt_recording();
    self->kernels = active;
    self->k = b->shape[0];
    self->n = b->shape[1];
    size_t bytes = (active->packed_matrix_floats(self->k, self->n) * sizeof(float) + 63) / 64 * 64;
    self->packed = aligned_alloc(64, bytes ? bytes : 64);
    if (!self->packed) {
        Py_CLEAR(self);
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    active->pack_matrix(self->packed, b->buf, b->strides[0] / 4, b->strides[1] / 4, self->k, self->n);
    Py_END_ALLOW_THREADS
done:
    release(&held);
    return (PyObject *)self;
}

static void matrix_dealloc(Matrix *self) {
    free(self->packed);
    free_object((PyObject *)self);
}

static PyType_Slot matrix_slots[] = {
    {Py_tp_doc, (void *)"A right factor of many products, packed once."},
    {Py_tp_new, matrix_new},
    {Py_tp_dealloc, matrix_dealloc},
    {0, NULL},
};

Type MatrixType = {
    .spec = {
        .name = "onnxeval.fast._native.Matrix",
        .basicsize = sizeof(Matrix),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = matrix_slots,
    },
};

/* Where each product of the batch begins in one factor, as that broadcasts to `shape`. -1 where it does not. */
static int fill_offsets(ptrdiff_t *offsets, long batch, const Py_buffer *factor, const Py_ssize_t *shape, int axes) {
    ptrdiff_t steps[MOST_AXES];
    const int own = factor->ndim - 2;
    if (own > axes) return -1;
    for (int axis = 0; axis < axes; axis++) {
        const int at = axis - (axes - own);
        const Py_ssize_t size = at < 0 ? 1 : factor->shape[at];
        if (size != 1 && size != shape[axis]) return -1;
        steps[axis] = size == 1 ? 0 : factor->strides[at] / 4;
    }
    for (long item = 0; item < batch; item++) {
        ptrdiff_t offset = 0;
        long rest = item;
        for (int axis = axes - 1; axis >= 0; axis--) {
            offset += rest % shape[axis] * steps[axis];
            rest /= shape[axis];
        }
        offsets[item] = offset;
    }
    return 0;
}

/* Whether the rows of all products lie in a like a single matrix's. */
static int is_one_matrix(const Py_buffer *a) {
    Py_ssize_t step = a->strides[a->ndim - 2] * a->shape[a->ndim - 2];
    for (int axis = a->ndim - 3; axis >= 0; axis--) {
        if (a->shape[axis] == 1) continue; /* whose stride means nothing */
        if (a->strides[axis] != step) return 0;
        step *= a->shape[axis];
    }
    return 1;
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Product product;
} Multiply;

static int perform_multiply(Call *call) {
    const Multiply *c = (Multiply *)call;
    return c->kernels->multiply(&c->product);
}

/* Reads what multiply is given. -1 with an exception. */
static int take_product(Multiply *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    Product *p = &call->product;
    const Py_buffer *b = NULL;
    const Py_buffer *a = take(held, arguments[0], "f", STRIDED, "a");
    const Py_buffer *out = a ? take(held, arguments[2], "f", WRITTEN, "out") : NULL;
    if (!out) return -1;
    Py_ssize_t depth, columns;
    call->kernels = active;
    if (Py_IS_TYPE(arguments[1], MatrixType.type)) {
        const Matrix *matrix = (const Matrix *)arguments[1];
        hold(&call->call, arguments[1]);
        p->packed = matrix->packed;
        call->kernels = matrix->kernels;
        depth = matrix->k;
        columns = matrix->n;
    } else {
        b = take(held, arguments[1], "f", STRIDED, "b");
        if (!b) return -1;
        if (b->ndim < 2) goto misfit;
        depth = b->shape[b->ndim - 2];
        columns = b->shape[b->ndim - 1];
    }
    if (a->ndim < 2 || out->ndim < 2) goto misfit;
    const int axes = out->ndim - 2;
    p->m = a->shape[a->ndim - 2];
    p->k = a->shape[a->ndim - 1];
    p->n = columns;
    p->batch = 1;
    if (p->k != depth || out->shape[axes] != p->m || out->shape[axes + 1] != p->n) goto misfit;
    for (int axis = 0; axis < axes; axis++) p->batch *= out->shape[axis];
    float *bias[2], *residual;
    if (take_floats(held, arguments[3], p->m, 0, "the row bias", &bias[0]) ||
        take_floats(held, arguments[4], p->n, 0, "the column bias", &bias[1]) ||
        take_floats(held, arguments[5], count_of(out), 0, "the residual", &residual) ||
        take_activation(arguments + 6, &p->epilogue.activation))
        return -1;
    p->epilogue.row_bias = bias[0];
    p->epilogue.column_bias = bias[1];
    p->epilogue.residual = residual;
    p->a = a->buf;
    p->c = out->buf;
    p->a_row = a->strides[a->ndim - 2] / 4;
    p->a_step = a->strides[a->ndim - 1] / 4;
    if (b) {
        p->b = b->buf;
        p->b_step = b->strides[b->ndim - 2] / 4;
        p->b_column = b->strides[b->ndim - 1] / 4;
    }
    const long items = p->batch;
    ptrdiff_t *offsets = calloc((size_t)(items ? 2 * items : 1), sizeof *offsets);
    if (!offsets) {
        PyErr_NoMemory();
        return -1;
    }
    call->call.memory = offsets;
    if (items > 0) {
        if (fill_offsets(offsets, items, a, out->shape, axes)) goto misfit;
        if (b && fill_offsets(offsets + items, items, b, out->shape, axes)) goto misfit;
    }
    const int shared = !b || b->ndim == 2;
    if (items > 1 && shared && a->ndim == out->ndim && !bias[0] && is_one_matrix(a)) {
        p->m *= items;
        p->batch = 1;
    }
    p->a_offsets = offsets;
    p->b_offsets = offsets + items;
    return 0;
misfit:
    PyErr_SetString(PyExc_ValueError, "the shapes of the factors and of out do not fit together");
    return -1;
}

/* multiply(a, b, out, row_bias, column_bias, residual, activation, alpha, beta) */
PyObject *py_multiply(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 9, "multiply")) return NULL;
    Multiply *c = BEGIN(Multiply, perform_multiply);
    if (!c) return NULL;
    return take_product(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
