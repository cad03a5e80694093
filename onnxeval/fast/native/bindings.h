/* What the Python functions share. Every size that a kernel relies on is checked here, against the buffers themselves. */
#ifndef ONNXEVAL_BINDINGS_H
#define ONNXEVAL_BINDINGS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels.h"

#define MOST_AXES 16
#define MOST_BUFFERS 12

/* The buffers of one call, released together. */
typedef struct {
    Py_buffer views[MOST_BUFFERS];
    int count;
} Buffers;

/* The tier in use. Packed weights keep the one that they were packed by. */
extern const Kernels *active;

/* The next buffer of an object that holds elements of `format`, aligned; NULL with an exception where it does not, is
   not contiguous although it must be, or is read-only and to be written. */
enum { STRIDED = 1, WRITTEN = 2 };
const Py_buffer *take(Buffers *, PyObject *, const char *format, int how, const char *name);

/* The same for an operand that may be None, then *elements is NULL; anything but `count` elements is refused. */
int take_floats(Buffers *, PyObject *, Py_ssize_t count, int how, const char *name, float **elements);

void release(Buffers *);

/* The number of elements. */
Py_ssize_t count_of(const Py_buffer *);

int take_activation(PyObject *const *arguments, Activation *);
int expect_arguments(Py_ssize_t given, Py_ssize_t expected, const char *function);
PyObject *finish(int status);

/* A right factor of many products, packed once. */
typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    long k, n;
    float *packed;
} Matrix;

/* The same, of 8-bit integers. */
typedef struct {
    PyObject_HEAD
    const Kernels *kernels;
    IntegerMatrix matrix;
} Integers8;

extern PyTypeObject MatrixType, FiltersType, IntegersType;
PyObject *py_multiply(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_convolve(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_multiply_integers(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_lstm(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_pool(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_chain(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_activate(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_softmax(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_layer_norm(PyObject *, PyObject *const *, Py_ssize_t);

#endif
