#include <string.h>

#include "bindings.h"

/* Rows of float32, float64, int32 or int64, (N, F). -1 with an exception. */
static int take_table(Buffers *held, PyObject *object, int how, Table *table) {
    static const char *const formats[] = {"f", "d", "i", "l"};
    Py_buffer probe;
    if (PyObject_GetBuffer(object, &probe, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return -1;
    int numbers = 0;
    while (numbers < LONGS && probe.format && probe.format[0] != formats[numbers][0]) numbers++;
    PyBuffer_Release(&probe);
    const Py_buffer *x = take(held, object, formats[numbers], how, "a table");
    if (!x) return -1;
    if (x->ndim != 2 || x->shape[1] < 1) {
        PyErr_SetString(PyExc_ValueError, "a table has no two axes, or no columns");
        return -1;
    }
    *table = (Table){.numbers = (Numbers)numbers, .rows = x->shape[0], .features = x->shape[1], .x = x->buf};
    return 0;
}

/* One of `end` numbers. -1 with an exception. */
static int take_choice(PyObject *object, int end, const char *name) {
    const long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number >= 0 && number < end) return (int)number;
    PyErr_Format(PyExc_ValueError, "there is no %s %ld", name, number);
    return -1;
}

/* An operand that may be None, of so many elements. -1 with an exception. */
static int take_counted(Buffers *held, PyObject *object, const char *format, int how, Py_ssize_t count, const char *name,
                        void *elements) {
    void *found = NULL;
    if (object != Py_None) {
        const Py_buffer *view = take(held, object, format, how, name);
        if (!view) return -1;
        if (count_of(view) != count) {
            PyErr_Format(PyExc_ValueError, "%s has %zd elements, expected %zd", name, count_of(view), count);
            return -1;
        }
        found = view->buf;
    }
    memcpy(elements, &found, sizeof found);
    return 0;
}

/* base, complement, choice, transform, labels, chosen, out; `of_wins`: the number of classes where the choice is that of
   the most wins, else 0. -1 with an exception. */
static int take_ending(Buffers *held, PyObject *const *arguments, long rows, long of_wins, Ending *e) {
    const int complement = take_choice(arguments[1], COMPLEMENTS, "complement");
    const int choice = complement < 0 ? -1 : take_choice(arguments[2], CHOICES, "choice");
    const int transform = choice < 0 ? -1 : take_choice(arguments[3], TRANSFORMS, "transform");
    Table out;
    if (transform < 0 || take_table(held, arguments[6], WRITTEN, &out)) return -1;
    const long classes = out.features, count = classes - (complement != NO_COMPLEMENT);
    if (out.numbers > DOUBLES || out.rows != rows || count < 1 || (complement != NO_COMPLEMENT && count != 1) ||
        (choice == POSITIVE && (count != 1 || classes != 2)) || (choice != NO_CHOICE && (choice == MOST_WINS) != (of_wins > 0))) {
        PyErr_SetString(PyExc_ValueError, "out is neither float32 nor float64, or does not fit the rows and scores");
        return -1;
    }
    if (take_counted(held, arguments[0], "d", 0, count, "base", &e->base) ||
        take_counted(held, arguments[4], "l", 0, of_wins ? of_wins : classes, "labels", &e->labels) ||
        take_counted(held, arguments[5], "l", WRITTEN, rows, "chosen", &e->chosen))
        return -1;
    if (choice != NO_CHOICE && !e->chosen) {
        PyErr_SetString(PyExc_TypeError, "chosen is None");
        return -1;
    }
    e->count = count;
    e->complement = (Complement)complement;
    e->choice = (Choice)choice;
    e->transform = (Transform)transform;
    memcpy(out.numbers == FLOATS ? (void *)&e->floats : (void *)&e->doubles, &out.x, sizeof out.x);
    return 0;
}

typedef struct {
    Call call;
    Table table;
    Ending ending;
    const Trees *trees;
    Aggregate aggregate;
    const double *weights;
} ScoresCall;

static int perform_trees(Call *call) {
    const ScoresCall *c = (ScoresCall *)call;
    return run_trees(c->trees, &c->table, c->aggregate, &c->ending);
}

static int take_trees(ScoresCall *c, PyObject *const *arguments) {
    if (!Py_IS_TYPE(arguments[1], ForestType.type)) {
        PyErr_SetString(PyExc_TypeError, "that is no Forest");
        return -1;
    }
    c->trees = &((const ForestObject *)arguments[1])->trees;
    const int aggregate = take_choice(arguments[2], AGGREGATES, "aggregate");
    if (aggregate < 0 || take_table(&c->call.held, arguments[0], 0, &c->table) ||
        take_ending(&c->call.held, arguments + 3, c->table.rows, 0, &c->ending))
        return -1;
    if (c->table.features < c->trees->features || c->ending.count < c->trees->targets_end ||
        (c->trees->floats && c->table.numbers != FLOATS)) {
        PyErr_SetString(PyExc_ValueError, "the forest does not fit the features or the scores");
        return -1;
    }
    hold(&c->call, arguments[1]);
    c->aggregate = (Aggregate)aggregate;
    return 0;
}

/* run_trees(x, forest, aggregate, base, complement, choice, transform, labels, chosen, out) */
PyObject *py_run_trees(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 10, "run_trees")) return NULL;
    ScoresCall *c = BEGIN(ScoresCall, perform_trees);
    if (!c) return NULL;
    return take_trees(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

static int perform_linear(Call *call) {
    const ScoresCall *c = (ScoresCall *)call;
    return run_linear(c->weights, &c->table, &c->ending);
}

/* run_linear(x, weights, base, complement, choice, transform, labels, chosen, out): weights (F, scores) of float64 */
PyObject *py_run_linear(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 9, "run_linear")) return NULL;
    ScoresCall *c = BEGIN(ScoresCall, perform_linear);
    if (!c) return NULL;
    Buffers *held = &c->call.held;
    if (take_table(held, arguments[0], 0, &c->table) || take_ending(held, arguments + 2, c->table.rows, 0, &c->ending) ||
        take_counted(held, arguments[1], "d", 0, c->table.features * c->ending.count, "weights", &c->weights))
        return abandon(&c->call);
    if (!c->weights) {
        PyErr_SetString(PyExc_TypeError, "weights is None");
        return abandon(&c->call);
    }
    return conclude(&c->call);
}

typedef struct {
    Call call;
    Table table;
    Ending ending;
    Svm svm;
} SvmCall;

static int perform_svm(Call *call) {
    const SvmCall *c = (SvmCall *)call;
    return run_svm(&c->svm, &c->table, &c->ending);
}

static int take_svm(SvmCall *c, PyObject *const *arguments) {
    Buffers *held = &c->call.held;
    Svm *s = &c->svm;
    const int kind = take_choice(arguments[1], SIGMOID_LIKE + 1, "similarity");
    if (kind < 0 || take_table(held, arguments[0], 0, &c->table)) return -1;
    s->kind = (SimilarityKind)kind;
    s->gamma = PyFloat_AsDouble(arguments[2]);
    s->coef0 = PyFloat_AsDouble(arguments[3]);
    s->degree = PyFloat_AsDouble(arguments[4]);
    s->classes = PyLong_AsLong(arguments[5]);
    if (PyErr_Occurred()) return -1;
    const Py_buffer *weights = take(held, arguments[7], "d", 0, "weights");
    if (!weights) return -1;
    if (weights->ndim == 2) s->vectors = weights->shape[0];
    if (take_counted(held, arguments[6], "d", 0, s->vectors * c->table.features, "the support vectors", &s->support))
        return -1;
    if (weights->ndim != 2 || (!s->support && s->vectors != c->table.features) || s->classes < 0 || s->classes > 1 << 15 ||
        weights->shape[1] != (s->classes ? s->classes * (s->classes - 1) / 2 : 1) || weights->shape[1] < 1) {
        PyErr_SetString(PyExc_ValueError, "the support vectors do not fit the features, the weights or the classes");
        return -1;
    }
    s->outcomes = weights->shape[1];
    s->weights = weights->buf;
    if (take_counted(held, arguments[8], "d", 0, s->outcomes, "rho", &s->rho) ||
        take_counted(held, arguments[9], "d", 0, s->outcomes, "slope", &s->slope) ||
        take_counted(held, arguments[10], "d", 0, s->outcomes, "shift", &s->shift) ||
        take_ending(held, arguments + 11, c->table.rows, s->classes, &c->ending))
        return -1;
    if (!s->rho || !s->slope != !s->shift || (s->slope && !s->classes) ||
        c->ending.count != (s->slope ? s->classes : s->outcomes)) {
        PyErr_SetString(PyExc_ValueError, "the outcomes do not fit what becomes of them");
        return -1;
    }
    return 0;
}

/* run_svm(x, similarity, gamma, coef0, degree, classes, support, weights, rho, slope, shift, base, complement, choice,
   transform, labels, chosen, out): support (F, V), weights (V, pairs of classes), all of float64; 0 classes of a regression;
   without support vectors the features themselves are weighted */
PyObject *py_run_svm(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 18, "run_svm")) return NULL;
    SvmCall *c = BEGIN(SvmCall, perform_svm);
    if (!c) return NULL;
    return take_svm(c, arguments) ? abandon(&c->call) : conclude(&c->call);
}

typedef struct {
    Call call;
    Table table;
    const double *offset, *scale;
    Norm norm;
    float *out;
} RowsCall;

static int perform_scaler(Call *call) {
    const RowsCall *c = (RowsCall *)call;
    return run_scaler(c->offset, c->scale, &c->table, c->out);
}

static int perform_normalizer(Call *call) {
    const RowsCall *c = (RowsCall *)call;
    return run_normalizer(c->norm, &c->table, c->out);
}

/* x and out, of the same size. -1 with an exception. */
static int take_both(RowsCall *c, PyObject *x, PyObject *out) {
    if (take_table(&c->call.held, x, 0, &c->table) ||
        take_floats(&c->call.held, out, c->table.rows * c->table.features, WRITTEN, "out", &c->out))
        return -1;
    if (!c->out) PyErr_SetString(PyExc_TypeError, "out is None");
    return c->out ? 0 : -1;
}

/* run_scaler(x, offset, scale, out): offset and scale (F) of float64 */
PyObject *py_run_scaler(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 4, "run_scaler")) return NULL;
    RowsCall *c = BEGIN(RowsCall, perform_scaler);
    if (!c) return NULL;
    Buffers *held = &c->call.held;
    if (take_both(c, arguments[0], arguments[3]) ||
        take_counted(held, arguments[1], "d", 0, c->table.features, "offset", &c->offset) ||
        take_counted(held, arguments[2], "d", 0, c->table.features, "scale", &c->scale))
        return abandon(&c->call);
    if (!c->offset || !c->scale) {
        PyErr_SetString(PyExc_TypeError, "offset or scale is None");
        return abandon(&c->call);
    }
    return conclude(&c->call);
}

/* run_normalizer(x, norm, out) */
PyObject *py_run_normalizer(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given) {
    if (expect_arguments(given, 3, "run_normalizer")) return NULL;
    RowsCall *c = BEGIN(RowsCall, perform_normalizer);
    if (!c) return NULL;
    const int norm = take_choice(arguments[1], NORMS, "norm");
    if (norm < 0 || take_both(c, arguments[0], arguments[2])) return abandon(&c->call);
    c->norm = (Norm)norm;
    return conclude(&c->call);
}
