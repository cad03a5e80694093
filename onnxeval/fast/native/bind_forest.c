#include <stdlib.h>
#include <string.h>

#include "bindings.h"

static void forest_dealloc(ForestObject *self) {
    Trees *t = &self->trees;
    free(t->floats);
    free(t->doubles);
    free(t->roots);
    free(t->first);
    free(t->targets);
    free(t->weights);
    free_object((PyObject *)self);
}

/* A copy of a buffer's elements; never NULL for want of elements. */
static void *copied(const Py_buffer *view) {
    void *copy = malloc((size_t)view->len + 1);
    if (copy && view->len) memcpy(copy, view->buf, (size_t)view->len);
    return copy;
}

/* Whether all of some numbers are in 0..end - 1. */
static int are_within(const int32_t *numbers, Py_ssize_t count, Py_ssize_t end) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (numbers[i] < 0 || numbers[i] >= end) return 0;
    return 1;
}

/* Whether the votes of the nodes follow one another. */
static int are_ends(const int32_t *first, Py_ssize_t nodes, Py_ssize_t votes) {
    for (Py_ssize_t i = 0; i < nodes; i++)
        if (first[i] > first[i + 1]) return 0;
    return first[0] == 0 && first[nodes] == votes;
}

static void fill_nodes(Trees *t, const void *thresholds, const int32_t *features, const int32_t *next) {
    for (long n = 0; n < t->nodes; n++) {
        const int32_t above = next[2 * n], below = next[2 * n + 1];
        const uint32_t feature = (uint32_t)features[n];
        if (t->floats)
            t->floats[n] = (FloatNode){((const float *)thresholds)[n], feature, {above, below}};
        else
            t->doubles[n] = (DoubleNode){((const double *)thresholds)[n], feature, {above, below}};
        t->heeds_nan |= feature & 1;
        if ((long)(feature >> 1) >= t->features) t->features = (feature >> 1) + 1;
    }
}

/* Forest(thresholds, features, next, roots, first, targets, weights): thresholds float32 or float64, as rows are compared;
   features of int32, the place times two plus one where NaN counts as at most; next (nodes, 2) of int32, above and at most;
   first (nodes + 1) of int32: where the votes of each node begin; targets (votes) of int32, weights of float64 */
static PyObject *forest_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords)) {
    PyObject *given[7];
    if (!PyArg_ParseTuple(arguments, "OOOOOOO", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5], &given[6]))
        return NULL;
    static const char *const names[] = {"features", "next", "roots", "first", "targets", "weights"};
    Buffers held = {.count = 0};
    ForestObject *self = NULL;
    const Py_buffer *views[7];
    Py_buffer probe;
    if (PyObject_GetBuffer(given[0], &probe, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return NULL;
    const int wide = probe.format && probe.format[0] == 'd';
    PyBuffer_Release(&probe);
    if (!(views[0] = take(&held, given[0], wide ? "d" : "f", 0, "thresholds"))) goto done;
    for (int i = 1; i < 7; i++)
        if (!(views[i] = take(&held, given[i], i < 6 ? "i" : "d", 0, names[i - 1]))) goto done;
    const Py_ssize_t nodes = count_of(views[0]), votes = count_of(views[5]);
    const int32_t *features = views[1]->buf;
    if (nodes < 1 || nodes >= INT32_MAX || count_of(views[1]) != nodes || count_of(views[2]) != 2 * nodes ||
        count_of(views[4]) != nodes + 1 || count_of(views[6]) != votes || !are_within(features, nodes, INT32_MAX) ||
        !are_within(views[2]->buf, 2 * nodes, nodes) || !are_within(views[3]->buf, count_of(views[3]), nodes) ||
        !are_ends(views[4]->buf, nodes, votes) || !are_within(views[5]->buf, votes, INT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, "nodes, roots and votes do not fit together");
        goto done;
    }
    self = (ForestObject *)PyType_GenericAlloc(type, 0);
    if (!self) goto done;
    Trees *t = &self->trees;
    t->nodes = nodes;
    t->trees = count_of(views[3]);
    if (wide)
        t->doubles = malloc((size_t)nodes * sizeof *t->doubles);
    else
        t->floats = malloc((size_t)nodes * sizeof *t->floats);
    t->roots = copied(views[3]);
    t->first = copied(views[4]);
    t->targets = copied(views[5]);
    t->weights = copied(views[6]);
    if ((!t->doubles && !t->floats) || !t->roots || !t->first || !t->targets || !t->weights) {
        Py_CLEAR(self);
        PyErr_NoMemory();
        goto done;
    }
    fill_nodes(t, views[0]->buf, features, views[2]->buf);
    for (Py_ssize_t i = 0; i < votes; i++)
        if (t->targets[i] >= t->targets_end) t->targets_end = t->targets[i] + 1;
done:
    release(&held);
    return (PyObject *)self;
}

static PyType_Slot forest_slots[] = {
    {Py_tp_doc, "Trees, to be walked many times."},
    {Py_tp_new, forest_new},
    {Py_tp_dealloc, forest_dealloc},
    {0, NULL},
};

Type ForestType = {
    .spec = {
        .name = "onnxeval.fast._native.Forest",
        .basicsize = sizeof(ForestObject),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = forest_slots,
    },
};
