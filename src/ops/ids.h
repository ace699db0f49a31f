// SPDX-License-Identifier: Apache-2.0
// Operators by number.
#ifndef OPS_IDS_H
#define OPS_IDS_H

/// TARE_OP_CONV2D is the row of id "conv2d". The build makes ops/ids.def of the rows `ID` in
/// ops/rows/, in the order of the ids.
typedef enum op_id {
    TARE_OP_NONE,
#define ID(id, name) TARE_OP_##name,
#include "ops/ids.def"
#undef ID
    TARE_OP_COUNT,
} op_id;

#endif
