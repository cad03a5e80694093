#include "bindings.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Call call;
    const Kernels *kernels;
    Attention attention;
} AttendCall;

/* The keys of an item that a query may see: from *low to *high. */
static void window_of(const Attention *a, long item, long query, long *low, long *high) {
    const long length = a->lengths ? (long)a->lengths[item] : a->keys;
    const long start = a->starts ? (long)a->starts[item] : a->offset + (a->lengths ? length : 0), place = start + query * a->step;
    *low = a->left < 0 || place < a->left ? 0 : place - a->left;
    *high = a->right < 0 || place + a->right + 1 > length ? length : place + a->right + 1;
}

static int hides_any(const Attention *a) {
    if (a->left < 0 && a->right < 0 && !a->lengths) return 0;
    for (long item = 0; item < a->batch; item++) {
        long low, high;
        window_of(a, item, 0, &low, &high);
        if (high < a->keys) return 1;
        window_of(a, item, a->queries - 1, &low, &high);
        if (low > 0) return 1;
    }
    return 0;
}

static int is_finite(const float *x, long count) {
    int32_t found = 0;
    for (long i = 0; i < count; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        found |= -((bits & 0x7F800000) == 0x7F800000);
    }
    return !found;
}

/* The same of rows (items, heads, rows, size). */
static int are_finite(const float *x, const long *shape, ptrdiff_t batch, ptrdiff_t head, ptrdiff_t row, ptrdiff_t element) {
    for (long place = 0; place < shape[0] * shape[1] * shape[2]; place++) {
        const float *first = x + place / shape[2] / shape[1] * batch + place / shape[2] % shape[1] * head + place % shape[2] * row;
        const long steps = element == 1 ? 1 : shape[3];
        for (long i = 0; i < steps; i++)
            if (!is_finite(first + i * element, shape[3] / steps)) return 0;
    }
    return 1;
}

/* Whether what is hidden adds nothing: no weights times values, nothing to minus infinity where scores get that. */
static int may_skip(const Attention *a) {
    const long items = a->v_batch ? a->batch : 1;
    if (!are_finite(a->v, (long[]){items, a->kv_heads, a->keys, a->value_size}, a->v_batch, a->v_head, a->v_row, 1)) return 0;
    return a->unseen != HIDDEN_ZERO ||
           (are_finite(a->k, (long[]){items, a->kv_heads, a->keys, a->size}, a->k_batch, a->k_head, a->k_row, a->k_step) &&
            are_finite(a->q, (long[]){a->batch, a->heads, a->queries, a->size}, a->q_batch, a->q_head, a->q_row, 1));
}

int attend_all(const Kernels *kernels, const Attention *given, int hides) {
    if (!hides || may_skip(given)) return kernels->attend(given);
    Attention a = *given;
    const long heads = given->mask && given->mask_head ? a.heads : 1;
    uint8_t *mask = calloc((size_t)a.batch * (size_t)heads * (size_t)a.queries + 1, (size_t)a.keys);
    if (!mask) return -1;
    uint8_t *seen = mask;
    for (long i = 0; i < a.batch * heads * a.queries; i++, seen += a.keys) {
        const long query = i % a.queries, head = i / a.queries % heads, item = i / a.queries / heads;
        const ptrdiff_t at = item * given->mask_batch + head * given->mask_head + query * given->mask_query;
        long low, high;
        window_of(given, item, query, &low, &high);
        for (long key = low; key < high; key++) seen[key] = given->mask ? given->mask[at + key * given->mask_key] : 1;
    }
    a.mask = mask;
    a.mask_key = 1, a.mask_query = a.keys, a.mask_head = heads > 1 ? a.queries * a.keys : 0, a.mask_batch = heads * a.queries * a.keys;
    if (!a.starts) a.lengths = NULL; /* else there are zeros behind them, and maybe nothing to add to their scores */
    a.left = a.right = -1;
    const int status = kernels->attend(&a);
    free(mask);
    return status;
}

static int perform_attend(Call *call) {
    const AttendCall *c = (AttendCall *)call;
    const Attention *a = &c->attention;
    for (long item = 0; a->lengths && item < a->batch; item++)
        if (a->lengths[item] < 0 || a->lengths[item] > a->keys) return 1;
    return attend_all(c->kernels, a, hides_any(a));
}

/* An array (batch, heads, rows, size), whose last axis lies in order where it must. */
static const Py_buffer *take_heads(Buffers *held, PyObject *object, int how, int ordered, const char *name) {
    const Py_buffer *x = take(held, object, "f", how | STRIDED, name);
    if (!x) return NULL;
    if (x->ndim == 4 && (!ordered || x->shape[3] < 2 || x->strides[3] == 4)) return x;
    PyErr_Format(PyExc_ValueError, "%s has no four axes, or its last one is not in order", name);
    return NULL;
}

/* Elements from one place of an axis to the next. */
static ptrdiff_t step(const Py_buffer *x, int axis) { return x->shape[axis] == 1 ? 0 : x->strides[axis] / x->itemsize; }

int take_mask(Buffers *held, PyObject *object, long keys, Attention *a) {
    if (object == Py_None) return 0;
    const Py_buffer *mask = take_any(held, object, STRIDED, "the mask");
    if (!mask) return -1;
    const int adds = !strcmp(mask->format, "f");
    if (!adds && strcmp(mask->format, "?")) {
        PyErr_Format(PyExc_TypeError, "the mask has elements of format %s", mask->format);
        return -1;
    }
    const Py_ssize_t shape[4] = {a->batch, a->heads, a->queries, keys};
    ptrdiff_t steps[4];
    if (!is_aligned(mask, "the mask") || nest_in(steps, mask, shape, 4)) return -1;
    for (int axis = 0; axis < 4; axis++) steps[axis] /= mask->itemsize;
    if (adds) {
        a->bias = mask->buf;
        a->bias_batch = steps[0], a->bias_head = steps[1], a->bias_query = steps[2], a->bias_key = steps[3];
    } else {
        a->mask = mask->buf;
        a->mask_batch = steps[0], a->mask_head = steps[1], a->mask_query = steps[2], a->mask_key = steps[3];
    }
    return 0;
}

void fold_heads(Attention *a) {
    const long group = a->heads / a->kv_heads;
    if (a->queries != 1 || group == 1) return;
    a->heads = a->kv_heads;
    a->queries = group;
    a->step = 0;
    a->q_row = a->q_head, a->q_head *= group;
    a->y_row = a->y_head, a->y_head *= group;
    a->bias_query = a->bias_head, a->bias_head *= group;
    a->mask_query = a->mask_head, a->mask_head *= group;
}

static int take_attention(AttendCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Attention *a = &c->attention;
    const Py_buffer *q = take_heads(held, arguments[0], 0, 1, "q");
    const Py_buffer *k = q ? take_heads(held, arguments[1], 0, 0, "k") : NULL;
    const Py_buffer *v = k ? take_heads(held, arguments[2], 0, 1, "v") : NULL;
    const Py_buffer *y = v ? take_heads(held, arguments[5], WRITTEN, 1, "out") : NULL;
    if (!y) return -1;
    *a = (Attention){.batch = (long)q->shape[0], .heads = (long)q->shape[1], .kv_heads = (long)k->shape[1],
                     .queries = (long)q->shape[2], .keys = (long)k->shape[2], .size = (long)q->shape[3],
                     .value_size = (long)v->shape[3], .step = 1, .q = q->buf, .k = k->buf, .v = v->buf, .y = y->buf};
    const int fits = (k->shape[0] == a->batch || k->shape[0] == 1) && v->shape[0] == k->shape[0] && v->shape[1] == a->kv_heads &&
                     v->shape[2] == a->keys && k->shape[3] == a->size && y->shape[0] == a->batch && y->shape[1] == a->heads &&
                     y->shape[2] == a->queries && y->shape[3] == a->value_size && a->kv_heads > 0 && a->heads % a->kv_heads == 0;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "q, k, v and out do not fit");
        return -1;
    }
    a->q_batch = step(q, 0), a->q_head = step(q, 1), a->q_row = step(q, 2);
    a->k_batch = step(k, 0), a->k_head = step(k, 1), a->k_row = step(k, 2), a->k_step = step(k, 3);
    a->v_batch = step(v, 0), a->v_head = step(v, 1), a->v_row = step(v, 2);
    a->y_batch = step(y, 0), a->y_head = step(y, 1), a->y_row = step(y, 2);
    if (k->shape[3] == 1) a->k_step = 1;
    if (take_mask(held, arguments[3], a->keys, a)) return -1;
    if (arguments[4] != Py_None) {
        const Py_buffer *lengths = take(held, arguments[4], "l", 0, "the lengths");
        if (!lengths) return -1;
        if (count_of(lengths) != a->batch) {
            PyErr_Format(PyExc_ValueError, "%zd lengths for %ld items", count_of(lengths), a->batch);
            return -1;
        }
        a->lengths = lengths->buf;
    }
    a->scale = (float)PyFloat_AsDouble(arguments[6]);
    a->softcap = (float)PyFloat_AsDouble(arguments[7]);
    a->offset = PyLong_AsLong(arguments[8]);
    a->left = PyLong_AsLong(arguments[9]);
    a->right = PyLong_AsLong(arguments[10]);
    const long unseen = PyLong_AsLong(arguments[11]), most = 1L << 40;
    if (PyErr_Occurred()) return -1;
    if (unseen < 0 || unseen > NAN_ZERO || a->offset > most || a->offset < -most || a->left > most || a->right > most) {
        PyErr_SetString(PyExc_ValueError, "the window is too wide, or unseen is no such number");
        return -1;
    }
    a->unseen = (Unseen)unseen;
    fold_heads(a);
    return 0;
}

/* attend(q, k, v, mask, lengths, out, scale, softcap, offset, left, right, unseen) */
PyObject *py_attend(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 12, "attend")) return NULL;
    AttendCall *c = BEGIN(AttendCall, perform_attend);
    if (!c) return NULL;
    c->kernels = active;
    return take_attention(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Rotation rotation;
} RotateCall;

static int perform_rotate(Call *call) {
    const RotateCall *c = (RotateCall *)call;
    return c->kernels->rotate(&c->rotation);
}

static int take_rotation(RotateCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Rotation *r = &c->rotation;
    const Py_buffer *x = take_heads(held, arguments[0], 0, 1, "x");
    const Py_buffer *cosines = x ? take(held, arguments[1], "f", 0, "the cosines") : NULL;
    const Py_buffer *sines = cosines ? take(held, arguments[2], "f", 0, "the sines") : NULL;
    const Py_buffer *y = sines ? take_heads(held, arguments[4], WRITTEN, 1, "out") : NULL;
    const Py_buffer *positions = NULL;
    if (!y || (arguments[3] != Py_None && !(positions = take(held, arguments[3], "l", STRIDED, "the positions")))) return -1;
    int fits = cosines->ndim == (positions ? 2 : 3) && sines->ndim == cosines->ndim;
    for (int axis = 0; axis < 4; axis++) fits = fits && x->shape[axis] == y->shape[axis];
    for (int axis = 0; fits && axis < cosines->ndim; axis++) fits = cosines->shape[axis] == sines->shape[axis];
    fits = fits && 2 * cosines->shape[cosines->ndim - 1] <= x->shape[3];
    *r = (Rotation){.batch = (long)x->shape[0], .heads = (long)x->shape[1], .time = (long)x->shape[2], .size = (long)x->shape[3],
                    .x = x->buf, .y = y->buf, .cosines = cosines->buf, .sines = sines->buf};
    if (fits) r->width = 2 * (long)cosines->shape[cosines->ndim - 1];
    if (fits && positions) {
        r->positions = positions->buf;
        r->rows = (long)cosines->shape[0];
        r->advance = positions->ndim == 1;
        fits = r->advance ? positions->shape[0] == 1
                          : positions->ndim == 2 && positions->shape[0] == r->batch && positions->shape[1] == r->time;
        if (fits && !r->advance) r->position_batch = step(positions, 0), r->position_time = step(positions, 1);
    } else if (fits) {
        fits = cosines->shape[0] == r->batch && cosines->shape[1] == r->time;
        r->angle_time = r->width / 2;
        r->angle_batch = r->time * r->angle_time;
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "x, the cosines, sines, positions and out do not fit");
        return -1;
    }
    r->x_batch = step(x, 0), r->x_head = step(x, 1), r->x_row = step(x, 2);
    r->y_batch = step(y, 0), r->y_head = step(y, 1), r->y_row = step(y, 2);
    r->interleaved = PyObject_IsTrue(arguments[5]);
    return 0;
}

/* rotate(x, cosines, sines, positions, out, interleaved) */
PyObject *py_rotate(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 6, "rotate")) return NULL;
    RotateCall *c = BEGIN(RotateCall, perform_rotate);
    if (!c) return NULL;
    c->kernels = active;
    return take_rotation(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
