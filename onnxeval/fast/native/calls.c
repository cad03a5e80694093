#include "bindings.h"

#include <stdlib.h>
#include <string.h>

/* Calls that ran once and run again together: from a step whose inputs and outputs keep their memory. */
typedef struct {
    PyObject_HEAD
    Call **calls;
    Py_ssize_t count, room;
    int broken; /* whether something was done that it does not hold */
} Recording;

/* What takes in the calls of this thread; NULL where nothing does. */
static _Thread_local Recording *open_recording;

Call *begin_call(size_t bytes, int (*perform)(Call *)) {
    Call *call = malloc(bytes);
    if (!call) return (Call *)PyErr_NoMemory();
    call->perform = perform;
    call->held.count = 0;
    memset(call->objects, 0, bytes - offsetof(Call, objects));
    return call;
}

void hold(Call *call, PyObject *object) {
    int place = 0;
    while (call->objects[place]) place++;
    call->objects[place] = Py_NewRef(object);
}

static void discard(Call *call) {
    release(&call->held);
    for (int i = 0; i < MOST_OBJECTS; i++) Py_XDECREF(call->objects[i]);
    free(call->memory);
    free(call);
}

PyObject *abandon(Call *call) {
    discard(call);
    return NULL;
}

static int append(Recording *self, Call *call) {
    if (self->count == self->room) {
        const Py_ssize_t room = self->room ? 2 * self->room : 4;
        Call **calls = realloc(self->calls, (size_t)room * sizeof(Call *));
        if (!calls) return -1;
        self->calls = calls;
        self->room = room;
    }
    self->calls[self->count++] = call;
    return 0;
}

static PyObject *failed(int status) {
    if (status < 0) return PyErr_NoMemory();
    PyErr_SetString(PyExc_IndexError, "an index is outside");
    return NULL;
}

PyObject *conclude(Call *call) {
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = call->perform(call);
    Py_END_ALLOW_THREADS
    if (!status && open_recording && !open_recording->broken) {
        if (!append(open_recording, call)) Py_RETURN_NONE;
        open_recording->broken = 1;
    }
    discard(call);
    if (status) return failed(status);
    Py_RETURN_NONE;
}

void interrupt_recording(void) {
    if (open_recording) open_recording->broken = 1;
}

PyObject *py_interrupt(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    interrupt_recording();
    Py_RETURN_NONE;
}

static void recording_dealloc(Recording *self) {
    for (Py_ssize_t i = 0; i < self->count; i++) discard(self->calls[i]);
    free(self->calls);
    free_object((PyObject *)self);
}

static PyObject *recording_enter(Recording *self, PyObject *Py_UNUSED(nothing)) {
    if (open_recording) {
        PyErr_SetString(PyExc_RuntimeError, "this thread records already");
        return NULL;
    }
    open_recording = (Recording *)Py_NewRef((PyObject *)self);
    return Py_NewRef((PyObject *)self);
}

static PyObject *recording_exit(Recording *self, PyObject *Py_UNUSED(reason)) {
    if (open_recording == self) {
        open_recording = NULL;
        Py_DECREF((PyObject *)self);
    }
    Py_RETURN_NONE;
}

static PyObject *recording_run(Recording *self, PyObject *Py_UNUSED(nothing)) {
    int status = 0;
    Py_INCREF((PyObject *)self);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < self->count && !status; i++) status = self->calls[i]->perform(self->calls[i]);
    Py_END_ALLOW_THREADS
    Py_DECREF((PyObject *)self);
    if (status) return failed(status);
    Py_RETURN_NONE;
}

static PyObject *recording_take(Recording *self, PyObject *object) {
    if (!Py_IS_TYPE(object, RecordingType.type) || (Recording *)object == self) {
        PyErr_SetString(PyExc_TypeError, "that is no other Recording");
        return NULL;
    }
    Recording *other = (Recording *)object;
    for (Py_ssize_t i = 0; i < other->count; i++)
        if (append(self, other->calls[i])) {
            memmove(other->calls, other->calls + i, (size_t)(other->count - i) * sizeof(Call *));
            other->count -= i;
            return PyErr_NoMemory();
        }
    other->count = 0;
    Py_RETURN_NONE;
}

/* (address, bytes, how) of each buffer */
static PyObject *spans_of(const Buffers *held) {
    PyObject *spans = PyTuple_New(held->count);
    for (int i = 0; spans && i < held->count; i++) {
        const Py_buffer *view = &held->views[i];
        const char *low = view->buf, *high = low + view->itemsize;
        for (int axis = 0; axis < view->ndim; axis++) {
            if (!view->shape[axis]) high = low; /* holds nothing */
            const Py_ssize_t reach = (view->shape[axis] - 1) * (view->strides ? view->strides[axis] : 0);
            if (view->strides) *(reach < 0 ? &low : &high) += reach;
        }
        if (!view->strides) high = low + view->len;
        PyObject *span = Py_BuildValue("Kni", (unsigned long long)(uintptr_t)low, (Py_ssize_t)(high - low), (int)held->how[i]);
        if (!span) Py_CLEAR(spans);
        else PyTuple_SetItem(spans, i, span);
    }
    return spans;
}

static PyObject *recording_spans(Recording *self, PyObject *Py_UNUSED(nothing)) {
    PyObject *all = PyTuple_New(self->count);
    for (Py_ssize_t i = 0; all && i < self->count; i++) {
        PyObject *spans = spans_of(&self->calls[i]->held);
        if (!spans) Py_CLEAR(all);
        else PyTuple_SetItem(all, i, spans);
    }
    return all;
}

static PyObject *recording_is_whole(Recording *self, void *Py_UNUSED(closure)) { return PyBool_FromLong(!self->broken); }

static PyMethodDef recording_methods[] = {
    {"__enter__", (PyCFunction)(void (*)(void))recording_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))recording_exit, METH_VARARGS, NULL},
    {"run", (PyCFunction)(void (*)(void))recording_run, METH_NOARGS, NULL},
    {"take", (PyCFunction)(void (*)(void))recording_take, METH_O, NULL},
    {"spans", (PyCFunction)(void (*)(void))recording_spans, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef recording_attributes[] = {
    {"is_whole", (getter)(void (*)(void))recording_is_whole, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot recording_slots[] = {
    {Py_tp_doc, (void *)"Within `with`, the calls of this thread are taken in; run() performs them again, on the same memory."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, recording_dealloc},
    {Py_tp_methods, recording_methods},
    {Py_tp_getset, recording_attributes},
    {0, NULL},
};

Type RecordingType = {
    .spec = {
        .name = "onnxeval.fast._native.Recording",
        .basicsize = sizeof(Recording),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = recording_slots,
    },
};
