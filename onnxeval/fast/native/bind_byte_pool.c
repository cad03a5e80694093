#include "bindings.h"

#include <math.h>
#include <string.h>

typedef struct {
    Call call;
    const Kernels *kernels;
    BytePool windows;
} Pooling;

static int perform_pooling(Call *call) {
    const Pooling *c = (Pooling *)call;
    return c->kernels->pool_bytes(&c->windows);
}

/* Reads what pool_bytes is given. -1 with an exception. */
static int take_windows(Pooling *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    BytePool *q = &call->windows;
    Geometry *g = &q->g;
    int is_signed, out_signed;
    const Py_buffer *x = take_bytes(held, arguments[0], 0, "x", &is_signed);
    const Py_buffer *out = x ? take_bytes(held, arguments[1], WRITTEN, "out", &out_signed) : NULL;
    if (!out || take_geometry(arguments + 4, g)) return -1;
    g->taps_y = PyLong_AsLong(arguments[2]);
    g->taps_x = PyLong_AsLong(arguments[3]);
    if (PyErr_Occurred()) return -1;
    if (x->ndim != 4 || out->ndim != 4 || memcmp(x->shape, out->shape, 2 * sizeof *x->shape) || !count_of(x) ||
        !count_of(out) || g->taps_y < 1 || g->taps_x < 1 || g->taps_y > INT32_MAX || g->taps_x > INT32_MAX ||
        is_signed != out_signed) {
        PyErr_SetString(PyExc_ValueError, "x, the window and out do not fit together");
        return -1;
    }
    g->groups = g->channels = g->maps = 1;
    g->batch = x->shape[0] * x->shape[1];
    g->height = x->shape[2];
    g->width = x->shape[3];
    g->rows = out->shape[2];
    g->columns = out->shape[3];
    const double height = (double)g->rows * (double)g->stride_y + (double)(g->taps_y - 1) * (double)g->dilation_y + 1;
    const double width = (double)g->columns * (double)g->stride_x + (double)(g->taps_x - 1) * (double)g->dilation_x + 1;
    if (height * width > 0x1p40 || (double)g->taps_y * (double)g->taps_x > 0x1p30) {
        PyErr_SetString(PyExc_ValueError, "the windows reach too far");
        return -1;
    }
    call->kernels = active;
    q->x = x->buf;
    q->y = out->buf;
    q->flip = is_signed ? 0x80 : 0;
    return 0;
}

/* pool_bytes(x, out, taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x, top, left): the largest of each window */
PyObject *py_pool_bytes(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 10, "pool_bytes")) return NULL;
    Pooling *c = BEGIN(Pooling, perform_pooling);
    if (!c) return NULL;
    return take_windows(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    ByteMeans means;
} Averaging;

static int perform_averaging(Call *call) {
    const Averaging *c = (Averaging *)call;
    return c->kernels->mean_of_bytes(&c->means);
}

/* Reads what mean_of_bytes is given. -1 with an exception. */
static int take_means(Averaging *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    ByteMeans *c = &call->means;
    int is_signed, out_signed;
    const Py_buffer *x = take_bytes(held, arguments[0], 0, "x", &is_signed);
    const Py_buffer *out = x ? take_bytes(held, arguments[1], WRITTEN, "out", &out_signed) : NULL;
    if (!out) return -1;
    const long x_zero = PyLong_AsLong(arguments[3]), y_zero = PyLong_AsLong(arguments[5]);
    c->x_scale = PyFloat_AsDouble(arguments[2]);
    c->y_scale = PyFloat_AsDouble(arguments[4]);
    if (PyErr_Occurred()) return -1;
    const int lowest = out_signed ? -128 : 0;
    if (x->ndim != 2 || !count_of(x) || count_of(out) != x->shape[0] || y_zero < lowest || y_zero > lowest + 255 ||
        x_zero < -128 || x_zero > 255 || !isfinite(c->x_scale) || !isfinite(c->y_scale) || c->y_scale == 0) {
        PyErr_SetString(PyExc_ValueError, "x and out, a scale or a zero point do not fit");
        return -1;
    }
    call->kernels = active;
    c->rows = x->shape[0], c->length = x->shape[1];
    c->x = x->buf, c->y = out->buf;
    c->x_zero = (int32_t)x_zero;
    c->flip = is_signed ? 0x80 : 0;
    c->how = (Requantization){.zero = (int32_t)y_zero, .lowest = lowest, .highest = lowest + 255, .is_signed = out_signed};
    return 0;
}

/* mean_of_bytes(x, out, x_scale, x_zero, y_scale, y_zero): x (rows, n), out (rows) */
PyObject *py_mean_of_bytes(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 6, "mean_of_bytes")) return NULL;
    Averaging *c = BEGIN(Averaging, perform_averaging);
    if (!c) return NULL;
    return take_means(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
