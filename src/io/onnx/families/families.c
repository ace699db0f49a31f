// SPDX-License-Identifier: Apache-2.0
// The list of all families.
#include "io/onnx/families/families.h"

const onnx_family *tare__onnx_family_at(size_t i) {
    static const onnx_family *const families[] = {
#define FAMILY(name) &tare__onnx_##name##_family,
        ONNX_FAMILIES(FAMILY)
#undef FAMILY
    };
    return i < sizeof families / sizeof *families ? families[i] : NULL;
}
