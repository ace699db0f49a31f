// SPDX-License-Identifier: Apache-2.0
// Operators by number: those that somebody asks for.
#ifndef OPS_IDS_H
#define OPS_IDS_H

/// TARE_OP_CONV2D is the row of id "conv2d". What ids.def does not list is TARE_OP_NONE.
typedef enum op_id {
    TARE_OP_NONE,
#define OP_ID(name, id) TARE_OP_##name,
#include "ops/ids.def"
#undef OP_ID
    TARE_OP_COUNT,
} op_id;

#endif
