// SPDX-License-Identifier: Apache-2.0
// Families of ONNX operators. The file of a family holds everything about its operators: how nodes
// are read, which groups of nodes exporters write for one operator, and how calls are written as
// nodes. The three interfaces are described in read/import.h, raise/match.h and write/write.h.
// Private to io/onnx.
#ifndef IO_ONNX_FAMILIES_FAMILIES_H
#define IO_ONNX_FAMILIES_FAMILIES_H

#include "io/onnx/read/import.h"
#include "io/onnx/write/write.h"

struct idiom; // io/onnx/raise/match.h

typedef struct onnx_family {
    onnx_rule_table read;
    onnx_write_table write;
    const struct idiom *idioms;
    size_t idiom_count;
} onnx_family;

/// In the order in which they are searched.
#define ONNX_FAMILIES(X)                                                                           \
    X(math)                                                                                        \
    X(activation)                                                                                  \
    X(layer)                                                                                       \
    X(norm)                                                                                        \
    X(attention)                                                                                   \
    X(pool)                                                                                        \
    X(reduce)                                                                                      \
    X(shape)                                                                                       \
    X(join)                                                                                        \
    X(slice)                                                                                       \
    X(pad)                                                                                         \
    X(index)                                                                                       \
    X(create)                                                                                      \
    X(resize)                                                                                      \
    X(recurrent)                                                                                   \
    X(grouped)                                                                                     \
    X(quantize)                                                                                    \
    X(quantized)                                                                                   \
    X(flow)                                                                                        \
    X(refused)

#define DECLARE(name) extern const onnx_family tare__onnx_##name##_family;
ONNX_FAMILIES(DECLARE)
#undef DECLARE

/// Family i in this order; NULL past the last one.
const onnx_family *tare__onnx_family_at(size_t i);

#endif
