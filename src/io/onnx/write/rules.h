// SPDX-License-Identifier: Apache-2.0
// Every family's table of rules for writing.
// Private to io/onnx/write.
#ifndef IO_ONNX_WRITE_RULES_H
#define IO_ONNX_WRITE_RULES_H

#include "io/onnx/write/write.h"

#define ONNX_WRITE_FAMILIES(X)                                                                     \
    X(math)                                                                                        \
    X(activation)                                                                                  \
    X(layer)                                                                                       \
    X(norm)                                                                                        \
    X(attention)                                                                                   \
    X(pool)                                                                                        \
    X(reduce)                                                                                      \
    X(shape)                                                                                       \
    X(select)                                                                                      \
    X(index)                                                                                       \
    X(create)                                                                                      \
    X(resize)                                                                                      \
    X(recurrent)                                                                                   \
    X(quantize)                                                                                    \
    X(quantized)

#define DECLARE(family) extern const onnx_write_table tare__onnx_write_##family##_rules;
ONNX_WRITE_FAMILIES(DECLARE)
#undef DECLARE

#endif
