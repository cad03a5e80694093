/* What the Python functions share. Every size that a kernel relies on is checked here, against the buffers themselves. */
#ifndef ONNXEVAL_BINDINGS_H
#define ONNXEVAL_BINDINGS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels.h"
#include "ml.h"

#define MOST_BUFFERS 13

/* The buffers of one call, released together. */
typedef struct {
    Py_buffer views[MOST_BUFFERS];
    unsigned char how[MOST_BUFFERS]; /* as they were taken */
    int count;
} Buffers;

/* The tier in use. Packed weights keep the one that they were packed by. */
extern const Kernels *active;

/* The next buffer of an object that holds elements of `format`, aligned; NULL with an exception where it does not, is
   not contiguous although it must be, or is read-only and to be written. What is WRITTEN is not read before, what is
   UPDATED is. */
enum { STRIDED = 1, WRITTEN = 2, UPDATED = 4 };
const Py_buffer *take(Buffers *, PyObject *, const char *format, int how, const char *name);

/* The same of any format but that of Python's objects, aligned or not; whether it is, else an exception is set. */
const Py_buffer *take_any(Buffers *, PyObject *, int how, const char *name);
int is_aligned(const Py_buffer *, const char *name);

/* How an array lies beside a result of that shape, as it broadcasts into it. -1 with an exception where it does not. */
int nest_in(ptrdiff_t *steps, const Py_buffer *array, const Py_ssize_t *shape, int axes);

/* The same for an operand that may be None, then *elements is NULL; anything but `count` elements is refused. */
int take_floats(Buffers *, PyObject *, Py_ssize_t count, int how, const char *name, float **elements);

/* The buffer of 8-bit integers, and whether they are signed. */
const Py_buffer *take_bytes(Buffers *, PyObject *, int how, const char *name, int *is_signed);

void release(Buffers *);

/* One call of a kernel with all that it needs, at the head of a structure of the binding's own. A call that is recorded
   runs again and again, on the same memory. */
#define MOST_OBJECTS 4
typedef struct Call {
    int (*perform)(struct Call *); /* without the GIL: 0; -1 where there is not enough memory, 1 where an index is outside */
    Buffers held;
    PyObject *objects[MOST_OBJECTS]; /* packed weights and the like, NULL where there are fewer */
    void *memory;                    /* freed with the call */
} Call;

/* A call whose own part, behind the head, is zero; NULL with an exception where there is no memory. */
#define BEGIN(Type, kernel) (Type *)begin_call(sizeof(Type), kernel)
Call *begin_call(size_t bytes, int (*perform)(Call *));
/* Keeps an object alive as long as the call. */
void hold(Call *, PyObject *);
/* Performs the call, and keeps it where its thread records. None, or NULL with an exception. */
PyObject *conclude(Call *);
/* What this thread does cannot be recorded: among other things, that it packs what may be other numbers next time. */
void interrupt_recording(void);
/* Discards the call that an exception ends: NULL. */
PyObject *abandon(Call *);

/* The number of elements. */
Py_ssize_t count_of(const Py_buffer *);

/* Strides, dilations and the padding before, each far from where a place could not be counted any more. */
int take_geometry(PyObject *const *arguments, Geometry *);
int take_activation(PyObject *const *arguments, Activation *);
/* What is added to scores of that many keys, or hides some; nothing where it is None. -1 with an exception. */
int take_mask(Buffers *, PyObject *, long keys, Attention *);
/* A single query of several heads that share keys: these heads are the queries then. */
void fold_heads(Attention *);
/* Where the window or the lengths hide keys, nothing times what is not finite is looked at all the same. 0, or -1 where there is
   not enough memory. */
int attend_all(const Kernels *, const Attention *, int hides);
int expect_arguments(Py_ssize_t given, Py_ssize_t expected, const char *function);

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

/* Trees, to be walked many times. */
typedef struct {
    PyObject_HEAD
    Trees trees;
} ForestObject;

/* A type of this module: made from its specification when the module is first imported. */
typedef struct {
    PyType_Spec spec;
    PyTypeObject *type;
} Type;

extern Type MatrixType, FiltersType, IntegersType, IntegerFiltersType, ForestType, RecordingType;
/* What a deallocator ends with. */
void free_object(PyObject *);

PyObject *py_multiply(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_convolve(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_multiply_integers(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_multiply_quantized(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_quantize(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_convolve_integers(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_quantize_rows(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_dequantize_rows(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_multiply_bits(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_requantize(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_join_bytes(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_look_up_bytes(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_pool_bytes(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_mean_of_bytes(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_quantized_lstm(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_layer(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_pool(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_search_maxima(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_chain(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_activate(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_softmax(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_trees(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_linear(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_svm(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_scaler(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_run_normalizer(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_interrupt(PyObject *, PyObject *);
PyObject *py_layer_norm(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_normalise_channels(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_resample(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_attend(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_attend_cached(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_rotate(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_copy(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_concat(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_move_slices(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_move_elements(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_apply(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_reduce(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_search(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *py_add_up(PyObject *, PyObject *const *, Py_ssize_t);

#endif
