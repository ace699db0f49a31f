// SPDX-License-Identifier: Apache-2.0
// Every family's table of translation rules; searched in this order.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_RULES_H
#define IO_ONNX_READ_RULES_H

#include "io/onnx/read/import.h"

#define ONNX_RULE_FAMILIES(X)                                                                      \
    X(math)                                                                                        \
    X(activation)                                                                                  \
    X(shape)                                                                                       \
    X(linear)                                                                                      \
    X(window)                                                                                      \
    X(norm)                                                                                        \
    X(constant)                                                                                    \
    X(index)                                                                                       \
    X(reduce)                                                                                      \
    X(resize)                                                                                      \
    X(recurrent)                                                                                   \
    X(quantize)                                                                                    \
    X(refused)

#define DECLARE(family) extern const onnx_rule_table tare__onnx_##family##_rules;
ONNX_RULE_FAMILIES(DECLARE)
#undef DECLARE

#endif
