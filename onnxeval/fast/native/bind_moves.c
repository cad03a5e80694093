#include "bindings.h"

#include <string.h>

/* How an array lies beside a result of that shape, as it broadcasts into it. -1 with an exception where it does not. */
int nest_in(ptrdiff_t *steps, const Py_buffer *array, const Py_ssize_t *shape, int axes) {
    const int before = axes - array->ndim;
    if (before < 0) goto unlike;
    for (int axis = 0; axis < axes; axis++) {
        const Py_ssize_t size = axis < before ? 1 : array->shape[axis - before];
        if (size != 1 && size != shape[axis]) goto unlike;
        steps[axis] = size == 1 ? 0 : array->strides[axis - before];
    }
    return 0;
unlike:
    PyErr_SetString(PyExc_ValueError, "an array does not broadcast into the result");
    return -1;
}

/* An array of elements of any kind that may be moved, like `like` where that is given. */
static const Py_buffer *take_movable(Buffers *held, PyObject *object, int how, const Py_buffer *like, const char *name) {
    const Py_buffer *view = take_any(held, object, how | STRIDED, name);
    if (!view) return NULL;
    if (like && (strcmp(view->format, like->format) || view->itemsize != like->itemsize)) {
        PyErr_Format(PyExc_TypeError, "%s has elements of format %s, expected %s", name, view->format, like->format);
        return NULL;
    }
    if (view->itemsize > 16 || (view->itemsize & (view->itemsize - 1))) {
        PyErr_Format(PyExc_TypeError, "%s has elements of %zd bytes", name, view->itemsize);
        return NULL;
    }
    return view;
}

typedef struct {
    Call call;
    const Kernels *kernels;
    int count;
    long size;
    struct {
        Nest nest;
        char *y;
        const char *x;
    } moves[MOST_BUFFERS - 1];
} MoveCall;

static int perform_moves(Call *call) {
    const MoveCall *c = (MoveCall *)call;
    for (int i = 0; i < c->count; i++) c->kernels->move(&c->moves[i].nest, c->size, c->moves[i].y, c->moves[i].x);
    return 0;
}

static int add_move(MoveCall *c, const Py_buffer *out, char *y, const Py_buffer *x, const Py_ssize_t *shape) {
    Nest *nest = &c->moves[c->count].nest;
    nest->axes = out->ndim;
    for (int axis = 0; axis < out->ndim; axis++) {
        nest->shape[axis] = shape[axis];
        nest->steps[0][axis] = out->strides[axis];
    }
    c->moves[c->count].y = y;
    c->moves[c->count].x = x->buf;
    c->count++;
    return nest_in(nest->steps[1], x, shape, out->ndim);
}

/* copy(x, out): x broadcasts into out. */
PyObject *py_copy(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 2, "copy")) return NULL;
    MoveCall *c = BEGIN(MoveCall, perform_moves);
    if (!c) return NULL;
    const Py_buffer *x = take_movable(&c->call.held, arguments[0], 0, NULL, "x");
    const Py_buffer *out = x ? take_movable(&c->call.held, arguments[1], WRITTEN, x, "out") : NULL;
    if (!out || add_move(c, out, out->buf, x, out->shape)) return abandon(&c->call);
    c->kernels = active;
    c->size = (long)x->itemsize;
    return conclude(&c->call);
}

/* concat(xs, out, axis): a tuple of arrays, one after the other. */
PyObject *py_concat(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 3, "concat")) return NULL;
    MoveCall *c = BEGIN(MoveCall, perform_moves);
    if (!c) return NULL;
    const Py_buffer *out = take_movable(&c->call.held, arguments[1], WRITTEN, NULL, "out");
    const long axis = PyLong_AsLong(arguments[2]);
    if (!out || (axis == -1 && PyErr_Occurred())) return abandon(&c->call);
    const Py_ssize_t count = PyTuple_Check(arguments[0]) ? PyTuple_Size(arguments[0]) : -1;
    if (count < 0 || count > MOST_BUFFERS - 1 || axis < 0 || axis >= out->ndim) {
        PyErr_SetString(PyExc_ValueError, "the arrays or the axis of concat are no such");
        return abandon(&c->call);
    }
    Py_ssize_t shape[MOST_AXES], start = 0;
    memcpy(shape, out->shape, (size_t)out->ndim * sizeof *shape);
    for (Py_ssize_t i = 0; i < count; i++) {
        const Py_buffer *x = take_movable(&c->call.held, PyTuple_GetItem(arguments[0], i), 0, out, "an array");
        if (!x) return abandon(&c->call);
        const int fits = x->ndim == out->ndim && x->shape[axis] <= out->shape[axis] - start;
        if (fits) shape[axis] = x->shape[axis];
        if (!fits || add_move(c, out, (char *)out->buf + start * out->strides[axis], x, shape)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an array does not fit the result");
            return abandon(&c->call);
        }
        start += shape[axis];
    }
    if (start != out->shape[axis]) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not fill the result");
        return abandon(&c->call);
    }
    c->kernels = active;
    c->size = (long)out->itemsize;
    return conclude(&c->call);
}

/* Indices of 32 or 64 bits. -1 with an exception where they are none. */
static const Py_buffer *take_indices(Buffers *held, PyObject *object, Indices *indices) {
    const Py_buffer *view = take_any(held, object, 0, "the indices");
    if (!view) return NULL;
    if (strlen(view->format) != 1 || !strchr("il", view->format[0])) {
        PyErr_Format(PyExc_TypeError, "the indices have elements of format %s", view->format);
        return NULL;
    }
    *indices = (Indices){view->buf, view->itemsize == 8};
    return view;
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Slices slices;
} SlicesCall;

static int perform_slices(Call *call) {
    const SlicesCall *c = (SlicesCall *)call;
    return c->kernels->move_slices(&c->slices);
}

static int take_slices(SlicesCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Slices *s = &c->slices;
    const long batch = PyLong_AsLong(arguments[3]);
    s->shared = PyObject_IsTrue(arguments[4]);
    s->puts = PyObject_IsTrue(arguments[5]);
    if (PyErr_Occurred()) return -1;
    const Py_buffer *data = take_any(held, arguments[0], s->puts ? UPDATED : 0, "the data");
    const Py_buffer *indices = data ? take_indices(held, arguments[1], &s->indices) : NULL;
    const Py_buffer *slices = indices ? take_any(held, arguments[2], s->puts ? 0 : WRITTEN, "the slices") : NULL;
    if (!slices) return -1;
    int fits = !strcmp(data->format, slices->format) && batch >= 0 && batch < data->ndim && (s->shared || batch < indices->ndim);
    s->depth = !fits ? 0 : s->shared ? 1 : (long)indices->shape[indices->ndim - 1];
    fits = fits && s->depth > 0 && s->depth <= data->ndim - batch;
    if (fits) {
        s->outer = s->count = 1;
        s->bytes = (long)data->itemsize;
        for (int axis = 0; axis < data->ndim; axis++) {
            const long size = (long)data->shape[axis];
            if (axis < batch) s->outer *= size;
            else if (axis < batch + s->depth) s->sizes[axis - batch] = size;
            else s->bytes *= size;
            fits = fits && (axis >= batch || s->shared || size == indices->shape[axis]);
        }
        const int last = s->shared ? indices->ndim : indices->ndim - 1;
        for (int axis = s->shared ? 0 : (int)batch; axis < last; axis++) s->count *= (long)indices->shape[axis];
        /* of no bytes where nothing is to be moved: products of sizes do not overflow then, as the arrays are there */
        fits = fits && slices->len == (Py_ssize_t)s->outer * s->count * s->bytes;
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "data, indices and slices do not fit");
        return -1;
    }
    s->data = data->buf;
    s->slices = slices->buf;
    return 0;
}

/* move_slices(data, indices, slices, batch, shared, puts) */
PyObject *py_move_slices(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 6, "move_slices")) return NULL;
    SlicesCall *c = BEGIN(SlicesCall, perform_slices);
    if (!c) return NULL;
    c->kernels = active;
    return take_slices(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Picks picks;
} PicksCall;

static int perform_picks(Call *call) {
    const PicksCall *c = (PicksCall *)call;
    return c->kernels->move_elements(&c->picks);
}

static int take_picks(PicksCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Picks *p = &c->picks;
    const long axis = PyLong_AsLong(arguments[3]);
    p->puts = PyObject_IsTrue(arguments[4]);
    if (PyErr_Occurred()) return -1;
    const Py_buffer *data = take_movable(held, arguments[0], p->puts ? UPDATED : 0, NULL, "the data");
    const Py_buffer *indices = data ? take_indices(held, arguments[1], &p->indices) : NULL;
    const Py_buffer *elements = indices ? take_movable(held, arguments[2], p->puts ? 0 : WRITTEN, data, "the elements") : NULL;
    if (!elements) return -1;
    int fits = data->ndim == indices->ndim && data->ndim == elements->ndim && axis >= 0 && axis < data->ndim;
    for (int i = 0; fits && i < data->ndim; i++)
        fits = indices->shape[i] == elements->shape[i] && (i == axis || indices->shape[i] <= data->shape[i]);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "data, indices and elements do not fit");
        return -1;
    }
    Nest *n = &p->nest;
    n->axes = data->ndim;
    ptrdiff_t step = indices->itemsize;
    for (int i = data->ndim - 1; i >= 0; i--) {
        n->shape[i] = (long)indices->shape[i];
        n->steps[0][i] = elements->strides[i];
        n->steps[1][i] = i == axis ? 0 : data->strides[i];
        n->steps[2][i] = step;
        step *= indices->shape[i];
    }
    p->bytes = (long)data->itemsize;
    p->size = (long)data->shape[axis];
    p->step = data->strides[axis];
    p->data = data->buf;
    p->elements = elements->buf;
    return 0;
}

/* move_elements(data, indices, elements, axis, puts) */
PyObject *py_move_elements(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 5, "move_elements")) return NULL;
    PicksCall *c = BEGIN(PicksCall, perform_picks);
    if (!c) return NULL;
    c->kernels = active;
    return take_picks(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
