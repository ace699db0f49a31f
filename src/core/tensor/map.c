// SPDX-License-Identifier: Apache-2.0
// Maps of tensors.
#include "core/tensor/map.h"

void tare__tensor_map_release(map *tensors) {
    for (size_t i = 0; i < tensors->count; i++) tare_tensor_release(tensors->entries[i].value);
    tare__map_release(tensors);
}
