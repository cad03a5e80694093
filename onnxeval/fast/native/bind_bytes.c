#include "bindings.h"

#include <math.h>

/* Longs in a row of arguments. -1 with an exception. */
static int take_longs(PyObject *const *arguments, int count, long *values) {
    for (int i = 0; i < count; i++) {
        values[i] = PyLong_AsLong(arguments[i]);
        if (values[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* The range of the type of the result, and a zero point in it. -1 with an exception. */
static int take_range(Requantization *how, PyObject *zero, int is_signed) {
    long value;
    if (take_longs(&zero, 1, &value)) return -1;
    how->is_signed = is_signed;
    how->lowest = is_signed ? -128 : 0;
    how->highest = is_signed ? 127 : 255;
    how->zero = (int32_t)value;
    if (value >= how->lowest && value <= how->highest) return 0;
    PyErr_Format(PyExc_ValueError, "%ld is none of the integers that out has", value);
    return -1;
}

static int fits(Py_ssize_t count, long rows, long length) {
    if (rows > 0 && length > 0 && rows <= PY_SSIZE_T_MAX / length && rows * length == count) return 1;
    PyErr_SetString(PyExc_ValueError, "the elements are no such number of rows");
    return 0;
}

typedef struct {
    Call call;
    const Kernels *kernels;
    ByteCasts casts;
} Casting;

static int perform_casting(Call *call) {
    const Casting *c = (Casting *)call;
    return c->kernels->cast_bytes(&c->casts);
}

static int take_casts(Casting *call, PyObject *const *arguments, int to_bytes) {
    Buffers *held = &call->call.held;
    ByteCasts *c = &call->casts;
    const Py_buffer *floats = take(held, arguments[!to_bytes], "f", to_bytes ? 0 : WRITTEN, "the floats");
    const Py_buffer *bytes = floats ? take_bytes(held, arguments[to_bytes], to_bytes ? WRITTEN : 0, "the integers", &c->is_signed) : NULL;
    const Py_buffer *scale = bytes ? take(held, arguments[2], "f", 0, "the scale") : NULL;
    long numbers[3];
    if (!scale || take_longs(arguments + 4, 3, numbers)) return -1;
    c->rows = numbers[0];
    c->length = numbers[1];
    c->along = numbers[2] != 0;
    c->count = count_of(scale);
    if (count_of(floats) != count_of(bytes)) {
        PyErr_SetString(PyExc_ValueError, "there are not as many floats as integers");
        return -1;
    }
    if (!fits(count_of(floats), c->rows, c->length)) return -1;
    if (c->along ? c->count != c->length : (c->count < 1 || c->rows % c->count)) {
        PyErr_SetString(PyExc_ValueError, "the scale does not fit the rows");
        return -1;
    }
    if (arguments[3] != Py_None) {
        int zero_signed;
        const Py_buffer *zero = take_bytes(held, arguments[3], 0, "the zero point", &zero_signed);
        if (!zero) return -1;
        if (count_of(zero) != c->count || zero_signed != c->is_signed) {
            PyErr_SetString(PyExc_ValueError, "the zero point is not as the scale, or not of the type of the integers");
            return -1;
        }
        c->zero = zero->buf;
    }
    call->kernels = active;
    c->to_bytes = to_bytes;
    c->floats = floats->buf;
    c->bytes = bytes->buf;
    c->scale = scale->buf;
    return 0;
}

static PyObject *cast(PyObject *const *arguments, int to_bytes) {
    Casting *c = BEGIN(Casting, perform_casting);
    if (!c) return NULL;
    return take_casts(c, arguments, to_bytes) ? abandon(&c->call) : conclude(&c->call);
}

/* quantize_rows(x, out, scale, zero, rows, length, along): x of float32, out and zero of int8 or uint8, zero may be None. Scale and
   zero have an element for all, for each of rows that recur or, `along`, for each of the elements of a row */
PyObject *py_quantize_rows(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    return expect_arguments(given, 7, "quantize_rows") ? NULL : cast(arguments, 1);
}

/* dequantize_rows(x, out, scale, zero, rows, length, along): the same back */
PyObject *py_dequantize_rows(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    return expect_arguments(given, 7, "dequantize_rows") ? NULL : cast(arguments, 0);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    SumRows rows;
} Requantizing;

static int perform_requantizing(Call *call) {
    const Requantizing *c = (Requantizing *)call;
    return c->kernels->requantize_rows(&c->rows);
}

static int take_sums(Requantizing *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    SumRows *c = &call->rows;
    int is_signed;
    const Py_buffer *sums = take(held, arguments[0], "i", 0, "the sums");
    const Py_buffer *out = sums ? take_bytes(held, arguments[1], WRITTEN, "out", &is_signed) : NULL;
    const Py_buffer *multiplier = out ? take(held, arguments[3], "d", 0, "the multipliers") : NULL;
    const Py_buffer *factor = multiplier ? take(held, arguments[4], "f", 0, "the factors") : NULL;
    const Py_buffer *bias = !factor || arguments[2] == Py_None ? factor : take(held, arguments[2], "i", 0, "the bias");
    if (!bias) return -1;
    c->divisor = PyFloat_AsDouble(arguments[5]);
    if (PyErr_Occurred() || take_range(&c->how, arguments[6], is_signed)) return -1;
    if (sums->ndim != 2 || count_of(out) != count_of(sums) || count_of(bias) != sums->shape[1] ||
        count_of(multiplier) != sums->shape[1] || count_of(factor) != sums->shape[1]) {
        PyErr_SetString(PyExc_ValueError, "there is no result for each sum, or no bias or multiplier for each column");
        return -1;
    }
    call->kernels = active;
    c->rows = sums->shape[0], c->n = sums->shape[1];
    c->sums = sums->buf, c->y = out->buf, c->multiplier = multiplier->buf, c->factor = factor->buf;
    c->bias = arguments[2] == Py_None ? NULL : bias->buf;
    return 0;
}

/* requantize(sums, out, bias, multiplier, factor, divisor, zero): sums (m, n) of int32, out of int8 or uint8; of n elements bias
   (int32 or None), multiplier (float64) and factor (float32), which is multiplier / divisor */
PyObject *py_requantize(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 7, "requantize")) return NULL;
    Requantizing *c = BEGIN(Requantizing, perform_requantizing);
    if (!c) return NULL;
    return take_sums(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    ByteJoin join;
} Joining;

static int perform_joining(Call *call) {
    const Joining *c = (Joining *)call;
    return c->kernels->join_bytes(&c->join);
}

/* An operand of a result of rows times length elements: (array, layout, count, scale, zero point). -1 with an exception. */
static int take_operand(Buffers *held, PyObject *const *arguments, const ByteJoin *c, ByteOperand *o) {
    long numbers[2], zero;
    const Py_buffer *view = take_bytes(held, arguments[0], 0, "an operand", &o->is_signed);
    if (!view || take_longs(arguments + 1, 2, numbers) || take_longs(arguments + 4, 1, &zero)) return -1;
    o->layout = numbers[0];
    o->count = numbers[1];
    o->scale = (float)PyFloat_AsDouble(arguments[3]);
    if (PyErr_Occurred()) return -1;
    const Py_ssize_t wanted = o->layout == WHOLE       ? c->rows * c->length
                              : o->layout == SINGLE    ? 1
                              : o->layout == ALONG_ROW ? c->length
                                                       : o->count;
    if (o->layout < 0 || o->layout >= LAYOUTS || wanted < 1 || count_of(view) != wanted || zero < -128 || zero > 255) {
        PyErr_SetString(PyExc_ValueError, "an operand does not fit the result");
        return -1;
    }
    o->zero = (int32_t)zero;
    o->elements = view->buf;
    return 0;
}

static int take_join(Joining *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    ByteJoin *c = &call->join;
    long numbers[3];
    int is_signed;
    const Py_buffer *out = take_bytes(held, arguments[1], WRITTEN, "out", &is_signed);
    if (!out || take_longs(arguments, 1, numbers) || take_longs(arguments + 2, 2, numbers + 1)) return -1;
    c->what = (Join)numbers[0];
    c->rows = numbers[1];
    c->length = numbers[2];
    if (c->what != ADD && c->what != MULTIPLY) {
        PyErr_Format(PyExc_ValueError, "there is no join %ld of integers", numbers[0]);
        return -1;
    }
    if (!fits(count_of(out), c->rows, c->length) || take_operand(held, arguments + 6, c, &c->left) ||
        take_operand(held, arguments + 11, c, &c->right) || take_range(&c->how, arguments[5], is_signed))
        return -1;
    c->scale = (float)PyFloat_AsDouble(arguments[4]);
    if (PyErr_Occurred()) return -1;
    call->kernels = active;
    c->y = out->buf;
    return 0;
}

/* join_bytes(what, out, rows, length, scale, zero, a, layout, count, a_scale, a_zero, b, layout, count, b_scale, b_zero): what
   is ADD or MULTIPLY of kernels.h, layouts are those of operands there */
PyObject *py_join_bytes(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 16, "join_bytes")) return NULL;
    Joining *c = BEGIN(Joining, perform_joining);
    if (!c) return NULL;
    return take_join(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    ByteTable table;
} LookingUp;

static int perform_looking_up(Call *call) {
    const LookingUp *c = (LookingUp *)call;
    return c->kernels->look_up_bytes(&c->table);
}

static int take_table(LookingUp *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    ByteTable *c = &call->table;
    int is_signed;
    const Py_buffer *x = take_bytes(held, arguments[0], 0, "x", &is_signed);
    const Py_buffer *table = x ? take_bytes(held, arguments[1], 0, "the table", &is_signed) : NULL;
    if (!table) return -1;
    const Py_buffer *out = take(held, arguments[2], is_signed ? "b" : "B", WRITTEN | STRIDED, "out");
    if (!out) return -1;
    if (count_of(table) != 256 || x->ndim != 2 || out->ndim != 2 || x->shape[0] != out->shape[0] ||
        x->shape[1] != out->shape[1] || (out->shape[1] > 1 && out->strides[1] != 1) || !count_of(x)) {
        PyErr_SetString(PyExc_ValueError, "x and out are not as many rows of bytes, or the table has no 256");
        return -1;
    }
    call->kernels = active;
    c->rows = x->shape[0], c->length = x->shape[1], c->pitch = out->strides[0];
    c->x = x->buf, c->table = table->buf, c->y = out->buf;
    return 0;
}

/* look_up_bytes(x, table, out): of each byte of x the entry of the table, which begins with that of 0; x and out have two
   axes, the rows of out may lie apart */
PyObject *py_look_up_bytes(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 3, "look_up_bytes")) return NULL;
    LookingUp *c = BEGIN(LookingUp, perform_looking_up);
    if (!c) return NULL;
    return take_table(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
