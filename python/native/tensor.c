// SPDX-License-Identifier: Apache-2.0
// Tensors: over memory of Python's, and as memory that Python reads, without copies in either
// direction.
#include <stdlib.h>
#include <string.h>

#include "native.h"

// --- dtypes, as the struct module writes them ---

typedef struct {
    tare_dtype dtype;
    const char *format;
    uint8_t code, bits; // DLPack's: 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool
} dtype_row;
static const dtype_row dtypes[] = {
    {TARE_FLOAT32, "f", 2, 32}, {TARE_FLOAT64, "d", 2, 64},   {TARE_FLOAT16, "e", 2, 16},
    {TARE_UINT8, "B", 1, 8},    {TARE_INT8, "b", 0, 8},       {TARE_UINT16, "H", 1, 16},
    {TARE_INT16, "h", 0, 16},   {TARE_INT32, "i", 0, 32},     {TARE_INT64, "q", 0, 64},
    {TARE_BOOL, "?", 6, 8},     {TARE_BFLOAT16, NULL, 4, 16},
};

static const dtype_row *row_of(tare_dtype dtype) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].dtype == dtype) return &dtypes[i];
    return NULL;
}

// The row whose elements are read as this dtype's: quint8 as uint8.
static const dtype_row *storage_row(tare_dtype dtype) {
    switch (dtype) {
    case TARE_QUINT8:
    case TARE_QUINT4X2:
        return row_of(TARE_UINT8);
    case TARE_QINT8:
        return row_of(TARE_INT8);
    case TARE_QINT32:
        return row_of(TARE_INT32);
    default:
        return row_of(dtype);
    }
}

bool tensor_is_plain(const tare_tensor *tensor) {
    const dtype_row *row = row_of(tare_tensor_dtype(tensor));
    return row != NULL && row->format != NULL;
}

// "<f", "=f", "@f" and "f" are the same here: the machine's order.
static tare_dtype dtype_of(const Py_buffer *buffer) {
    const char *format = buffer->format != NULL ? buffer->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (format[0] == '\0' || format[1] != '\0') return TARE_DTYPE_UNSET;
    if (strchr("lqn", *format) != NULL) return buffer->itemsize == 8 ? TARE_INT64 : TARE_INT32;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].format != NULL && dtypes[i].format[0] == *format &&
            (Py_ssize_t)tare_dtype_size(dtypes[i].dtype) == buffer->itemsize)
            return dtypes[i].dtype;
    return TARE_DTYPE_UNSET;
}

// --- over memory of Python's ---

// The last tensor that shares the memory may go in any thread, and after the interpreter has ended.
static void release_buffer(void *owner) {
    if (!Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(owner);
    PyMem_Free(owner);
    PyGILState_Release(state);
}

static tare_tensor *wrap_buffer(Py_buffer *buffer, tare_error *error) {
    const tare_dtype dtype = dtype_of(buffer);
    if (dtype == TARE_DTYPE_UNSET) {
        PyErr_Format(PyExc_TypeError,
                     "expected an array of a dtype that tare has, found format '%s'",
                     buffer->format != NULL ? buffer->format : "");
        return NULL;
    }
    if (buffer->ndim > TARE_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "expected at most %d dimensions, found %d", TARE_MAX_DIMS,
                     buffer->ndim);
        return NULL;
    }
    int64_t shape[TARE_MAX_DIMS];
    for (int i = 0; i < buffer->ndim; i++) shape[i] = buffer->shape[i];
    tare_tensor *made = NULL;
    const tare_status status = tare_tensor_wrap(dtype, buffer->ndim, shape, buffer->buf, false,
                                                release_buffer, buffer, &made, error);
    if (status != TARE_OK) (void)raise_error(status, error);
    return made;
}

static tare_tensor *over_buffer(PyObject *object) {
    Py_buffer *buffer = PyMem_Malloc(sizeof *buffer);
    if (buffer == NULL) return (void)PyErr_NoMemory(), NULL;
    if (PyObject_GetBuffer(object, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
        PyMem_Free(buffer);
        return NULL;
    }
    tare_error *error = tare_error_create();
    tare_tensor *made = wrap_buffer(buffer, error);
    tare_error_destroy(error);
    if (made == NULL) {
        PyBuffer_Release(buffer);
        PyMem_Free(buffer);
    }
    return made;
}

tare_tensor *tensor_of(PyObject *object) {
    if (PyObject_TypeCheck(object, native.tensor_type))
        return tare_tensor_retain(((tensor_object *)object)->tensor);
    if (PyObject_CheckBuffer(object) && !PyBytes_Check(object)) {
        tare_tensor *made = over_buffer(object);
        if (made != NULL ||
            !(PyErr_ExceptionMatches(PyExc_BufferError) ||
              PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError)))
            return made;
        PyErr_Clear(); // its elements are not in one row, or in another order of bytes
    }
    if (native.buffer_of == NULL) {
        PyErr_SetString(PyExc_TypeError, "expected an object with a buffer");
        return NULL;
    }
    PyObject *other = PyObject_CallFunctionObjArgs(native.buffer_of, object, NULL);
    if (other == NULL) return NULL;
    tare_tensor *made = PyObject_TypeCheck(other, native.tensor_type)
                            ? tare_tensor_retain(((tensor_object *)other)->tensor)
                            : over_buffer(other);
    Py_DECREF(other);
    return made;
}

// --- as memory that Python reads ---

PyObject *tensor_adopt(tare_tensor *tensor) {
    PyTypeObject *type = (PyTypeObject *)native.tensor_class;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tensor_object *made = (tensor_object *)allocate(type, 0);
    if (made == NULL)
        tare_tensor_release(tensor);
    else
        made->tensor = tensor;
    return (PyObject *)made;
}

static void destroy(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tare_tensor_release(((tensor_object *)self)->tensor);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *object = NULL;
    static char *names[] = {"object", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O", names, &object)) return NULL;
    tare_tensor *tensor = tensor_of(object);
    if (tensor == NULL) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tensor_object *made = (tensor_object *)allocate(type, 0);
    if (made == NULL)
        tare_tensor_release(tensor);
    else
        made->tensor = tensor;
    return (PyObject *)made;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    tare_tensor *tensor = ((tensor_object *)self)->tensor;
    const dtype_row *row = storage_row(tare_tensor_dtype(tensor));
    view->obj = NULL;
    if (row == NULL || row->format == NULL) {
        PyErr_Format(PyExc_BufferError, "%s has no format in Python; to_float() gives float32",
                     tare_dtype_name(tare_tensor_dtype(tensor)));
        return -1;
    }
    if (tare_tensor_data(tensor) == NULL) {
        PyErr_SetString(PyExc_BufferError, "the tensor has a shape only, no elements");
        return -1;
    }
    void *data = tare_tensor_mutable_data(tensor);
    view->readonly = data == NULL;
    if (view->readonly && (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "the tensor is read-only: its elements are shared");
        return -1;
    }
    const int ndim = tare_tensor_ndim(tensor);
    Py_ssize_t *sizes = PyMem_Malloc(sizeof *sizes * 2 * (size_t)(ndim + 1));
    if (sizes == NULL) return PyErr_NoMemory(), -1;
    const int64_t *shape = tare_tensor_shape(tensor);
    view->itemsize = (Py_ssize_t)tare_dtype_size(tare_tensor_dtype(tensor));
    Py_ssize_t stride = view->itemsize;
    for (int i = ndim - 1; i >= 0; i--) {
        sizes[i] = (Py_ssize_t)shape[i];
        sizes[ndim + i] = stride;
        stride *= shape[i] > 0 ? (Py_ssize_t)shape[i] : 1;
    }
    view->buf = data != NULL ? data : (void *)tare_tensor_data(tensor);
    view->len = (Py_ssize_t)tare_tensor_element_count(tensor) * view->itemsize;
    view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? (char *)row->format : NULL;
    view->ndim = ndim;
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? sizes : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? sizes + ndim : NULL;
    view->suboffsets = NULL;
    view->internal = sizes;
    Py_INCREF(self);
    view->obj = self;
    return 0;
}

static void release_view(PyObject *self, Py_buffer *view) {
    (void)self;
    PyMem_Free(view->internal);
}

// --- DLPack: the structs of its version 0, which every reader knows ---

typedef struct {
    int32_t type, id;
} dl_device;
typedef struct {
    void *data;
    dl_device device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void *owner;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

static void delete_managed(dl_managed *managed) {
    tare_tensor_release(managed->owner);
    free(managed);
}

static void delete_capsule(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return; // a reader has taken it
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    if (managed != NULL) managed->deleter(managed);
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords; // a stream and a version may be wished for; neither matters here
    tare_tensor *tensor = ((tensor_object *)self)->tensor;
    const dtype_row *row = storage_row(tare_tensor_dtype(tensor));
    if (row == NULL || tare_tensor_data(tensor) == NULL) {
        PyErr_Format(PyExc_BufferError, "a tensor of %s has no form in DLPack",
                     tare_dtype_name(tare_tensor_dtype(tensor)));
        return NULL;
    }
    dl_managed *managed = malloc(sizeof *managed);
    if (managed == NULL) return PyErr_NoMemory();
    *managed = (dl_managed){
        .tensor = {.data = (void *)tare_tensor_data(tensor),
                   .device = {.type = 1}, // the CPU
                   .ndim = tare_tensor_ndim(tensor),
                   .dtype = {row->code, row->bits, 1},
                   .shape = (int64_t *)tare_tensor_shape(tensor)},
        .owner = tare_tensor_retain(tensor),
        .deleter = delete_managed,
    };
    PyObject *capsule = PyCapsule_New(managed, "dltensor", delete_capsule);
    if (capsule == NULL) delete_managed(managed);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", 1, 0);
}

// --- facts ---

static PyObject *get_address(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(((tensor_object *)self)->tensor);
}

static PyObject *get_dtype(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(tare_tensor_dtype(((tensor_object *)self)->tensor));
}

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    const tare_tensor *tensor = ((tensor_object *)self)->tensor;
    const int ndim = tare_tensor_ndim(tensor);
    PyObject *shape = PyTuple_New(ndim);
    for (int i = 0; shape != NULL && i < ndim; i++) {
        PyObject *size = PyLong_FromLongLong(tare_tensor_shape(tensor)[i]);
        if (size == NULL || PyTuple_SetItem(shape, i, size) < 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the tensor's memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "The CPU: (1, 0)."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef facts[] = {
    {"_address", get_address, NULL, "Where the tensor is, for the C interface.", NULL},
    {"_dtype", get_dtype, NULL, "The number of the dtype.", NULL},
    {"shape", get_shape, NULL, "The sizes, outermost first.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A dense tensor that shares its memory with Python."},
    {Py_tp_new, create},
    {Py_tp_dealloc, destroy},
    {Py_tp_methods, methods},
    {Py_tp_getset, facts},
    {Py_bf_getbuffer, get_buffer},
    {Py_bf_releasebuffer, release_view},
    {0, NULL},
};
PyType_Spec tensor_spec = {
    .name = "tare._native.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
