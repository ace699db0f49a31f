// SPDX-License-Identifier: Apache-2.0
#include "ops/refused.h"

#include <string.h>

#include "core/text/text.h"

// Names that begin so, or behind '*', hold that; tools/op_coverage.py reads these rows.
// clang-format off
static const struct {
    const char *name, *why;
} rows[] = {
    {"*_backward.", "gradients are not computed"},
    {"aten._fft_", "complex numbers are not supported"},
    {"aten.angle", "complex numbers are not supported"},
    {"aten.atan2.out", "results are new tensors"},
    {"aten.bernoulli.default", "random numbers are not supported"},
    {"aten.bernoulli_", "random numbers are not supported"},
    {"aten.complex", "complex numbers are not supported"},
    {"aten.conj_physical", "complex numbers are not supported"},
    {"aten.fft_", "complex numbers are not supported"},
    {"aten.imag", "complex numbers are not supported"},
    {"aten.is_complex", "complex numbers are not supported"},
    {"aten.istft", "complex numbers are not supported"},
    {"aten.multinomial.", "random numbers are not supported"},
    {"aten.native_dropout.", "random numbers are not supported"},
    {"aten.normal", "random numbers are not supported"},
    {"aten.normal_", "random numbers are not supported"},
    {"aten.polar", "complex numbers are not supported"},
    {"aten.rand.", "random numbers are not supported"},
    {"aten.rand_like.", "random numbers are not supported"},
    {"aten.randint.", "random numbers are not supported"},
    {"aten.randint_like.", "random numbers are not supported"},
    {"aten.randn.", "random numbers are not supported"},
    {"aten.randn_like.", "random numbers are not supported"},
    {"aten.randperm.", "random numbers are not supported"},
    {"aten.real", "complex numbers are not supported"},
    {"aten.resolve_conj", "complex numbers are not supported"},
    {"aten.stft", "complex numbers are not supported"},
    {"aten.sym_storage_offset", "tensors are dense, strides are not kept"},
    {"aten.uniform", "random numbers are not supported"},
    {"aten.view_as_complex", "complex numbers are not supported"},
    {"aten.view_as_real", "complex numbers are not supported"},
};
// clang-format on

static const char prefix[] = "torch.ops.";

const char *tare__why_refused(const char *target) {
    if (!tare__starts_with(target, prefix)) return NULL;
    const char *name = target + sizeof prefix - 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].name[0] == '*' ? strstr(name, rows[i].name + 1) != NULL
                                   : tare__starts_with(name, rows[i].name))
            return rows[i].why;
    return NULL;
}
