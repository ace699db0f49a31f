// SPDX-License-Identifier: Apache-2.0
// Lines of floats. With AVX2.
#define LINES(name) name##__avx2
#include "runtime/kernels/f32_lines.h"
