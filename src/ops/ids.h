// SPDX-License-Identifier: Apache-2.0
// The ids of operators as an enum.
#ifndef OPS_IDS_H
#define OPS_IDS_H

/// TARE_OP_CONV2D is the row with the id "conv2d". The build generates ops/ids.def from the rows ID
/// in ops/rows/, sorted by id.
typedef enum op_id {
    TARE_OP_NONE,
#define ID(id, name) TARE_OP_##name,
#include "ops/ids.def"
#undef ID
    TARE_OP_COUNT,
} op_id;

#endif
