// SPDX-License-Identifier: Apache-2.0
// Lines of floats. Portable.
#define LINES(name) name##__scalar
#include "runtime/kernels/f32_lines.h"
