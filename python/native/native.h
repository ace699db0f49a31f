// SPDX-License-Identifier: Apache-2.0
// The part of the package that is written in C: tensors that share memory with Python, and the runs
// of sessions. It uses CPython's stable ABI of 3.11, the first one that has buffers, and nothing of
// NumPy's.
#ifndef NATIVE_H
#define NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "tare/tare.h"

/// A tensor as a Python object: it has one reference of `tensor`, which may be NULL after close.
typedef struct {
    PyObject ob_base;
    tare_tensor *tensor;
} tensor_object;

/// What the module knows, made by its init function.
typedef struct {
    PyTypeObject *tensor_type, *session_type;
    PyObject *tensor_class; // what tensors are made of: a subclass that Python has registered
    PyObject *array_of;     // callable: a tensor as an array, without a copy
    PyObject *buffer_of;    // callable: any array, list or number as an object that has a buffer
    PyObject *error_of;     // callable: status, where, message, hint as an exception
} native_state;
extern native_state native;

extern PyType_Spec tensor_spec, session_spec;

/// Takes over a reference of `tensor`, also on failure.
PyObject *tensor_adopt(tare_tensor *tensor);
/// The tensor of a Python object: its own, or one over its buffer, or over what buffer_of makes of
/// it. A new reference; NULL with an exception set.
tare_tensor *tensor_of(PyObject *object);
/// Does NumPy have the dtype of this tensor?
bool tensor_is_plain(const tare_tensor *tensor);
/// Sets the exception that `error` tells of; returns NULL.
PyObject *raise_error(tare_status status, const tare_error *error);

#endif
