// SPDX-License-Identifier: Apache-2.0
// The tables of all operator families, in the order in which ops/table.c searches them.
#ifndef OPS_FAMILIES_FAMILIES_H
#define OPS_FAMILIES_FAMILIES_H

#include "ops/op.h"

#define OP_FAMILIES(X)                                                                             \
    X(conv)                                                                                        \
    X(linear)                                                                                      \
    X(einsum)                                                                                      \
    X(activation)                                                                                  \
    X(pool)                                                                                        \
    X(attention)                                                                                   \
    X(gate)                                                                                        \
    X(norm)                                                                                        \
    X(arithmetic)                                                                                  \
    X(unary)                                                                                       \
    X(bitwise)                                                                                     \
    X(where)                                                                                       \
    X(numbers)                                                                                     \
    X(reduce)                                                                                      \
    X(order)                                                                                       \
    X(scan)                                                                                        \
    X(create)                                                                                      \
    X(shape)                                                                                       \
    X(select)                                                                                      \
    X(slice)                                                                                       \
    X(exported)                                                                                    \
    X(core_aten)                                                                                   \
    X(matrix)                                                                                      \
    X(rank)                                                                                        \
    X(picks)                                                                                       \
    X(counts)                                                                                      \
    X(formulas)                                                                                    \
    X(spatial)                                                                                     \
    X(index)                                                                                       \
    X(scatter)                                                                                     \
    X(join)                                                                                        \
    X(pad)                                                                                         \
    X(resize)                                                                                      \
    X(windows)                                                                                     \
    X(embedding)                                                                                   \
    X(recurrent)                                                                                   \
    X(fake_quantize)                                                                               \
    X(quantize)                                                                                    \
    X(quantized_arithmetic)                                                                        \
    X(packed)                                                                                      \
    X(quantized_rule)                                                                              \
    X(quantized_matmul)                                                                            \
    X(decomposed)                                                                                  \
    X(decomposed_groups)                                                                           \
    X(affine)                                                                                      \
    X(out_dtype)                                                                                   \
    X(flow)

#define DECLARE(family) extern const op_table tare__##family##_ops;
OP_FAMILIES(DECLARE)
#undef DECLARE

#endif
