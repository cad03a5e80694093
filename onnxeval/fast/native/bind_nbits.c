#include "bindings.h"

typedef struct {
    Call call;
    const Kernels *kernels;
    BitsProduct product;
} MultiplyBits;

static int perform_multiply_bits(Call *call) {
    const MultiplyBits *c = (MultiplyBits *)call;
    return c->kernels->multiply_bits(&c->product);
}

/* Reads what multiply_bits is given. -1 with an exception. */
static int take_bits_product(MultiplyBits *call, PyObject *const *arguments) {
    Buffers *held = &call->call.held;
    BitsProduct *p = &call->product;
    const Py_buffer *a = take(held, arguments[0], "f", 0, "a");
    const Py_buffer *codes = a ? take(held, arguments[1], "B", 0, "the codes") : NULL;
    const Py_buffer *scales = codes ? take(held, arguments[2], "f", 0, "the scales") : NULL;
    const Py_buffer *out = scales ? take(held, arguments[4], "f", WRITTEN, "out") : NULL;
    if (!out) return -1;
    p->bits = (int)PyLong_AsLong(arguments[6]);
    p->block = PyLong_AsLong(arguments[7]);
    if (PyErr_Occurred()) return -1;
    if (a->ndim != 2 || out->ndim != 2 || a->shape[0] != out->shape[0] || !count_of(a) || !count_of(out) ||
        (p->bits != 4 && p->bits != 8) || p->block < 16 || p->block % 16 || p->block > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a and out are no matrices of as many rows, or bits and block are not known");
        return -1;
    }
    p->m = a->shape[0], p->k = a->shape[1], p->n = out->shape[1];
    p->blocks = (p->k + p->block - 1) / p->block;
    if (count_of(scales) != p->n * p->blocks || count_of(codes) != p->n * p->blocks * (p->block * p->bits / 8)) {
        PyErr_SetString(PyExc_ValueError, "there is not a scale and a block of codes for each block of columns");
        return -1;
    }
    if (arguments[3] != Py_None) {
        const Py_buffer *zeros = take(held, arguments[3], "B", 0, "the zero points");
        if (!zeros) return -1;
        if (count_of(zeros) != p->n * ((p->blocks * p->bits + 7) / 8)) {
            PyErr_SetString(PyExc_ValueError, "there is not a zero point for each block");
            return -1;
        }
        p->zeros = zeros->buf;
    }
    float *bias;
    if (take_floats(held, arguments[5], p->n, 0, "the bias", &bias)) return -1;
    call->kernels = active;
    p->a = a->buf, p->codes = codes->buf, p->scales = scales->buf, p->y = out->buf, p->bias = bias;
    return 0;
}

/* multiply_bits(a, codes, scales, zeros, out, bias, bits, block): a (m, k), out (m, n) and scales (n, blocks) of float32; codes
   (n, blocks, block * bits / 8) and zeros (n, blocks * bits / 8) of uint8, the first in the low bits; zeros and bias (n) may be
   None */
PyObject *py_multiply_bits(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 8, "multiply_bits")) return NULL;
    MultiplyBits *c = BEGIN(MultiplyBits, perform_multiply_bits);
    if (!c) return NULL;
    return take_bits_product(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}
