#include "bindings.h"

#include "pool.h"

#define TASK_FLOATS 16384

typedef struct {
    const Kernels *kernels;
    Activation how;
    const float *x;
    float *y;
    long n;
} Elements;

static void activate_task(void *context, long ticket) {
    const Elements *e = context;
    const long start = ticket * TASK_FLOATS, left = e->n - start;
    e->kernels->activate(&e->how, e->x + start, e->y + start, left < TASK_FLOATS ? left : TASK_FLOATS);
}

/* activate(x, out, activation, alpha, beta) */
PyObject *py_activate(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 5, "activate")) return NULL;
    Buffers held = {.count = 0};
    Elements e = {.kernels = active};
    PyObject *result = NULL;
    float *y;
    const Py_buffer *x = take(&held, arguments[0], "f", 0, "x");
    if (!x || take_floats(&held, arguments[1], count_of(x), WRITTEN, "out", &y) || take_activation(arguments + 2, &e.how))
        goto done;
    if (!y) {
        PyErr_SetString(PyExc_TypeError, "out is None");
        goto done;
    }
    e.x = x->buf;
    e.y = y;
    e.n = (long)count_of(x);
    Py_BEGIN_ALLOW_THREADS
    pool_run(activate_task, &e, (e.n + TASK_FLOATS - 1) / TASK_FLOATS);
    Py_END_ALLOW_THREADS
    result = finish(0);
done:
    release(&held);
    return result;
}

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

/* softmax(x, out, n, logarithm) */
PyObject *py_softmax(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 4, "softmax")) return NULL;
    Buffers held = {.count = 0};
    Rows r = {0};
    PyObject *result = NULL;
    const int logarithm = PyObject_IsTrue(arguments[3]);
    if (logarithm < 0 || take_rows(&held, arguments[0], arguments[1], arguments[2], &r)) goto done;
    Py_BEGIN_ALLOW_THREADS
    active->softmax(&r, logarithm);
    Py_END_ALLOW_THREADS
    result = finish(0);
done:
    release(&held);
    return result;
}

/* layer_norm(x, scale, shift, out, mean, deviation, n, epsilon, centred) */
PyObject *py_layer_norm(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 9, "layer_norm")) return NULL;
    Buffers held = {.count = 0};
    Rows r = {0};
    PyObject *result = NULL;
    float *scale, *shift;
    const int centred = PyObject_IsTrue(arguments[8]);
    if (centred < 0 || take_rows(&held, arguments[0], arguments[3], arguments[6], &r) ||
        take_floats(&held, arguments[1], r.n, 0, "the scale", &scale) ||
        take_floats(&held, arguments[2], r.n, 0, "the shift", &shift) ||
        take_floats(&held, arguments[4], r.rows, WRITTEN, "the mean", &r.mean) ||
        take_floats(&held, arguments[5], r.rows, WRITTEN, "the deviation", &r.deviation))
        goto done;
    r.scale = scale;
    r.shift = shift;
    r.epsilon = (float)PyFloat_AsDouble(arguments[7]);
    if (PyErr_Occurred()) goto done;
    Py_BEGIN_ALLOW_THREADS
    active->layer_norm(&r, centred);
    Py_END_ALLOW_THREADS
    result = finish(0);
done:
    release(&held);
    return result;
}
