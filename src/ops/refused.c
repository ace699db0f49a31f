// SPDX-License-Identifier: Apache-2.0
// The operators that are deliberately not supported.
#include "ops/refused.h"

#include <string.h>

#include "core/text/text.h"

// `name`: a prefix of the operator's name, or after '*' a part of it. tools/op_coverage.py reads
// these rows.
// clang-format off
static const struct {
    const char *name, *why;
} rows[] = {
    {"*_backward.", "gradients are not computed"},
    {"aten._fft_", "complex numbers are not supported"},
    {"aten._linalg_eigh", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten._linalg_svd", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten._lu_with_info", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.angle", "complex numbers are not supported"},
    {"aten.atan2.out", "results are new tensors"},
    {"aten.bernoulli.default", "random numbers are not supported"},
    {"aten.bernoulli_", "random numbers are not supported"},
    {"aten.binary_cross_entropy", "losses are for training, which is not supported"},
    {"aten.binomial", "random numbers are not supported"},
    {"aten.cauchy", "random numbers are not supported"},
    {"aten.cholesky", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.complex", "complex numbers are not supported"},
    {"aten.conj_physical", "complex numbers are not supported"},
    {"aten.cosine_embedding_loss", "losses are for training, which is not supported"},
    {"aten.cross_entropy_loss", "losses are for training, which is not supported"},
    {"aten.ctc_loss", "losses are for training, which is not supported"},
    {"aten.exponential", "random numbers are not supported"},
    {"aten.fft_", "complex numbers are not supported"},
    {"aten.geometric", "random numbers are not supported"},
    {"aten.geqrf", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.hinge_embedding_loss", "losses are for training, which is not supported"},
    {"aten.imag", "complex numbers are not supported"},
    {"aten.is_complex", "complex numbers are not supported"},
    {"aten.istft", "complex numbers are not supported"},
    {"aten.kl_div", "losses are for training, which is not supported"},
    {"aten.linalg_cholesky", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_cond", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_eig", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_householder_product", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_ldl_", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_lstsq", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_lu", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_matrix_exp", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_matrix_rank", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_matrix_sqrth", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_pinv", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_qr", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_solve_triangular", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_svd", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_tensorinv", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.linalg_tensorsolve", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.log_normal", "random numbers are not supported"},
    {"aten.lstsq", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.lu_", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.margin_ranking_loss", "losses are for training, which is not supported"},
    {"aten.matrix_exp", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.multi_margin_loss", "losses are for training, which is not supported"},
    {"aten.multilabel_margin_loss", "losses are for training, which is not supported"},
    {"aten.multinomial.", "random numbers are not supported"},
    {"aten.native_dropout.", "random numbers are not supported"},
    {"aten.nll_loss", "losses are for training, which is not supported"},
    {"aten.normal", "random numbers are not supported"},
    {"aten.normal_", "random numbers are not supported"},
    {"aten.ormqr", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.pinverse", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.poisson.", "random numbers are not supported"},
    {"aten.poisson_nll_loss", "losses are for training, which is not supported"},
    {"aten.polar", "complex numbers are not supported"},
    {"aten.rand.", "random numbers are not supported"},
    {"aten.rand_like.", "random numbers are not supported"},
    {"aten.randint.", "random numbers are not supported"},
    {"aten.randint_like.", "random numbers are not supported"},
    {"aten.randn.", "random numbers are not supported"},
    {"aten.randn_like.", "random numbers are not supported"},
    {"aten.random", "random numbers are not supported"},
    {"aten.randperm.", "random numbers are not supported"},
    {"aten.real", "complex numbers are not supported"},
    {"aten.soft_margin_loss", "losses are for training, which is not supported"},
    {"aten.stft", "complex numbers are not supported"},
    {"aten.svd", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.sym_storage_offset", "tensors are dense, strides are not kept"},
    {"aten.triangular_solve", "decompositions of matrices are not supported, compute them beforehand"},
    {"aten.triplet_margin_loss", "losses are for training, which is not supported"},
    {"aten.uniform", "random numbers are not supported"},
    {"aten.view_as_complex", "complex numbers are not supported"},
    {"aten.view_as_real", "complex numbers are not supported"},
};
// clang-format on

static const char prefix[] = "torch.ops.";

// The same by the names of Python's functions.
static const char *why_function(const char *target) {
    static const char *const complex[] = {"torch._C._fft.", "torch.fft.", "torch.stft",
                                          "torch.istft", "torch.view_as_complex"};
    for (size_t i = 0; i < sizeof complex / sizeof *complex; i++)
        if (tare__starts_with(target, complex[i])) return "complex numbers are not supported";
    return NULL;
}

const char *tare__why_refused(const char *target) {
    if (!tare__starts_with(target, prefix)) return why_function(target);
    const char *name = target + sizeof prefix - 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].name[0] == '*' ? strstr(name, rows[i].name + 1) != NULL
                                   : tare__starts_with(name, rows[i].name))
            return rows[i].why;
    return NULL;
}
