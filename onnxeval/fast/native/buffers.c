#include "bindings.h"

#include <string.h>

const Py_buffer *take_any(Buffers *held, PyObject *object, int how, const char *name) {
    if (held->count == MOST_BUFFERS) {
        PyErr_SetString(PyExc_SystemError, "too many buffers in one call");
        return NULL;
    }
    Py_buffer *view = &held->views[held->count];
    const int layout = how & STRIDED ? PyBUF_STRIDES : PyBUF_ND | PyBUF_C_CONTIGUOUS;
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | layout | (how & (WRITTEN | UPDATED) ? PyBUF_WRITABLE : 0))) return NULL;
    held->how[held->count++] = (unsigned char)how;
    if (!view->format) view->format = "B";
    if (view->format[0] == '=') view->format++; /* NumPy says so of what is not aligned */
    if (view->itemsize == sizeof(long) && !strcmp(view->format, "q")) view->format = "l"; /* two names of one type */
    if (view->itemsize == sizeof(long) && !strcmp(view->format, "Q")) view->format = "L";
    if (strchr(view->format, 'O') || view->ndim > MOST_AXES) {
        PyErr_Format(PyExc_TypeError, "%s has elements of format %s and %d axes", name, view->format, view->ndim);
        return NULL;
    }
    return view;
}

int is_aligned(const Py_buffer *view, const char *name) {
    Py_ssize_t strides = 0;
    for (int axis = 0; axis < view->ndim; axis++)
        if (view->shape[axis] > 1) strides |= view->strides[axis];
    if (!(((Py_ssize_t)(uintptr_t)view->buf | strides) % view->itemsize) || !count_of(view)) return 1;
    PyErr_Format(PyExc_ValueError, "%s is not aligned", name);
    return 0;
}

const Py_buffer *take(Buffers *held, PyObject *object, const char *format, int how, const char *name) {
    const Py_buffer *view = take_any(held, object, how, name);
    if (!view) return NULL;
    if (strcmp(view->format, format)) {
        PyErr_Format(PyExc_TypeError, "%s has elements of format %s, expected %s", name, view->format, format);
        return NULL;
    }
    return is_aligned(view, name) ? view : NULL;
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

const Py_buffer *take_bytes(Buffers *held, PyObject *object, int how, const char *name, int *is_signed) {
    Py_buffer probe;
    if (PyObject_GetBuffer(object, &probe, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return NULL;
    *is_signed = probe.format && probe.format[0] == 'b';
    PyBuffer_Release(&probe);
    return take(held, object, *is_signed ? "b" : "B", how, name);
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
