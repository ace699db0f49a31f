// SPDX-License-Identifier: Apache-2.0
// Runs of sessions: arrays in, arrays out, without Python code in between and without the
// interpreter's lock.
#include "native.h"

enum { MOST_INPUTS = 64, MOST_OUTPUTS = 256 };

typedef struct {
    PyObject ob_base;
    tare_session *session; // NULL: closed
    tare_error *error;     // of the one call that may run
    PyObject *owner;       // the model, which must outlive the session
    int running;           // calls at work; changed under the interpreter's lock only
} session_object;

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *address = NULL, *owner = NULL;
    if (!PyArg_ParseTuple(args, "OO", &address, &owner)) return NULL;
    tare_session *session = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    session_object *made = (session_object *)allocate(type, 0);
    if (made == NULL) {
        tare_session_destroy(session);
        return NULL;
    }
    made->session = session;
    made->error = tare_error_create();
    Py_INCREF(owner);
    made->owner = owner;
    return (PyObject *)made;
}

static void destroy(PyObject *self) {
    session_object *s = (session_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    tare_session_destroy(s->session);
    tare_error_destroy(s->error);
    Py_CLEAR(s->owner);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static bool is_open(const session_object *s) {
    if (s->session != NULL) return true;
    PyErr_SetString(PyExc_ValueError, "the session is closed");
    return false;
}

static PyObject *close_session(PyObject *self, PyObject *unused) {
    (void)unused;
    session_object *s = (session_object *)self;
    if (s->running > 0) {
        PyErr_SetString(PyExc_RuntimeError, "the session is running in another thread");
        return NULL;
    }
    tare_session *session = s->session;
    s->session = NULL;
    tare_session_destroy(session);
    Py_CLEAR(s->owner);
    Py_RETURN_NONE;
}

static PyObject *result_of(tare_tensor *tensor) {
    const bool plain = tensor_is_plain(tensor);
    PyObject *object = tensor_adopt(tensor);
    if (object == NULL || !plain || native.array_of == NULL) return object;
    PyObject *array = PyObject_CallFunctionObjArgs(native.array_of, object, NULL);
    Py_DECREF(object);
    return array;
}

static PyObject *results_of(tare_tensor *const *outputs, size_t count) {
    PyObject *results = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        if (results == NULL) {
            tare_tensor_release(outputs[i]);
            continue;
        }
        PyObject *result = result_of(outputs[i]);
        if (result == NULL || PyTuple_SetItem(results, (Py_ssize_t)i, result) < 0)
            Py_CLEAR(results);
    }
    return results;
}

static PyObject *run_tensors(session_object *s, const tare_tensor *const *inputs, size_t count) {
    // A second call of the same session fails inside; the error that it fills must be its own.
    tare_error *error = s->running == 0 ? s->error : tare_error_create();
    tare_session *session = s->session;
    tare_tensor *outputs[MOST_OUTPUTS];
    size_t output_count = 0;
    s->running++;
    tare_status status;
    Py_BEGIN_ALLOW_THREADS status =
        tare_session_run(session, inputs, count, outputs, MOST_OUTPUTS, &output_count, error);
    Py_END_ALLOW_THREADS s->running--;
    PyObject *results =
        status == TARE_OK ? results_of(outputs, output_count) : raise_error(status, error);
    if (error != s->error) tare_error_destroy(error);
    return results;
}

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    session_object *s = (session_object *)self;
    if (!is_open(s)) return NULL;
    if (count > MOST_INPUTS) {
        PyErr_Format(PyExc_ValueError, "expected at most %d inputs, found %zd", MOST_INPUTS, count);
        return NULL;
    }
    tare_tensor *inputs[MOST_INPUTS];
    Py_ssize_t made = 0;
    while (made < count && (inputs[made] = tensor_of(args[made])) != NULL) made++;
    PyObject *results = NULL;
    // What made the inputs may have been Python code that closed the session.
    if (made == count && is_open(s))
        results = run_tensors(s, (const tare_tensor *const *)inputs, (size_t)count);
    for (Py_ssize_t i = 0; i < made; i++) tare_tensor_release(inputs[i]);
    return results;
}

static PyObject *get_address(PyObject *self, void *unused) {
    (void)unused;
    session_object *s = (session_object *)self;
    return is_open(s) ? PyLong_FromVoidPtr(s->session) : NULL;
}

static PyObject *get_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(((session_object *)self)->session == NULL);
}

static PyMethodDef methods[] = {
    {"_run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "Runs the model on arrays."},
    {"_close", close_session, METH_NOARGS, "Stops the threads and frees the session."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef facts[] = {
    {"_address", get_address, NULL, "Where the session is, for the C interface.", NULL},
    {"closed", get_closed, NULL, "Has close() been called?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The run of a model."}, {Py_tp_new, create},   {Py_tp_dealloc, destroy},
    {Py_tp_methods, methods},           {Py_tp_getset, facts}, {0, NULL},
};
PyType_Spec session_spec = {
    .name = "tare._native.Session",
    .basicsize = sizeof(session_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
