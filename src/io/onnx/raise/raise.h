// SPDX-License-Identifier: Apache-2.0
// Recognizes idioms: several calls that exporters write for one operator (io/onnx/raise/).
#ifndef IO_ONNX_RAISE_RAISE_H
#define IO_ONNX_RAISE_RAISE_H

#include "io/onnx/read/state.h"

/// Inserts a call after `last`, which takes over the users, scope and file name of `last`.
tare_status tare__raise_replace(onnx_import *in, node *last, const node_spec *spec, node **out);
/// The constant that an argument reads; NULL if it is none.
tare_tensor *tare__raise_constant(onnx_import *in, const value *v);
/// True if n calls the operator with this id (ops/).
bool tare__raise_is(const node *n, const char *id);
/// Removes pairs of reshapes and permutes that cancel each other.
tare_status tare__raise_views(onnx_import *in);

#endif
