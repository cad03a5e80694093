#include "bindings.h"

#include <stdlib.h>
#include <string.h>

/* The weights of a convolution of 8-bit integers, packed once. */
typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    Geometry g; /* channels, taps, strides and dilations; rows and columns are 1 */
    int scaled; /* whether the sums become integers of 8 bits */
    IntegerFilters filters;
} IntegerWeights;

#define MINIMUM_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM_OF(a, b) ((a) > (b) ? (a) : (b))
#define MOST_DEPTH 33025 /* sums of so many products of distances fit into 32 bits */

/* Everything that has as many elements as there are maps, or words. -1 where there is no memory. */
static int make_room(IntegerWeights *self) {
    IntegerFilters *f = &self->filters;
    const size_t maps = (size_t)f->maps, each = self->kernels->integer_filter_words(&self->g), words = maps * each;
    f->words = aligned_alloc(64, (words * 4 + 127) / 64 * 64);
    f->ones = malloc((each + 1) * sizeof *f->ones);
    f->sums = malloc(maps * sizeof *f->sums);
    f->zero = malloc(maps * sizeof *f->zero);
    f->bias = malloc(maps * sizeof *f->bias);
    f->multiplier = malloc(maps * sizeof *f->multiplier);
    f->factor = malloc(maps * sizeof *f->factor);
    return f->words && f->ones && f->sums && f->zero && f->bias && f->multiplier && f->factor ? 0 : -1;
}

/* Reads what there is for each map. -1 with an exception. */
static int take_maps(Buffers *held, IntegerWeights *self, PyObject *const *given, int is_signed) {
    IntegerFilters *f = &self->filters;
    const Py_buffer *zero = take(held, given[0], "i", 0, "the zero points");
    const Py_buffer *bias = zero ? take(held, given[1], "i", 0, "the bias") : NULL;
    const Py_buffer *multiplier = bias && self->scaled ? take(held, given[2], "d", 0, "the multipliers") : bias;
    if (!multiplier) return -1;
    if (count_of(zero) != f->maps || count_of(bias) != f->maps || count_of(multiplier) != f->maps) {
        PyErr_SetString(PyExc_ValueError, "there is not a zero point, a bias and a multiplier for each map");
        return -1;
    }
    memcpy(f->bias, bias->buf, (size_t)f->maps * sizeof *f->bias);
    for (long map = 0; map < f->maps; map++) {
        f->zero[map] = ((const int32_t *)zero->buf)[map] - (is_signed ? 0 : 128);
        f->any_zero |= f->zero[map] != 0;
        f->multiplier[map] = self->scaled ? ((const double *)multiplier->buf)[map] : 1;
        f->factor[map] = (float)(f->multiplier[map] / f->divisor);
    }
    return 0;
}

/* IntegerFilters(weights, groups, steps, zero_points, bias, multiplier, divisor): weights (groups * maps, channels, taps y,
   taps x) of int8 or uint8; steps are (stride_y, stride_x, dilation_y, dilation_x); zero_points and bias int32, multiplier
   float64 or None, each with one for each map */
static PyObject *integer_filters_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    PyObject *object, *given[3];
    Geometry g = {.batch = 1, .rows = 1, .columns = 1};
    double divisor;
    if (!PyArg_ParseTuple(arguments, "Ol(llll)OOOd", &object, &g.groups, &g.stride_y, &g.stride_x, &g.dilation_y, &g.dilation_x,
                          &given[0], &given[1], &given[2], &divisor))
        return NULL;
    Buffers held = {.count = 0};
    int is_signed;
    const Py_buffer *w = take_bytes(&held, object, 0, "the weights", &is_signed);
    IntegerWeights *self = w ? (IntegerWeights *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self) goto done;
    if (w->ndim != 4 || !count_of(w) || g.groups < 1 || w->shape[0] % g.groups || count_of(w) / w->shape[0] > MOST_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "the weights have no four axes, hold nothing or too much, or are no such groups");
        Py_CLEAR(self);
        goto done;
    }
    const long least = MINIMUM_OF(MINIMUM_OF(g.stride_y, g.stride_x), MINIMUM_OF(g.dilation_y, g.dilation_x));
    const long most = MAXIMUM_OF(MAXIMUM_OF(g.stride_y, g.stride_x), MAXIMUM_OF(g.dilation_y, g.dilation_x));
    if (least < 1 || most > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a stride or dilation is out of range");
        Py_CLEAR(self);
        goto done;
    }
    g.channels = w->shape[1];
    g.taps_y = w->shape[2];
    g.taps_x = w->shape[3];
    interrupt_recording();
    self->kernels = active;
    self->g = g;
    self->scaled = given[2] != Py_None;
    IntegerFilters *f = &self->filters;
    f->maps = w->shape[0];
    f->depth = count_of(w) / w->shape[0];
    f->divisor = divisor;
    if (make_room(self)) {
        PyErr_NoMemory();
        Py_CLEAR(self);
    } else if (take_maps(&held, self, given, is_signed)) {
        Py_CLEAR(self);
    } else if (active->pack_integer_filters(f, w->buf, is_signed ? 0 : 0x80, &g)) {
        PyErr_NoMemory();
        Py_CLEAR(self);
    }
done:
    release(&held);
    return (PyObject *)self;
}

static void integer_filters_dealloc(IntegerWeights *self) {
    IntegerFilters *f = &self->filters;
    free(f->words);
    free(f->ones);
    free(f->sums);
    free(f->zero);
    free(f->bias);
    free(f->multiplier);
    free(f->factor);
    free(f->excess.starts);
    free(f->excess.places);
    free(f->excess.words);
    free_object((PyObject *)self);
}

static PyType_Slot integer_filters_slots[] = {
    {Py_tp_doc, (void *)"The weights of a convolution of 8-bit integers in so many groups, packed once."},
    {Py_tp_new, integer_filters_new},
    {Py_tp_dealloc, integer_filters_dealloc},
    {0, NULL},
};

Type IntegerFiltersType = {
    .spec = {
        .name = "onnxeval.fast._native.IntegerFilters",
        .basicsize = sizeof(IntegerWeights),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = integer_filters_slots,
    },
};

typedef struct {
    Call call;
    const Kernels *kernels;
    IntegerConvolution convolution;
    const uint8_t *zero; /* of x, NULL where it is 0 */
    int is_signed;
} ConvolveIntegers;

static int perform_convolve_integers(Call *call) {
    ConvolveIntegers *c = (ConvolveIntegers *)call;
    const uint8_t zero = c->zero ? *c->zero : 0;
    c->convolution.x_zero = c->is_signed ? (int8_t)zero + 128 : zero;
    return c->kernels->convolve_integers(&c->convolution);
}

/* Reads what convolve_integers is given. -1 with an exception. */
static int take_integer_convolution(ConvolveIntegers *call, PyObject *const *arguments) {
    if (!Py_IS_TYPE(arguments[2], IntegerFiltersType.type)) {
        PyErr_SetString(PyExc_TypeError, "the weights are no IntegerFilters");
        return -1;
    }
    const IntegerWeights *w = (const IntegerWeights *)arguments[2];
    hold(&call->call, arguments[2]);
    Buffers *held = &call->call.held;
    IntegerConvolution *q = &call->convolution;
    Geometry *g = &q->g;
    int zero_signed, out_signed = 0;
    const Py_buffer *x = take_bytes(held, arguments[0], 0, "x", &call->is_signed);
    const Py_buffer *out = !x ? NULL
                           : w->scaled ? take_bytes(held, arguments[3], WRITTEN, "out", &out_signed)
                                       : take(held, arguments[3], "i", WRITTEN, "out");
    if (!out || take_geometry(arguments + 7, g)) return -1;
    if (g->stride_y != w->g.stride_y || g->stride_x != w->g.stride_x || g->dilation_y != w->g.dilation_y ||
        g->dilation_x != w->g.dilation_x) {
        PyErr_SetString(PyExc_ValueError, "the filters were packed for other strides or dilations");
        return -1;
    }
    if (arguments[1] != Py_None) {
        const Py_buffer *zero = take_bytes(held, arguments[1], 0, "the zero point of x", &zero_signed);
        if (!zero) return -1;
        if (count_of(zero) != 1 || zero_signed != call->is_signed) {
            PyErr_SetString(PyExc_ValueError, "the zero point of x is not one number of the type of x");
            return -1;
        }
        call->zero = zero->buf;
    }
    if (x->ndim != 4 || out->ndim != 4 || x->shape[1] != w->g.channels * w->g.groups || out->shape[1] != w->filters.maps ||
        out->shape[0] != x->shape[0] || !count_of(x) || !count_of(out)) {
        PyErr_SetString(PyExc_ValueError, "the shapes of x, the weights and out do not fit together");
        return -1;
    }
    int32_t *const numbers[] = {&q->how.zero, &q->how.lowest, &q->how.highest};
    for (int i = 0; i < 3; i++) {
        const long value = PyLong_AsLong(arguments[4 + i]);
        if (value == -1 && PyErr_Occurred()) return -1;
        if (value < (out_signed ? -128 : 0) || value > (out_signed ? 127 : 255)) {
            PyErr_Format(PyExc_ValueError, "%ld is none of the integers that out has", value);
            return -1;
        }
        *numbers[i] = (int32_t)value;
    }
    q->how.is_signed = out_signed;
    q->how.is_bounded = q->how.highest - q->how.lowest < 255;
    g->batch = x->shape[0];
    g->groups = w->g.groups;
    g->channels = w->g.channels;
    g->maps = w->filters.maps / w->g.groups;
    g->height = x->shape[2];
    g->width = x->shape[3];
    g->taps_y = w->g.taps_y;
    g->taps_x = w->g.taps_x;
    g->rows = out->shape[2];
    g->columns = out->shape[3];
    /* Bytes of the input with what lies around it */
    const double height = (double)(g->rows - 1) * (double)g->stride_y + (double)(g->taps_y - 1) * (double)g->dilation_y + 1;
    const double width = (double)g->columns * (double)g->stride_x + (double)(g->taps_x - 1) * (double)g->dilation_x + 1;
    if (height * width * (double)(g->batch * g->groups * g->channels) > 0x1p40) {
        PyErr_SetString(PyExc_ValueError, "the windows reach too far");
        return -1;
    }
    call->kernels = w->kernels;
    q->x = x->buf;
    q->flip = call->is_signed ? 0x80 : 0;
    q->w = &w->filters;
    if (w->scaled)
        q->y = out->buf;
    else
        q->sums = out->buf;
    return 0;
}

/* convolve_integers(x, x_zero, filters, out, y_zero, lowest, highest, stride_y, stride_x, dilation_y, dilation_x, top, left): x of
   int8 or uint8, x_zero an array of one element of that type or None; out is int32, or of 8 bits where the filters have
   multipliers: rint((sum + bias) * multiplier / divisor) + y_zero, from lowest to highest */
PyObject *py_convolve_integers(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 13, "convolve_integers")) return NULL;
    ConvolveIntegers *c = BEGIN(ConvolveIntegers, perform_convolve_integers);
    if (!c) return NULL;
    return take_integer_convolution(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
