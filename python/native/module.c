// SPDX-License-Identifier: Apache-2.0
// The module tare._native. The library is inside it; Python calls it through ctypes, and through
// the two types here.
#include "native.h"

native_state native;

PyObject *raise_error(tare_status status, const tare_error *error) {
    if (PyErr_Occurred()) return NULL;
    PyObject *exception =
        PyObject_CallFunction(native.error_of, "isss", (int)status, tare_error_where(error),
                              tare_error_message(error), tare_error_hint(error));
    if (exception == NULL) return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return NULL;
}

static PyObject *adopt(PyObject *module, PyObject *address) {
    (void)module;
    tare_tensor *tensor = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    if (tensor != NULL) return tensor_adopt(tensor);
    PyErr_SetString(PyExc_ValueError, "expected the address of a tensor, found 0");
    return NULL;
}

static PyObject *lend(PyObject *module, PyObject *address) {
    (void)module;
    tare_tensor *tensor = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    if (tensor != NULL) return tensor_adopt(tare_tensor_retain(tensor));
    PyErr_SetString(PyExc_ValueError, "expected the address of a tensor, found 0");
    return NULL;
}

static PyObject *make(PyObject *module, PyObject *object) {
    (void)module;
    tare_tensor *tensor = tensor_of(object);
    return tensor == NULL ? NULL : tensor_adopt(tensor);
}

static PyObject *setup(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *tensor_class, *array_of, *buffer_of, *error_of;
    if (!PyArg_ParseTuple(args, "OOOO", &tensor_class, &array_of, &buffer_of, &error_of))
        return NULL;
    PyObject **places[] = {&native.tensor_class, &native.array_of, &native.buffer_of,
                           &native.error_of};
    PyObject *given[] = {tensor_class, array_of, buffer_of, error_of};
    for (int i = 0; i < 4; i++) {
        PyObject *old = *places[i];
        Py_INCREF(given[i]);
        *places[i] = given[i];
        Py_XDECREF(old);
    }
    Py_RETURN_NONE;
}

// cli/main.c, which has this name here.
int tare_command_line(int argc, char **argv);

// The texts of a list, which must stay as they are; NULL with an exception set.
static char **arguments_of(PyObject *list) {
    const Py_ssize_t count = PyList_Size(list);
    if (count < 0) return NULL;
    char **made = PyMem_Calloc((size_t)count + 1, sizeof *made);
    if (made == NULL) return (char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        made[i] = PyBytes_AsString(PyList_GetItem(list, i));
        if (made[i] != NULL) continue;
        PyMem_Free(made);
        return NULL;
    }
    return made;
}

static PyObject *run_command_line(PyObject *module, PyObject *list) {
    (void)module;
    char **argv = arguments_of(list);
    if (argv == NULL) return NULL;
    const int argc = (int)PyList_Size(list);
    int status = 0;
    Py_BEGIN_ALLOW_THREADS status = tare_command_line(argc, argv);
    Py_END_ALLOW_THREADS PyMem_Free(argv);
    return PyLong_FromLong(status);
}

static PyMethodDef methods[] = {
    {"command_line", run_command_line, METH_O, "Runs the command line with a list of bytes."},
    {"adopt", adopt, METH_O, "The tensor at an address, whose reference is taken over."},
    {"lend", lend, METH_O, "The tensor at an address, with a reference of its own."},
    {"make", make, METH_O, "A tensor over an object's memory."},
    {"setup", setup, METH_VARARGS, "Registers what only Python can make."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "tare._native",
    .m_doc = "tare's library, tensors and sessions.",
    .m_size = -1, // one per process, as the library is
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__native(void);
__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    native.tensor_type = (PyTypeObject *)PyType_FromSpec(&tensor_spec);
    native.session_type = (PyTypeObject *)PyType_FromSpec(&session_spec);
    if (native.tensor_type == NULL || native.session_type == NULL ||
        PyModule_AddObjectRef(module, "Tensor", (PyObject *)native.tensor_type) < 0 ||
        PyModule_AddObjectRef(module, "Session", (PyObject *)native.session_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    native.tensor_class = (PyObject *)native.tensor_type;
    Py_INCREF(native.tensor_class);
    return module;
}
