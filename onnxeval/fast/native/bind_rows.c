#include "bindings.h"

#include "pool.h"

#define TASK_FLOATS 16384

typedef struct {
    Call call;
    const Kernels *kernels;
    Activation how;
    const float *x;
    float *y;
    long n;
} Activate;

static void activate_task(void *context, long ticket) {
    const Activate *e = context;
    const long start = ticket * TASK_FLOATS, left = e->n - start;
    e->kernels->activate(&e->how, e->x + start, e->y + start, left < TASK_FLOATS ? left : TASK_FLOATS);
}

static int perform_activate(Call *call) {
    pool_run(activate_task, call, (((Activate *)call)->n + TASK_FLOATS - 1) / TASK_FLOATS);
    return 0;
}

/* activate(x, out, activation, alpha, beta) */
PyObject *py_activate(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 5, "activate")) return NULL;
    Activate *e = BEGIN(Activate, perform_activate);
    if (!e) return NULL;
    const Py_buffer *x = take(&e->call.held, arguments[0], "f", 0, "x");
    if (!x || take_floats(&e->call.held, arguments[1], count_of(x), WRITTEN, "out", &e->y) ||
        take_activation(arguments + 2, &e->how))
        return abandon(&e->call);
    if (!e->y) {
        PyErr_SetString(PyExc_TypeError, "out is None");
        return abandon(&e->call);
    }
    e->kernels = active;
    e->x = x->buf;
    e->n = (long)count_of(x);
    return conclude(&e->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Rows rows;
    int flag;
} RowsCall;

/* Rows of n elements each. -1 with an exception where the elements are no whole number of rows. */
static int take_rows(Buffers *held, PyObject *x, PyObject *out, PyObject *length, Rows *r) {
    const Py_ssize_t n = PyLong_AsSsize_t(length);
    if (n == -1 && PyErr_Occurred()) return -1;
    const Py_buffer *view = take(held, x, "f", 0, "x");
    if (!view) return -1;
    const Py_ssize_t count = count_of(view);
    if (n < 1 || count % n) {
        PyErr_Format(PyExc_ValueError, "%zd elements are no rows of %zd", count, n);
        return -1;
    }
    if (take_floats(held, out, count, WRITTEN, "out", &r->y)) return -1;
    if (!r->y) {
        PyErr_SetString(PyExc_TypeError, "out is None");
        return -1;
    }
    r->x = view->buf;
    r->n = (long)n;
    r->rows = (long)(count / n);
    return 0;
}

static int perform_softmax(Call *call) {
    const RowsCall *c = (RowsCall *)call;
    c->kernels->softmax(&c->rows, c->flag);
    return 0;
}

/* softmax(x, out, n, logarithm) */
PyObject *py_softmax(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 4, "softmax")) return NULL;
    RowsCall *c = BEGIN(RowsCall, perform_softmax);
    if (!c) return NULL;
    c->kernels = active;
    c->flag = PyObject_IsTrue(arguments[3]);
    if (c->flag < 0 || take_rows(&c->call.held, arguments[0], arguments[1], arguments[2], &c->rows))
        return abandon(&c->call);
    return conclude(&c->call);
}

static int perform_layer_norm(Call *call) {
    const RowsCall *c = (RowsCall *)call;
    c->kernels->layer_norm(&c->rows, c->flag);
    return 0;
}

/* layer_norm(x, scale, shift, out, mean, deviation, n, epsilon, centred) */
PyObject *py_layer_norm(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 9, "layer_norm")) return NULL;
    RowsCall *c = BEGIN(RowsCall, perform_layer_norm);
    if (!c) return NULL;
    Buffers *held = &c->call.held;
    Rows *r = &c->rows;
    float *scale, *shift;
    c->kernels = active;
    c->flag = PyObject_IsTrue(arguments[8]);
    if (c->flag < 0 || take_rows(held, arguments[0], arguments[3], arguments[6], r) ||
        take_floats(held, arguments[1], r->n, 0, "the scale", &scale) ||
        take_floats(held, arguments[2], r->n, 0, "the shift", &shift) ||
        take_floats(held, arguments[4], r->rows, WRITTEN, "the mean", &r->mean) ||
        take_floats(held, arguments[5], r->rows, WRITTEN, "the deviation", &r->deviation))
        return abandon(&c->call);
    r->scale = scale;
    r->shift = shift;
    r->epsilon = (float)PyFloat_AsDouble(arguments[7]);
    return PyErr_Occurred() ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Neighbours neighbours;
} NeighboursCall;

static int perform_normalise_channels(Call *call) {
    const NeighboursCall *c = (NeighboursCall *)call;
    c->kernels->normalise_channels(&c->neighbours);
    return 0;
}

/* normalise_channels(x, out, channels, pixels, below, above, factor, bias, quarters) */
PyObject *py_normalise_channels(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 9, "normalise_channels")) return NULL;
    NeighboursCall *c = BEGIN(NeighboursCall, perform_normalise_channels);
    if (!c) return NULL;
    Neighbours *n = &c->neighbours;
    c->kernels = active;
    n->channels = PyLong_AsLong(arguments[2]);
    n->pixels = PyLong_AsLong(arguments[3]);
    n->below = PyLong_AsLong(arguments[4]);
    n->above = PyLong_AsLong(arguments[5]);
    n->factor = (float)PyFloat_AsDouble(arguments[6]);
    n->bias = (float)PyFloat_AsDouble(arguments[7]);
    n->quarters = PyLong_AsLong(arguments[8]);
    if (PyErr_Occurred()) return abandon(&c->call);
    const Py_buffer *x = take(&c->call.held, arguments[0], "f", 0, "x");
    if (!x || take_floats(&c->call.held, arguments[1], count_of(x), WRITTEN, "out", &n->y)) return abandon(&c->call);
    if (!n->y || n->channels < 1 || n->pixels < 1 || n->below < 0 || n->above < 0 ||
        n->below > n->channels || n->above > n->channels || n->quarters < 1 || n->quarters > 4 || n->channels > count_of(x) || n->pixels > count_of(x) / n->channels || count_of(x) % (n->channels * n->pixels)) {
        PyErr_Format(PyExc_ValueError, "%zd elements are no images of %ld channels of %ld pixels, %ld below and %ld above, or %ld "
                     "is no number of quarters", count_of(x), n->channels, n->pixels, n->below, n->above, n->quarters);
        return abandon(&c->call);
    }
    n->x = x->buf;
    n->images = (long)count_of(x) / (n->channels * n->pixels);
    return conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    ElementChain chain;
    Operand operands[MOST_BUFFERS];
} ChainCall;

static int perform_chain(Call *call) {
    const ChainCall *c = (ChainCall *)call;
    c->kernels->run_chain(&c->chain);
    return 0;
}

/* Reads what run_chain is given. -1 with an exception. */
static int take_chain(ChainCall *call, PyObject *const *arguments) {
    ElementChain *c = &call->chain;
    const Py_buffer *out = take(&call->call.held, arguments[0], "f", WRITTEN, "out");
    const Py_buffer *layouts = out ? take(&call->call.held, arguments[3], "l", 0, "the layouts") : NULL;
    if (!layouts) return -1;
    if (!PyTuple_Check(arguments[1]) || !PyBytes_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "the operands are no tuple, or the instructions no bytes");
        return -1;
    }
    const Py_ssize_t count = PyTuple_Size(arguments[1]);
    c->rows = PyLong_AsLong(arguments[4]);
    c->length = PyLong_AsLong(arguments[5]);
    if (PyErr_Occurred()) return -1;
    hold(&call->call, arguments[2]);
    c->instructions = (const Instruction *)PyBytes_AsString(arguments[2]);
    c->count = (long)(PyBytes_Size(arguments[2]) / (Py_ssize_t)sizeof *c->instructions);
    c->operands = call->operands;
    c->y = out->buf;
    if (count < 1 || count > MOST_BUFFERS - 2 || count_of(layouts) != 3 * count || c->rows < 1 || c->length < 1 ||
        c->rows > PY_SSIZE_T_MAX / c->length || c->rows * c->length != count_of(out) || c->count < 1) {
        PyErr_SetString(PyExc_ValueError, "the chain does not fit its result");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        const Py_buffer *view = take(&call->call.held, PyTuple_GetItem(arguments[1], i), "f", 0, "an operand");
        if (!view) return -1;
        const long *layout = (const long *)layouts->buf + 3 * i, is_row = layout[0], repeat = layout[1], parts = layout[2];
        const Py_ssize_t most = count_of(out);
        if (is_row < 0 || is_row > 1 || repeat < 1 || parts < 1 || parts > most || count_of(view) != parts * (is_row ? c->length : 1)) {
            PyErr_SetString(PyExc_ValueError, "an operand does not fit the result");
            return -1;
        }
        call->operands[i] = (Operand){view->buf, is_row, repeat, parts};
    }
    for (long i = 0; i < c->count; i++) {
        const Instruction *each = &c->instructions[i];
        const int taken = each->what == NORMALISE ? 3 : 1;
        int joins = each->what >= ADD && each->what < JOINS_END && each->operand >= 0 && each->operand <= count - taken;
        for (int more = 1; joins && more < taken; more++) {
            const Operand *one = &call->operands[each->operand], *other = one + more;
            joins = one->is_row == other->is_row && one->repeat == other->repeat && one->count == other->count;
        }
        if (!joins && !(each->what >= 0 && each->what < ACTIVATIONS)) {
            PyErr_SetString(PyExc_ValueError, "there is no such instruction");
            return -1;
        }
    }
    return 0;
}

/* run_chain(out, operands, instructions, layouts, rows, length): a tuple of arrays, of which the chain begins with
   the first; instructions are bytes of Instruction, layouts int64 of (is_row, repeat, count) for each operand */
PyObject *py_run_chain(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 6, "run_chain")) return NULL;
    ChainCall *c = BEGIN(ChainCall, perform_chain);
    if (!c) return NULL;
    c->kernels = active;
    return take_chain(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
