// SPDX-License-Identifier: Apache-2.0
// Lines of floats. With AVX-512.
#define LINES(name) name##__avx512vnni
#include "runtime/kernels/f32_lines.h"
