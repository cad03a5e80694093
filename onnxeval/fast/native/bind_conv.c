#include "bindings.h"

#include <stdlib.h>
#include <string.h>

/* The weights of a convolution, packed when a method first asks for them. */
typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    long groups;
    Buffers held;
    const Py_buffer *w; /* (groups * maps, channels, taps y, taps x) */
    float *packed[METHODS];
    int fast_math; /* whether less exact methods will do */
    long chain;    /* as in Convolution */
    int unusual;   /* whether some are not finite */
} Filters;

static PyObject *filters_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    PyObject *object;
    long groups;
    int fast_math = 0;
    long chain = 0;
    if (!PyArg_ParseTuple(arguments, "Ol|pl", &object, &groups, &fast_math, &chain)) return NULL;
    Filters *self = (Filters *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    interrupt_recording();
    self->kernels = active;
    self->groups = groups;
    self->fast_math = fast_math;
    self->chain = chain;
    self->w = take(&self->held, object, "f", 0, "the weights");
    if (self->w && (self->w->ndim != 4 || !count_of(self->w) || groups < 1 || self->w->shape[0] % groups)) {
        PyErr_SetString(PyExc_ValueError, "the weights have no four axes, hold nothing, or are no such number of groups");
        Py_CLEAR(self);
    } else if (!self->w) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void filters_dealloc(Filters *self) {
    for (int method = 0; method < METHODS; method++) free(self->packed[method]);
    release(&self->held);
    free_object((PyObject *)self);
}

static PyType_Slot filters_slots[] = {
    {Py_tp_doc, (void *)"The weights of a convolution in so many groups, packed when they are first used; for less exact methods, too."},
    {Py_tp_new, filters_new},
    {Py_tp_dealloc, filters_dealloc},
    {0, NULL},
};

Type FiltersType = {
    .spec = {
        .name = "onnxeval.fast._native.Filters",
        .basicsize = sizeof(Filters),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = filters_slots,
    },
};

/* The weights as the method wants them, which may become another one; NULL with an exception where there is no memory. The
   GIL is held: nobody else packs them meanwhile. */
static const float *weights_for(Filters *self, const Geometry *g, Method *method) {
    if (self->unusual && (*method == BY_TILES || *method == BY_LARGE_TILES || *method == BY_CHANNEL)) *method = BY_PIXELS;
    if (!self->packed[*method]) {
        const size_t bytes = (self->kernels->packed_filters_floats(g, *method) * sizeof(float) + 63) / 64 * 64;
        float *packed = aligned_alloc(64, bytes ? bytes : 64);
        const int status = packed ? self->kernels->pack_filters(packed, self->w->buf, g, *method) : -1;
        if (status) free(packed);
        if (status > 0) {
            self->unusual = 1;
            return weights_for(self, g, method);
        }
        if (status < 0) {
            PyErr_NoMemory();
            return NULL;
        }
        self->packed[*method] = packed;
    }
    return self->packed[*method];
}

int take_geometry(PyObject *const *arguments, Geometry *g) {
    long *const targets[] = {&g->stride_y, &g->stride_x, &g->dilation_y, &g->dilation_x, &g->top, &g->left};
    for (int i = 0; i < 6; i++) {
        const long value = PyLong_AsLong(arguments[i]);
        if (value == -1 && PyErr_Occurred()) return -1;
        if (value < (i < 4) || value > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "a stride, dilation or padding is %ld", value);
            return -1;
        }
        *targets[i] = value;
    }
    return 0;
}

typedef struct {
    Call call;
    Filters *filters;
    Method method;
    Convolution convolution;
} Convolve;

static int perform_convolve(Call *call) {
    Convolve *c = (Convolve *)call;
    const Kernels *kernels = c->filters->kernels;
    const int status = kernels->convolve(&c->convolution, c->method);
    if (status <= 0) return status;
    /* What is convolved is not finite. Another time it may be: the call stays what it is. */
    Convolution other = c->convolution;
    Method method = BY_PIXELS;
    const PyGILState_STATE state = PyGILState_Ensure();
    other.weights = weights_for(c->filters, &other.g, &method);
    if (!other.weights) PyErr_Clear(); /* whoever called says so */
    PyGILState_Release(state);
    return other.weights ? kernels->convolve(&other, method) : -1;
}

/* Reads what convolve is given. -1 with an exception. */
static int take_convolution(Convolve *call, PyObject *const *arguments) {
    if (!Py_IS_TYPE(arguments[1], FiltersType.type)) {
        PyErr_SetString(PyExc_TypeError, "the weights are no Filters");
        return -1;
    }
    Filters *filters = call->filters = (Filters *)arguments[1];
    hold(&call->call, arguments[1]);
    Buffers *held = &call->call.held;
    Convolution *q = &call->convolution;
    Geometry *g = &q->g;
    const Py_buffer *x = take(held, arguments[0], "f", 0, "x");
    const Py_buffer *out = x ? take(held, arguments[2], "f", WRITTEN, "out") : NULL;
    if (!out || take_geometry(arguments + 8, g)) return -1;
    const Py_ssize_t *w = filters->w->shape;
    if (x->ndim != 4 || out->ndim != 4 || x->shape[1] != w[1] * filters->groups || out->shape[1] != w[0] ||
        out->shape[0] != x->shape[0]) {
        PyErr_SetString(PyExc_ValueError, "the shapes of x, the weights and out do not fit together");
        return -1;
    }
    if (!count_of(x) || !count_of(out)) {
        PyErr_SetString(PyExc_ValueError, "x or out holds nothing");
        return -1;
    }
    g->batch = x->shape[0];
    g->groups = filters->groups;
    g->channels = w[1];
    g->maps = w[0] / filters->groups;
    g->height = x->shape[2];
    g->width = x->shape[3];
    g->taps_y = w[2];
    g->taps_x = w[3];
    g->rows = out->shape[2];
    g->columns = out->shape[3];
    if (g->width == 1 && g->taps_x == 1 && g->columns == 1 && !g->left) { /* one column: the lanes go along it */
        g->width = g->height, g->taps_x = g->taps_y, g->columns = g->rows, g->left = g->top;
        g->stride_x = g->stride_y, g->dilation_x = g->dilation_y;
        g->height = g->taps_y = g->rows = g->stride_y = g->dilation_y = 1;
        g->top = 0;
    }
    float *bias, *residual;
    if (take_floats(held, arguments[3], w[0], 0, "the bias", &bias) ||
        take_floats(held, arguments[4], count_of(out), 0, "the residual", &residual) ||
        take_activation(arguments + 5, &q->epilogue.activation))
        return -1;
    q->epilogue.row_bias = bias;
    q->epilogue.residual = residual;
    q->x = x->buf;
    q->y = out->buf;
    q->chain = filters->chain;
    call->method = filters->kernels->choose_method(g, filters->fast_math);
    q->weights = weights_for(filters, g, &call->method);
    return q->weights ? 0 : -1;
}

/* convolve(x, filters, out, bias, residual, activation, alpha, beta, stride_y, stride_x, dilation_y, dilation_x, top, left) */
PyObject *py_convolve(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 14, "convolve")) return NULL;
    Convolve *c = BEGIN(Convolve, perform_convolve);
    if (!c) return NULL;
    return take_convolution(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Pool windows;
} Pooling;

static int perform_pool(Call *call) {
    const Pooling *c = (Pooling *)call;
    return c->kernels->pool(&c->windows);
}

/* Reads what pool is given. -1 with an exception. */
static int take_pool(Pooling *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    Pool *p = &call->windows;
    Geometry *g = &p->g;
    const Py_buffer *x = take(held, arguments[0], "f", 0, "x");
    const Py_buffer *out = x ? take(held, arguments[1], "f", WRITTEN, "out") : NULL;
    if (!out || take_geometry(arguments + 6, g)) return -1;
    g->taps_y = PyLong_AsLong(arguments[4]);
    g->taps_x = PyLong_AsLong(arguments[5]);
    if (PyErr_Occurred()) return -1;
    if (x->ndim != 4 || out->ndim != 4 || memcmp(x->shape, out->shape, 2 * sizeof *x->shape) || !count_of(x) ||
        !count_of(out) || g->taps_y < 1 || g->taps_x < 1 || g->taps_y > INT32_MAX || g->taps_x > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the shapes of x, the window and out do not fit together");
        return -1;
    }
    g->batch = x->shape[0] * x->shape[1];
    g->height = x->shape[2];
    g->width = x->shape[3];
    g->rows = out->shape[2];
    g->columns = out->shape[3];
    float *counts[2];
    if (take_floats(held, arguments[2], g->rows, 0, "the row counts", &counts[0]) ||
        take_floats(held, arguments[3], g->columns, 0, "the column counts", &counts[1]))
        return -1;
    if (!counts[0] != !counts[1]) {
        PyErr_SetString(PyExc_TypeError, "there are counts of one axis alone");
        return -1;
    }
    p->row_counts = counts[0];
    p->column_counts = counts[1];
    p->x = x->buf;
    p->y = out->buf;
    return 0;
}

typedef struct {
    Call call;
    Maxima maxima;
} MaximaCall;

static int perform_maxima(Call *call) {
    search_maxima(&((MaximaCall *)call)->maxima);
    return 0;
}

static int take_maxima(MaximaCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Maxima *m = &c->maxima;
    const Py_buffer *x = take(held, arguments[0], "f", 0, "x");
    const Py_buffer *out = x ? take(held, arguments[1], "f", WRITTEN, "out") : NULL;
    const Py_buffer *places = out ? take(held, arguments[2], "l", WRITTEN, "the places") : NULL;
    if (!places) return -1;
    int fits = x->ndim == 4 && out->ndim == 4 && places->ndim == 4 && x->shape[0] == out->shape[0];
    for (int axis = 0; fits && axis < 4; axis++) fits = places->shape[axis] == out->shape[axis];
    for (int axis = 0; fits && axis < 3; axis++) {
        WindowAxis *windows = &m->axes[axis];
        windows->size = (long)x->shape[axis + 1];
        windows->windows = (long)out->shape[axis + 1];
        if (!PyArg_ParseTuple(arguments[3 + axis], "llll", &windows->taps, &windows->stride, &windows->dilation, &windows->begin))
            return -1;
        fits = windows->taps > 0 && windows->stride > 0 && windows->dilation > 0 && windows->begin >= 0 && windows->taps <= INT32_MAX &&
               windows->stride <= INT32_MAX && windows->dilation <= INT32_MAX && windows->begin <= INT32_MAX;
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "x, the windows, out and the places do not fit together");
        return -1;
    }
    m->planes = (long)x->shape[0];
    m->x = x->buf;
    m->y = out->buf;
    m->places = places->buf;
    m->by_columns = PyObject_IsTrue(arguments[6]);
    return 0;
}

/* search_maxima(x, out, places, of_first, of_second, of_third, by_columns): of four axes, of the last three of which are told taps,
   stride, dilation and the padding before */
PyObject *py_search_maxima(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 7, "search_maxima")) return NULL;
    MaximaCall *c = BEGIN(MaximaCall, perform_maxima);
    if (!c) return NULL;
    return take_maxima(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

/* pool(x, out, row_counts, column_counts, taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x, top, left): x and out of
   four axes; the maximum where there are no counts */
PyObject *py_pool(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 12, "pool")) return NULL;
    Pooling *c = BEGIN(Pooling, perform_pool);
    if (!c) return NULL;
    c->kernels = active;
    return take_pool(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
