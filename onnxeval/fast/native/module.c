#include "bindings.h"

#include <string.h>

#include "pool.h"
#include "processor.h"

/* The tiers that were compiled, each better than the one before. setup.py names them. */
#define DECLARE(tier) extern const Kernels kernels_##tier;
FOR_EACH_TIER(DECLARE)
#define ENTRY(tier) &kernels_##tier,
static const Kernels *const tables[] = {FOR_EACH_TIER(ENTRY) NULL};

const Kernels *active;

static PyObject *py_tiers(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    PyObject *names = PyList_New(0);
    for (int i = 0; names && tables[i]; i++) {
        if (!supports(tables[i]->name)) continue;
        PyObject *name = PyUnicode_FromString(tables[i]->name);
        if (!name || PyList_Append(names, name)) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *py_select(PyObject *Py_UNUSED(module), PyObject *name) {
    const char *wanted = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!wanted) return NULL;
    for (int i = 0; tables[i]; i++)
        if (!strcmp(tables[i]->name, wanted) && supports(wanted)) {
            active = tables[i];
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "this processor has no tier %R", name);
}

static PyObject *py_active(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    return PyUnicode_FromString(active->name);
}

static PyObject *py_set_threads(PyObject *Py_UNUSED(module), PyObject *count) {
    const long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    pool_set_threads(threads > 1 << 16 ? 1 << 16 : (int)threads);
    Py_RETURN_NONE;
}

static PyObject *py_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    return PyLong_FromLong(pool_threads());
}

static PyObject *py_close(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    Py_BEGIN_ALLOW_THREADS
    pool_close();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL, NULL
static PyMethodDef methods[] = {
    {"tiers", py_tiers, METH_NOARGS, NULL},
    {"select", py_select, METH_O, NULL},
    {"active", py_active, METH_NOARGS, NULL},
    {"set_threads", py_set_threads, METH_O, NULL},
    {"threads", py_threads, METH_NOARGS, NULL},
    {"close", py_close, METH_NOARGS, NULL},
    {"interrupt", py_interrupt, METH_NOARGS, NULL},
    {"multiply", FAST(py_multiply)},
    {"convolve", FAST(py_convolve)},
    {"multiply_integers", FAST(py_multiply_integers)},
    {"multiply_quantized", FAST(py_multiply_quantized)},
    {"quantize", FAST(py_quantize)},
    {"convolve_integers", FAST(py_convolve_integers)},
    {"quantize_rows", FAST(py_quantize_rows)},
    {"dequantize_rows", FAST(py_dequantize_rows)},
    {"multiply_bits", FAST(py_multiply_bits)},
    {"requantize", FAST(py_requantize)},
    {"join_bytes", FAST(py_join_bytes)},
    {"look_up_bytes", FAST(py_look_up_bytes)},
    {"pool_bytes", FAST(py_pool_bytes)},
    {"mean_of_bytes", FAST(py_mean_of_bytes)},
    {"quantized_lstm", FAST(py_quantized_lstm)},
    {"run_layer", FAST(py_run_layer)},
    {"pool", FAST(py_pool)},
    {"search_maxima", FAST(py_search_maxima)},
    {"run_chain", FAST(py_run_chain)},
    {"activate", FAST(py_activate)},
    {"softmax", FAST(py_softmax)},
    {"layer_norm", FAST(py_layer_norm)},
    {"normalise_channels", FAST(py_normalise_channels)},
    {"run_trees", FAST(py_run_trees)},
    {"run_linear", FAST(py_run_linear)},
    {"run_svm", FAST(py_run_svm)},
    {"run_scaler", FAST(py_run_scaler)},
    {"run_normalizer", FAST(py_run_normalizer)},
    {"resample", FAST(py_resample)},
    {"attend", FAST(py_attend)},
    {"attend_cached", FAST(py_attend_cached)},
    {"rotate", FAST(py_rotate)},
    {"copy", FAST(py_copy)},
    {"concat", FAST(py_concat)},
    {"move_slices", FAST(py_move_slices)},
    {"move_elements", FAST(py_move_elements)},
    {"apply", FAST(py_apply)},
    {"reduce", FAST(py_reduce)},
    {"search", FAST(py_search)},
    {"add_up", FAST(py_add_up)},
    {NULL, NULL, 0, NULL},
};

static Type *const types[] = {&MatrixType, &FiltersType, &IntegersType, &IntegerFiltersType, &ForestType, &RecordingType};

static int execute(PyObject *module) {
    /* Pool and types are those of the process, and only one interpreter's objects may be in them. */
    if (PyInterpreterState_GetID(PyInterpreterState_Get())) {
        PyErr_SetString(PyExc_ImportError, "the compiled kernels work in the main interpreter alone");
        return -1;
    }
    if (!active) {
        for (int i = 0; tables[i]; i++)
            if (supports(tables[i]->name)) active = tables[i];
        if (!active) {
            PyErr_SetString(PyExc_ImportError, "this processor has none of the instruction sets that they were compiled for");
            return -1;
        }
        if (pool_open()) {
            active = NULL;
            PyErr_NoMemory();
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!types[i]->type) types[i]->type = (PyTypeObject *)PyType_FromSpec(&types[i]->spec);
        if (!types[i]->type || PyModule_AddType(module, types[i]->type)) return -1;
    }
    /* what Python compares with its own: an extension built from older sources is not used */
    return PyModule_AddStringConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "onnxeval.fast._native",
    .m_doc = "Kernels in C, compiled for several instruction sets.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
