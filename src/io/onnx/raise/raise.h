// SPDX-License-Identifier: Apache-2.0
// Recognizing idioms: one operator that exporters write as several calls (io/onnx/raise/).
#ifndef IO_ONNX_RAISE_RAISE_H
#define IO_ONNX_RAISE_RAISE_H

#include "io/onnx/read/state.h"

/// Puts a call behind `last`, which takes over its users, scope and name of the file.
tare_status tare__raise_replace(onnx_import *in, node *last, const node_spec *spec, node **out);
/// The constant that an argument reads; NULL where it is none.
tare_tensor *tare__raise_constant(onnx_import *in, const value *v);
/// Does n call the operator of this id (ops/)?
bool tare__raise_is(const node *n, const char *id);
/// Takes out changes of shape and order that cancel each other.
tare_status tare__raise_views(onnx_import *in);

#endif
