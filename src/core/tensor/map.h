// SPDX-License-Identifier: Apache-2.0
// Maps of tensors: name -> tare_tensor *, references owned by whoever owns the map.
#ifndef CORE_TENSOR_MAP_H
#define CORE_TENSOR_MAP_H

#include "core/memory/map.h"
#include "core/tensor/tensor.h"

/// Releases the map and the references in it. NULL is allowed.
void tare__tensor_map_release(map *tensors);

#endif
