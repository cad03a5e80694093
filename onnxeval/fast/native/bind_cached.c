/* Attention over a cache that takes in the new keys and values first. */
#include "bindings.h"

#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define FEW_FLOATS (1L << 15) /* of a cache that is copied without waking another thread */

/* TokenRows (batch, time, heads of one size), which may be parts of longer ones. */
typedef struct {
    const float *first;
    long batch, time;
} TokenRows;

typedef struct {
    Call call;
    const Kernels *kernels;
    Attention attention;      /* of all heads, as they are before `fold_heads` */
    Rotation rotation;        /* of queries, where they turn */
    TokenRows q, k, v;
    const int32_t *last;      /* of each item of the batch: the number of its last token */
    const int64_t *given;     /* positions (batch, time), NULL where they follow from the tokens */
    const float *past[2];     /* (batch, kv_heads, past_rows, size) */
    float *present[2];        /* (batch, kv_heads, keys, size) */
    const float *cosines;     /* NULL where nothing turns */
    long tokens, past_rows, window;
    int causal;
    int64_t *lengths, *starts, *positions; /* (batch), (batch), (batch, time) */
    float *turned;                         /* (batch, heads, time, size) */
} CachedCall;

/* How many tokens each item has, where its queries begin, and their positions. 1 where that contradicts the cache. */
static int place_tokens(const CachedCall *c) {
    const long time = c->attention.queries;
    for (long item = 0; item < c->attention.batch; item++) {
        const int64_t after = (int64_t)c->last[item] + 1, past = after < time ? 0 : after - time;
        if (after < 1 || after > c->tokens || past > c->past_rows) return 1;
        c->lengths[item] = after;
        c->starts[item] = past;
        for (long i = 0; i < time; i++) {
            int64_t position = past + i;
            if (c->given && time == c->tokens) position = c->given[0] > INT64_MAX - time ? -1 : c->given[0] + i;
            else if (c->given) position = c->given[item * time + i];
            c->positions[item * time + i] = i < after ? position : 0;
        }
    }
    return 0;
}

/* What one head keeps of keys or of values: what was there, what is new, and zeros. */
static void keep_task(void *context, long ticket) {
    const CachedCall *c = context;
    const Attention *a = &c->attention;
    const int which = (int)(ticket % 2);
    const long row = ticket / 2, item = row / a->kv_heads, head = row % a->kv_heads, size = a->size;
    const long before = (long)c->starts[item], after = (long)c->lengths[item];
    const TokenRows *new = which ? &c->v : &c->k;
    const float *x = new->first + item * new->batch + head * size;
    float *to = c->present[which] + row * a->keys * size;
    if (before) memcpy(to, c->past[which] + row * c->past_rows * size, (size_t)(before * size) * sizeof(float));
    for (long i = before; i < after; i++, x += new->time) memcpy(to + i * size, x, (size_t)size * sizeof(float));
    memset(to + after * size, 0, (size_t)((a->keys - after) * size) * sizeof(float));
}

static int turn(const CachedCall *c) {
    if (c->kernels->rotate(&c->rotation)) return 1;
    const Attention *a = &c->attention;
    for (long item = 0; item < a->batch; item++) {
        Rotation keys = c->rotation;
        keys.batch = 1;
        keys.heads = a->kv_heads;
        keys.time = (long)(c->lengths[item] - c->starts[item]);
        keys.positions += item * a->queries;
        keys.x = c->k.first + item * c->k.batch;
        keys.x_row = c->k.time;
        keys.y = c->present[0] + (item * a->kv_heads * a->keys + c->starts[item]) * a->size;
        keys.y_head = a->keys * a->size;
        keys.y_row = a->size;
        if (c->kernels->rotate(&keys)) return 1;
    }
    return 0;
}

static int perform_cached(Call *call) {
    CachedCall *c = (CachedCall *)call;
    Attention a = c->attention;
    if (place_tokens(c)) return 1;
    const long rows = 2 * a.batch * a.kv_heads;
    if (rows * a.keys * a.size <= FEW_FLOATS)
        for (long row = 0; row < rows; row++) keep_task(c, row);
    else
        pool_run(keep_task, c, rows);
    if (c->cosines && turn(c)) return 1;
    const int hides = (c->causal && a.queries > 1) || c->window > 0; /* behind the last token are zeros */
    fold_heads(&a);
    return attend_all(c->kernels, &a, hides);
}

/* An array of axes of these sizes, or NULL where there is none. -1 with an exception. */
static int take_sized(Buffers *held, PyObject *object, const char *format, int how, int axes, const long *sizes, const char *name,
                      const void **first) {
    *first = NULL;
    if (object == Py_None) return 0;
    const Py_buffer *view = take(held, object, format, how, name);
    if (!view) return -1;
    int fits = view->ndim == axes;
    for (int axis = 0; fits && axis < axes; axis++) fits = view->shape[axis] == sizes[axis];
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "%s does not fit", name);
        return -1;
    }
    *first = view->buf;
    return 0;
}

/* What turns queries and keys. -1 with an exception. */
static int take_turns(CachedCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Rotation *r = &c->rotation;
    const Attention *a = &c->attention;
    const void *positions;
    if (take_sized(held, arguments[2], "l", 0, 2, (long[]){a->batch, a->queries}, "the positions", &positions)) return -1;
    c->given = positions;
    if (arguments[0] == Py_None) return 0;
    const Py_buffer *cosines = take(held, arguments[0], "f", 0, "the cosines");
    const Py_buffer *sines = cosines ? take(held, arguments[1], "f", 0, "the sines") : NULL;
    if (!sines) return -1;
    if (cosines->ndim != 2 || count_of(sines) != count_of(cosines) || 2 * cosines->shape[1] > a->size) {
        PyErr_SetString(PyExc_ValueError, "the cosines and sines do not fit");
        return -1;
    }
    c->cosines = cosines->buf;
    *r = (Rotation){.batch = a->batch, .heads = a->heads, .time = a->queries, .size = a->size,
                    .width = 2 * (long)cosines->shape[1], .rows = (long)cosines->shape[0], .cosines = cosines->buf,
                    .sines = sines->buf, .x = c->q.first, .x_batch = c->q.batch, .x_head = a->size, .x_row = c->q.time};
    r->position_batch = a->queries;
    r->position_time = 1;
    r->y_row = a->size;
    r->y_head = a->queries * a->size;
    r->y_batch = a->heads * r->y_head;
    return 0;
}

/* Room for what is found out about the tokens, and for queries that turned. -1 with an exception. */
static int make_room(CachedCall *c) {
    Attention *a = &c->attention;
    const size_t tokens = (size_t)a->batch * (size_t)(a->queries + 2), floats = c->cosines ? (size_t)(a->batch * c->rotation.y_batch) : 0;
    c->lengths = c->call.memory = malloc(tokens * sizeof(int64_t) + floats * sizeof(float));
    if (!c->lengths) {
        PyErr_NoMemory();
        return -1;
    }
    c->starts = c->lengths + a->batch;
    c->positions = c->starts + a->batch;
    a->lengths = c->lengths;
    a->starts = c->starts;
    if (!c->cosines) return 0;
    c->rotation.positions = c->positions;
    a->q = c->rotation.y = (float *)(c->lengths + tokens);
    a->q_batch = c->rotation.y_batch, a->q_head = c->rotation.y_head, a->q_row = a->size;
    return 0;
}

static int take_cached(CachedCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Attention *a = &c->attention;
    const Py_buffer *y = take(held, arguments[10], "f", WRITTEN, "out");
    const Py_buffer *keys = y ? take(held, arguments[11], "f", WRITTEN, "the present keys") : NULL;
    const Py_buffer *values = keys ? take(held, arguments[12], "f", WRITTEN, "the present values") : NULL;
    if (!values) return -1;
    int fits = y->ndim == 3 && keys->ndim == 4 && values->ndim == 4 && count_of(y) && count_of(keys);
    for (int axis = 0; fits && axis < 4; axis++) fits = keys->shape[axis] == values->shape[axis];
    fits = fits && y->shape[0] == keys->shape[0] && y->shape[2] % (keys->shape[1] * keys->shape[3]) == 0;
    c->tokens = PyLong_AsLong(arguments[15]);
    if (PyErr_Occurred()) return -1;
    if (!fits || c->tokens < 0 || c->tokens > keys->shape[2]) {
        PyErr_SetString(PyExc_ValueError, "out and the present do not fit");
        return -1;
    }
    c->present[0] = keys->buf, c->present[1] = values->buf;
    const long size = (long)keys->shape[3], groups = (long)keys->shape[1], time = (long)y->shape[1], length = (long)keys->shape[2];
    *a = (Attention){.batch = (long)y->shape[0], .heads = (long)y->shape[2] / size, .kv_heads = groups, .queries = time,
                     .keys = length, .size = size, .value_size = size, .step = 1, .k = keys->buf, .v = values->buf, .y = y->buf,
                     .k_step = 1, .unseen = UNSEEN_ZERO};
    a->k_row = a->v_row = size, a->k_head = a->v_head = length * size, a->k_batch = a->v_batch = groups * a->k_head;
    a->y_head = size, a->y_row = a->heads * size, a->y_batch = time * a->y_row;

    const int is_packed = arguments[1] == Py_None;
    const long width = groups * size, row = a->heads * size + (is_packed ? 2 * width : 0);
    const void *q, *k, *v, *last, *past[2];
    if (take_sized(held, arguments[0], "f", 0, 3, (long[]){a->batch, time, row}, "the queries", &q) ||
        take_sized(held, arguments[1], "f", 0, 3, (long[]){a->batch, time, width}, "the keys", &k) ||
        take_sized(held, arguments[2], "f", 0, 3, (long[]){a->batch, time, width}, "the values", &v) ||
        take_sized(held, arguments[5], "i", 0, 1, (long[]){a->batch}, "the last tokens", &last))
        return -1;
    if (!q || !k != !v || !last) {
        PyErr_SetString(PyExc_ValueError, "there are no queries, keys, values or last tokens");
        return -1;
    }
    c->q = (TokenRows){q, time * row, row};
    c->k = is_packed ? (TokenRows){c->q.first + a->heads * size, time * row, row} : (TokenRows){k, time * width, width};
    c->v = is_packed ? (TokenRows){c->k.first + width, time * row, row} : (TokenRows){v, time * width, width};
    c->last = last;
    a->q = q, a->q_batch = time * row, a->q_head = size, a->q_row = row;
    if (arguments[3] != Py_None) {
        const Py_buffer *before = take(held, arguments[3], "f", 0, "the past keys");
        if (!before) return -1;
        c->past_rows = before->ndim == 4 ? (long)before->shape[2] : 0;
        const long sizes[] = {a->batch, groups, c->past_rows, size};
        past[0] = before->buf;
        for (int axis = 0; axis < 4; axis++) fits = fits && before->ndim == 4 && before->shape[axis] == sizes[axis];
        if (take_sized(held, arguments[4], "f", 0, 4, sizes, "the past values", &past[1])) return -1;
        if (!fits || !past[1]) {
            PyErr_SetString(PyExc_ValueError, "the past does not fit");
            return -1;
        }
        c->past[0] = past[0], c->past[1] = past[1];
    }
    if (take_mask(held, arguments[9], c->tokens, a)) return -1;
    a->scale = (float)PyFloat_AsDouble(arguments[13]);
    a->softcap = (float)PyFloat_AsDouble(arguments[14]);
    c->window = PyLong_AsLong(arguments[16]);
    c->causal = PyObject_IsTrue(arguments[17]);
    if (PyErr_Occurred()) return -1;
    a->left = c->window > 0 ? c->window - 1 : -1;
    a->right = c->causal ? 0 : -1;
    if (take_turns(c, arguments + 6)) return -1;
    c->rotation.interleaved = PyObject_IsTrue(arguments[18]);
    return make_room(c);
}

/* attend_cached(query, key, value, past_key, past_value, last, cosines, sines, positions, bias, out, present_key, present_value,
   scale, softcap, tokens, window, causal, interleaved) */
PyObject *py_attend_cached(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 19, "attend_cached")) return NULL;
    CachedCall *c = BEGIN(CachedCall, perform_cached);
    if (!c) return NULL;
    c->kernels = active;
    return take_cached(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
