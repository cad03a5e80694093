#include "bindings.h"

#include <string.h>

/* The formats of the element types, in their order; bfloat16 comes as the integers of its bits. */
static const char *const formats[TYPES] = {"f", "d", "b", "B", "i", "l", "?", "e", "H"};

static int take_type(PyObject *number, ElementType *type) {
    const long given = PyLong_AsLong(number);
    if (given == -1 && PyErr_Occurred()) return -1;
    if (given < 0 || given >= TYPES) {
        PyErr_Format(PyExc_ValueError, "there is no element type %ld", given);
        return -1;
    }
    *type = (ElementType)given;
    return 0;
}

static int take_number(PyObject *number, long end, const char *what) {
    const long given = PyLong_AsLong(number);
    if (given == -1 && PyErr_Occurred()) return -1;
    if (given >= 0 && given < end) return (int)given;
    PyErr_Format(PyExc_ValueError, "there is no %s %ld", what, given);
    return -1;
}

/* Of a kernel that has nothing for these types. */
static PyObject *unknown_type(Call *call) {
    PyErr_SetString(PyExc_TypeError, "there is no such kernel for these types");
    return abandon(call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Mapping mapping;
} MapCall;

static int perform_map(Call *call) {
    const MapCall *c = (MapCall *)call;
    c->kernels->map(&c->mapping);
    return 0;
}

static int take_map(MapCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Mapping *m = &c->mapping;
    const int what = take_number(arguments[0], MAPPINGS, "function");
    if (what < 0 || take_type(arguments[1], &m->type) || take_type(arguments[2], &m->to)) return -1;
    m->what = (Mapped)what;
    m->operands = what == MAP_CAST || what == MAP_NOT ? 1 : what == MAP_WHERE ? 3 : 2;
    if (!PyTuple_Check(arguments[4]) || PyTuple_Size(arguments[4]) != m->operands) {
        PyErr_Format(PyExc_TypeError, "the operands are no tuple of %d", m->operands);
        return -1;
    }
    const Py_buffer *out = take_any(held, arguments[3], WRITTEN, "out");
    if (!out || !is_aligned(out, "out")) return -1;
    const int compares = what == MAP_EQUAL || what == MAP_BELOW || what == MAP_AT_MOST;
    const char *format = what == MAP_WHERE ? out->format : formats[what == MAP_CAST ? m->to : compares ? BOOL : m->type];
    if (strcmp(out->format, format)) {
        PyErr_Format(PyExc_TypeError, "out has elements of format %s, expected %s", out->format, format);
        return -1;
    }
    m->nest.axes = out->ndim;
    for (int axis = 0; axis < out->ndim; axis++) {
        m->nest.shape[axis] = (long)out->shape[axis];
        m->nest.steps[0][axis] = out->strides[axis];
    }
    m->arrays[0] = out->buf;
    m->sizes[0] = (long)out->itemsize;
    for (int i = 0; i < m->operands; i++) {
        const char *wanted = what != MAP_WHERE ? formats[m->type] : i ? format : "?";
        const Py_buffer *x = take(held, PyTuple_GetItem(arguments[4], i), wanted, STRIDED, "an operand");
        if (!x || nest_in(m->nest.steps[i + 1], x, out->shape, out->ndim)) return -1;
        m->arrays[i + 1] = x->buf;
        m->sizes[i + 1] = (long)x->itemsize;
    }
    return 0;
}

/* apply(what, type, to, out, operands) */
PyObject *py_apply(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 5, "apply")) return NULL;
    MapCall *c = BEGIN(MapCall, perform_map);
    if (!c) return NULL;
    c->kernels = active;
    if (take_map(c, arguments)) return abandon(&c->call);
    return active->map_serves(&c->mapping) ? conclude(&c->call) : unknown_type(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Reduction reduction;
} ReduceCall;

static int perform_reduce(Call *call) {
    const ReduceCall *c = (ReduceCall *)call;
    c->kernels->reduce(&c->reduction);
    return 0;
}

static int take_reduction(ReduceCall *c, PyObject *const *arguments) {
    Reduction *r = &c->reduction;
    const int what = take_number(arguments[0], REDUCTIONS, "reduction");
    if (what < 0 || take_type(arguments[1], &r->type)) return -1;
    r->what = (Reduced)what;
    const Py_buffer *x = take(&c->call.held, arguments[2], formats[r->type], STRIDED, "x");
    const Py_buffer *out = x ? take(&c->call.held, arguments[3], formats[r->type], WRITTEN, "out") : NULL;
    const unsigned long axes = PyLong_AsUnsignedLong(arguments[4]);
    if (!out || PyErr_Occurred()) return -1;
    Py_ssize_t step = out->itemsize, count = 1;
    r->nest.axes = x->ndim;
    for (int axis = x->ndim - 1; axis >= 0; axis--) {
        const int reduced = (int)(axes >> axis & 1);
        r->nest.shape[axis] = (long)x->shape[axis];
        r->nest.steps[0][axis] = reduced ? 0 : step;
        r->nest.steps[1][axis] = x->strides[axis];
        if (reduced) continue;
        step *= x->shape[axis];
        count *= x->shape[axis];
    }
    if (count != count_of(out)) {
        PyErr_Format(PyExc_ValueError, "out has %zd elements, expected %zd", count_of(out), count);
        return -1;
    }
    r->x = x->buf;
    r->y = out->buf;
    return 0;
}

/* reduce(what, type, x, out, axes): bit i of axes says that axis i gives way. */
PyObject *py_reduce(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 5, "reduce")) return NULL;
    ReduceCall *c = BEGIN(ReduceCall, perform_reduce);
    if (!c) return NULL;
    c->kernels = active;
    if (take_reduction(c, arguments)) return abandon(&c->call);
    return active->reduce_serves(&c->reduction) ? conclude(&c->call) : unknown_type(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Lines lines;
} LinesCall;

static int perform_lines(Call *call) {
    const LinesCall *c = (LinesCall *)call;
    c->kernels->run_lines(&c->lines);
    return 0;
}

static int take_lines(LinesCall *c, PyObject *const *arguments) {
    Lines *l = &c->lines;
    const int search = l->what == LINES_SEARCH;
    if (take_type(arguments[0], &l->type)) return -1;
    const Py_buffer *x = take(&c->call.held, arguments[1], formats[l->type], 0, "x");
    const Py_buffer *out = x ? take(&c->call.held, arguments[2], search ? "l" : formats[l->type], WRITTEN, "out") : NULL;
    const long axis = PyLong_AsLong(arguments[3]);
    const int one = PyObject_IsTrue(arguments[4]), other = PyObject_IsTrue(arguments[5]);
    if (!out || PyErr_Occurred()) return -1;
    if (axis < 0 || axis >= x->ndim) {
        PyErr_Format(PyExc_ValueError, "x has no axis %ld", axis);
        return -1;
    }
    *(search ? &l->least : &l->exclusive) = one;
    *(search ? &l->last : &l->reverse) = other;
    l->outer = l->inner = 1;
    l->n = (long)x->shape[axis];
    for (int i = 0; i < x->ndim; i++)
        if (i != axis) *(i < axis ? &l->outer : &l->inner) *= (long)x->shape[i];
    const Py_ssize_t wanted = search ? (Py_ssize_t)l->outer * l->inner : count_of(x);
    if (count_of(out) != wanted || (search && !l->n)) {
        PyErr_Format(PyExc_ValueError, "out has %zd elements, expected %zd", count_of(out), wanted);
        return -1;
    }
    l->x = x->buf;
    l->y = out->buf;
    return 0;
}

static PyObject *run_lines(LineWork what, PyObject *const *arguments) {
    LinesCall *c = BEGIN(LinesCall, perform_lines);
    if (!c) return NULL;
    c->kernels = active;
    c->lines.what = what;
    if (take_lines(c, arguments)) return abandon(&c->call);
    return active->lines_serve(&c->lines) ? conclude(&c->call) : unknown_type(&c->call);
}

/* search(type, x, out, axis, least, last) */
PyObject *py_search(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    return expect_arguments(given, 6, "search") ? NULL : run_lines(LINES_SEARCH, arguments);
}

/* add_up(type, x, out, axis, exclusive, reverse) */
PyObject *py_add_up(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    return expect_arguments(given, 6, "add_up") ? NULL : run_lines(LINES_ADD_UP, arguments);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Resampling resampling;
} ResampleCall;

static int perform_resample(Call *call) {
    const ResampleCall *c = (ResampleCall *)call;
    const Resampling *r = &c->resampling;
    for (long i = 0; i < r->taps * r->length; i++)
        if (r->places[i] < 0 || r->places[i] >= r->size) return 1;
    c->kernels->resample(r);
    return 0;
}

static int take_resampling(ResampleCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Resampling *r = &c->resampling;
    const Py_buffer *x = take(held, arguments[0], "f", 0, "x"), *out = x ? take(held, arguments[1], "f", WRITTEN, "out") : NULL;
    const Py_buffer *places = out ? take(held, arguments[2], "i", 0, "the places") : NULL;
    const Py_buffer *weights = places ? take(held, arguments[3], "f", 0, "the weights") : NULL;
    const long axis = PyLong_AsLong(arguments[4]);
    if (!weights || PyErr_Occurred()) return -1;
    int fits = axis >= 0 && axis < x->ndim && out->ndim == x->ndim && places->ndim == 2 && weights->ndim == 2;
    for (int i = 0; fits && i < 2; i++) fits = places->shape[i] == weights->shape[i];
    for (int i = 0; fits && i < x->ndim; i++) fits = out->shape[i] == (i == axis ? places->shape[1] : x->shape[i]);
    if (!fits || places->shape[0] < 1) {
        PyErr_SetString(PyExc_ValueError, "x, out, places and weights do not fit");
        return -1;
    }
    *r = (Resampling){.outer = 1, .size = (long)x->shape[axis], .inner = 1, .length = (long)places->shape[1], .taps = (long)places->shape[0]};
    for (int i = 0; i < x->ndim; i++)
        if (i != axis) *(i < axis ? &r->outer : &r->inner) *= (long)x->shape[i];
    r->x = x->buf;
    r->y = out->buf;
    r->places = places->buf;
    r->weights = weights->buf;
    return 0;
}

/* resample(x, out, places, weights, axis): int32 and float32 (taps, length) */
PyObject *py_resample(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 5, "resample")) return NULL;
    ResampleCall *c = BEGIN(ResampleCall, perform_resample);
    if (!c) return NULL;
    c->kernels = active;
    return take_resampling(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
