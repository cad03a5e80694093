#include "bindings.h"

typedef struct {
    Call call;
    const Kernels *kernels;
    IntegerProduct product;
    FloatRows x, added;
} MultiplyIntegers;

static int perform_multiply_integers(Call *call) {
    const MultiplyIntegers *c = (MultiplyIntegers *)call;
    return c->kernels->multiply_integers(&c->product);
}

/* The matrix, and where the result goes: scaled ones are floats. -1 with an exception. */
static int take_result(MultiplyIntegers *call, PyObject *matrix, PyObject *out, PyObject *scales, PyObject *bias) {
    IntegerProduct *p = &call->product;
    Buffers *held = &call->call.held;
    if (!Py_IS_TYPE(matrix, IntegersType.type)) {
        PyErr_SetString(PyExc_TypeError, "b is no Integers");
        return -1;
    }
    hold(&call->call, matrix);
    call->kernels = ((const Integers8 *)matrix)->kernels;
    p->b = &((const Integers8 *)matrix)->matrix;
    const int scaled = scales != Py_None;
    const Py_buffer *result = take(held, out, scaled ? "f" : "i", WRITTEN, "out");
    if (!result) return -1;
    if (count_of(result) != p->m * p->b->n) {
        PyErr_SetString(PyExc_ValueError, "the shapes of a, b and out do not fit together");
        return -1;
    }
    if (!scaled) {
        p->sums = result->buf;
        return 0;
    }
    float *column_scale, *column_bias;
    if (take_floats(held, scales, p->b->n, 0, "the scales of b", &column_scale) ||
        take_floats(held, bias, p->b->n, 0, "the bias", &column_bias))
        return -1;
    p->scaled = result->buf;
    p->column_scale = column_scale;
    p->column_bias = column_bias;
    return 0;
}

/* Reads what multiply_integers is given. -1 with an exception. */
static int take_integer_product(MultiplyIntegers *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    IntegerProduct *p = &call->product;
    int is_signed, zero_signed;
    float *scale;
    const Py_buffer *a = take_bytes(held, arguments[0], 0, "a", &is_signed);
    if (!a || take_floats(held, arguments[1], 1, 0, "the scale of a", &scale)) return -1;
    if (arguments[2] != Py_None) {
        const Py_buffer *zero = take_bytes(held, arguments[2], 0, "the zero point of a", &zero_signed);
        if (!zero) return -1;
        if (zero_signed != is_signed || count_of(zero) != 1) {
            PyErr_SetString(PyExc_ValueError, "the zero point of a is not one number of its type");
            return -1;
        }
        p->a_zero = zero->buf;
    }
    if (a->ndim != 2) {
        PyErr_SetString(PyExc_ValueError, "a has no two axes");
        return -1;
    }
    p->m = a->shape[0];
    p->a = a->buf;
    p->a_scale = scale;
    p->flip = is_signed ? 0x80 : 0;
    if (take_result(call, arguments[3], arguments[4], arguments[5], arguments[6])) return -1;
    if (a->shape[1] != p->b->k || (p->scaled && !scale)) {
        PyErr_SetString(PyExc_ValueError, "a has not as many columns as b has rows, or no scale");
        return -1;
    }
    return 0;
}

/* multiply_integers(a, a_scale, a_zero, b, out, column_scale, bias): a (m, k) of int8 or uint8, a_zero one of them or None;
   out (m, n) is int32, or float32 where there are scales: sums * (a_scale * column_scale) + bias */
PyObject *py_multiply_integers(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 7, "multiply_integers")) return NULL;
    MultiplyIntegers *c = BEGIN(MultiplyIntegers, perform_multiply_integers);
    if (!c) return NULL;
    return take_integer_product(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

/* Rows of `k` floats side by side, how many there are. -1 with an exception. */
static Py_ssize_t take_float_rows(Buffers *held, PyObject *object, const char *name, FloatRows *rows, long *k) {
    const Py_buffer *x = take(held, object, "f", STRIDED, name);
    if (!x) return -1;
    const int last = x->ndim - 1;
    if (last < 0 || (x->shape[last] > 1 && x->strides[last] != x->itemsize)) {
        PyErr_Format(PyExc_ValueError, "%s has no elements side by side", name);
        return -1;
    }
    *rows = (FloatRows){x->buf, last, x->shape, x->strides};
    *k = x->shape[last];
    Py_ssize_t count = 1;
    for (int axis = 0; axis < last; axis++) count *= x->shape[axis];
    return count;
}

/* Reads what multiply_quantized is given. -1 with an exception. */
static int take_quantized_product(MultiplyIntegers *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    IntegerProduct *p = &call->product;
    long k, other;
    p->m = take_float_rows(held, arguments[0], "x", &call->x, &k);
    if (p->m < 0) return -1;
    p->x = &call->x;
    if (arguments[1] != Py_None) {
        const Py_ssize_t rows = take_float_rows(held, arguments[1], "what is added", &call->added, &other);
        if (rows < 0) return -1;
        int same = rows == p->m && other == k && call->added.axes == call->x.axes;
        for (int axis = 0; same && axis < call->x.axes; axis++) same = call->added.shape[axis] == call->x.shape[axis];
        if (!same) {
            PyErr_SetString(PyExc_ValueError, "what is added has another shape than x");
            return -1;
        }
        p->added = &call->added;
    }
    p->tanh = PyObject_IsTrue(arguments[2]);
    if (p->tanh < 0 || take_result(call, arguments[3], arguments[4], arguments[5], arguments[6])) return -1;
    if (k != p->b->k || !p->scaled) {
        PyErr_SetString(PyExc_ValueError, "x has not as many columns as b has rows, or there are no scales");
        return -1;
    }
    return 0;
}

/* multiply_quantized(x, added, tanh, b, out, column_scale, bias): x of floats, the rows of whose last axis lie side by side;
   x + added, or its hyperbolic tangent, is quantized to 8 bits as a whole; out (m, n) as in multiply_integers */
PyObject *py_multiply_quantized(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 7, "multiply_quantized")) return NULL;
    MultiplyIntegers *c = BEGIN(MultiplyIntegers, perform_multiply_integers);
    if (!c) return NULL;
    return take_quantized_product(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    const Kernels *kernels;
    Quantization quantization;
    FloatRows x;
} Quantize;

static int perform_quantize(Call *call) {
    const Quantize *c = (Quantize *)call;
    return c->kernels->quantize(&c->quantization);
}

/* quantize(x, codes, scale, zero): x of floats, the rows of whose last axis lie side by side; codes of uint8, one scale, one
   zero point of uint8 */
PyObject *py_quantize(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 4, "quantize")) return NULL;
    Quantize *c = BEGIN(Quantize, perform_quantize);
    if (!c) return NULL;
    Buffers *held = &c->call.held;
    Quantization *q = &c->quantization;
    q->rows = take_float_rows(held, arguments[0], "x", &c->x, &q->k);
    const Py_buffer *codes = q->rows < 0 ? NULL : take(held, arguments[1], "B", WRITTEN, "the codes");
    if (!codes || take_floats(held, arguments[2], 1, WRITTEN, "the scale", &q->scale)) return abandon(&c->call);
    const Py_buffer *zero = take(held, arguments[3], "B", WRITTEN, "the zero point");
    if (!zero) return abandon(&c->call);
    if (count_of(codes) != q->rows * q->k || count_of(zero) != 1 || !q->scale) {
        PyErr_SetString(PyExc_ValueError, "the codes are not as many as x has elements, or the zero point is not one");
        return abandon(&c->call);
    }
    c->kernels = active;
    q->x = &c->x;
    q->codes = codes->buf;
    q->zero = zero->buf;
    return conclude(&c->call);
}
