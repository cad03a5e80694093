#include "bindings.h"

#include <string.h>

const Py_buffer *take(Buffers *held, PyObject *object, const char *format, int how, const char *name) {
    if (held->count == MOST_BUFFERS) {
        PyErr_SetString(PyExc_SystemError, "too many buffers in one call");
        return NULL;
    }
    Py_buffer *view = &held->views[held->count];
    int flags = PyBUF_FORMAT | (how & STRIDED ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS) | (how & (WRITTEN | UPDATED) ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags)) return NULL;
    held->how[held->count++] = (unsigned char)how;
    const char *given = view->format ? view->format : "B";
    if (strcmp(given, format) || view->ndim > MOST_AXES) {
        PyErr_Format(PyExc_TypeError, "%s has elements of format %s and %d axes, expected %s", name, given, view->ndim, format);
        return NULL;
    }
    Py_ssize_t strides = 0;
    for (int axis = 0; axis < view->ndim; axis++)
        if (view->shape[axis] > 1) strides |= view->strides[axis];
    if (((Py_ssize_t)(uintptr_t)view->buf | strides) % view->itemsize && count_of(view)) {
        PyErr_Format(PyExc_ValueError, "%s is not aligned", name);
        return NULL;
    }
    return view;
}

int take_floats(Buffers *held, PyObject *object, Py_ssize_t count, int how, const char *name, float **elements) {
    *elements = NULL;
    if (object == Py_None) return 0;
    const Py_buffer *view = take(held, object, "f", how, name);
    if (!view) return -1;
    if (count_of(view) != count) {
        PyErr_Format(PyExc_ValueError, "%s has %zd elements, expected %zd", name, count_of(view), count);
        return -1;
    }
    *elements = view->buf;
    return 0;
}

Py_ssize_t count_of(const Py_buffer *view) { return view->len / view->itemsize; }

void release(Buffers *held) {
    while (held->count > 0) PyBuffer_Release(&held->views[--held->count]);
}

int take_activation(PyObject *const *arguments, Activation *activation) {
    long kind = PyLong_AsLong(arguments[0]);
    if (kind == -1 && PyErr_Occurred()) return -1;
    if (kind < 0 || kind >= ACTIVATIONS) {
        PyErr_Format(PyExc_ValueError, "there is no activation %ld", kind);
        return -1;
    }
    activation->kind = (ActivationKind)kind;
    activation->alpha = (float)PyFloat_AsDouble(arguments[1]);
    activation->beta = (float)PyFloat_AsDouble(arguments[2]);
    return PyErr_Occurred() ? -1 : 0;
}

void free_object(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

int expect_arguments(Py_ssize_t given, Py_ssize_t expected, const char *function) {
    if (given == expected) return 0;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, %zd are given", function, expected, given);
    return -1;
}
