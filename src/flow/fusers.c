// SPDX-License-Identifier: Apache-2.0
// The built-in fusers. The class of a fused module follows from the triple (operator, dimensions,
// neighbours), so one function implements all fusers of torch: it sorts the leaves by role, checks
// them, folds a batch norm, and looks up the class.
#include "flow/fusers.h"

#include <stdio.h>
#include <string.h>

#include "config/builtin_names.h"
#include "flow/fold.h"
#include "ops/op.h"
#include "ops/text/print.h"

// The leaves by role.
typedef struct sorted_leaves {
    const module *weighted, *bn, *activation;
    bool has_add;
} sorted_leaves;

static bool is_op(const module *m, op_id op) {
    return m != NULL && tare__class_op(m->class) == op;
}

static bool is_weighted(const module *m) {
    return is_op(m, TARE_OP_LINEAR) ||
           tare__op_has(tare__class_row(m->class), OP_CONVOLUTION | OP_TRANSPOSED);
}

static sorted_leaves sort_leaves(const fuse_leaves *leaves) {
    sorted_leaves s = {0};
    for (size_t i = 0; i < leaves->count; i++) {
        const module *m = leaves->modules[i];
        if (m == NULL) {
            if (leaves->functions[i] != NULL)
                s.has_add = true; // the only function torch fuses beside relu
        } else if (is_weighted(m)) {
            s.weighted = m;
        } else if (is_op(m, TARE_OP_BATCH_NORM)) {
            s.bn = m;
        } else {
            s.activation = m;
        }
    }
    return s;
}

static fused_with neighbours(const sorted_leaves *s, bool is_qat) {
    const bool has_relu = is_op(s->activation, TARE_OP_RELU);
    if (s->has_add) return has_relu ? FUSED_ADD_RELU : FUSED_ADD;
    if (is_op(s->activation, TARE_OP_LEAKY_RELU)) return FUSED_LEAKY_RELU;
    if (is_op(s->activation, TARE_OP_TANH)) return FUSED_TANH;
    const bool keeps_bn = is_qat && s->bn != NULL && s->weighted != NULL;
    if (keeps_bn) return has_relu ? FUSED_BN_RELU : FUSED_BN;
    return has_relu ? FUSED_RELU : FUSED_NONE;
}

// The modules as torch prints a tuple of them.
static tare_status modules_text(const sorted_leaves *s, text *out, tare_error *err) {
    const module *const modules[] = {s->weighted, s->bn, s->activation};
    for (size_t i = 0; i < 3; i++) {
        if (modules[i] == NULL) continue;
        if (i > 0) tare__text_append(out, ", ");
        TARE_TRY(tare__print_module(modules[i], out, err));
    }
    if (s->has_add) tare__text_append(out, ", add");
    return tare__text_status(out, err);
}

static tare_status refuse_qat(const fuser_name *fuser, const sorted_leaves *s, tare_error *err) {
    if (tare__op_has(tare__class_row(s->weighted->class), OP_TRANSPOSED))
        return tare__fail(err, TARE_UNSUPPORTED, "Fusing %s+BatchNorm not yet supported in QAT.",
                          fuser->subject);
    text modules = {0};
    tare_status status = modules_text(s, &modules, err);
    if (status == TARE_OK)
        status = tare__fail(err, TARE_UNSUPPORTED, "Cannot fuse train modules: (%s)",
                            tare__text_chars(&modules));
    tare__text_release(&modules);
    return status;
}

static tare_status check_modes(const fuser_name *fuser, const sorted_leaves *s, bool is_qat,
                               tare_error *err) {
    if (s->bn == NULL || s->weighted == NULL || fuser->subject == NULL) return TARE_OK;
    const bool mode = s->weighted->training;
    const bool has_leaky = is_op(s->activation, TARE_OP_LEAKY_RELU);
    if (has_leaky && (s->bn->training != mode || s->activation->training != mode))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Linear, BN and LeakyReLU all must be in the same mode (train or eval).");
    const bool differs =
        fuser->asks_activation && s->activation != NULL && s->activation->training != mode;
    if (s->bn->training != mode || differs)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "%s and BN both must be in the same mode (train or eval).",
                          fuser->subject);
    if (is_qat && fuser->refuses_qat) return refuse_qat(fuser, s, err);
    if (!is_qat && mode)
        return tare__hint(err, tare__fail(err, TARE_INVALID_ARGUMENT, "Fusion only for eval!"),
                          "put the model into eval mode before it is exported");
    return TARE_OK;
}

static tare_status check_qat_batch_norm(const sorted_leaves *s, tare_error *err) {
    const bool is_linear = is_op(s->weighted, TARE_OP_LINEAR);
    const int64_t outputs =
        tare__module_int(s->weighted, is_linear ? "out_features" : "out_channels", -1);
    const int dims = is_linear ? 1 : 2; // torch's text, whatever the modules are
    // torch's second fuser has no full stop either.
    const bool has_relu = s->activation != NULL;
    if (tare__module_int(s->bn, "num_features", -1) != outputs)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          is_linear  ? "Output features of Linear must match num_features of "
                                       "BatchNorm1d"
                          : has_relu ? "Output channel of Conv2d must match num_features of "
                                       "BatchNorm2d"
                                     : "Output channel of Conv2d must match num_features of "
                                       "BatchNorm2d.");
    if (!tare__module_bool(s->bn, "affine", true))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Only support fusing BatchNorm%dd with affine set to True", dims);
    if (!tare__module_bool(s->bn, "track_running_stats", true))
        return tare__fail(
            err, TARE_INVALID_ARGUMENT,
            "Only support fusing BatchNorm%dd with tracking_running_stats set to True", dims);
    return TARE_OK;
}

// Adds the children of a fused module in torch's order and with its names.
static tare_status add_children(module *fused, const module *const *children, size_t count,
                                bool has_add, tare_error *err) {
    for (size_t i = 0; i < count; i++) {
        char name[24];
        // torch's ConvAddReLU2d is a Sequential that contains only the conv; the relu is an
        // attribute.
        const bool is_relu = has_add && i == 1;
        (void)snprintf(name, sizeof name, "%zu", i);
        module *child = NULL;
        TARE_TRY(tare__module_clone(children[i], &child, err));
        const tare_status status = tare__module_set_child(
            fused, is_relu ? tare__op_row(TARE_OP_RELU)->id : name, child, err);
        tare__module_release(child);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status check_class(const char *bound_class, const module_class *class,
                               const module *first, const module *second, tare_error *err) {
    if (class != NULL && (bound_class[0] == '\0' || strcmp(class->name, bound_class) == 0))
        return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      bound_class[0] != '\0' ? "Incorrect types for input modules: %s and %s"
                                             : "Cannot fuse modules: %s and %s",
                      first->class->name, second != NULL ? second->class->name : "nothing");
}

static tare_status make(const registry *classes, const char *bound_class, const sorted_leaves *s,
                        bool is_qat, const module *first, module **out, tare_error *err) {
    const fused_with fused = neighbours(s, is_qat);
    if (fused == FUSED_NONE) { // conv-bn: the folded conv itself
        if (s->weighted == NULL)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "found no weighted module to fuse into");
        return tare__module_clone(first, out, err);
    }
    const module *children[3] = {first};
    size_t count = 1;
    if (fused == FUSED_BN || fused == FUSED_BN_RELU) children[count++] = s->bn;
    if (s->activation != NULL) children[count++] = s->activation;
    const module_class *class =
        tare__class_triple(classes, first->class->op, first->class->dims, ROLE_FUSED, fused);
    TARE_TRY(check_class(bound_class, class, first, s->activation, err));
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, err));
    made->training = first->training;
    return tare__module_hand_out(made, add_children(made, children, count, s->has_add, err), out);
}

tare_status tare__fuser_run(const registry *classes, const char *fuser_method, bool is_qat,
                            const fuse_leaves *leaves, module **out, tare_error *err) {
    const fuser_name *row = NULL;
    char bound_class[128];
    TARE_TRY(tare__fuser_find(fuser_method, &row, bound_class, sizeof bound_class, err));
    const sorted_leaves s = sort_leaves(leaves);
    const module *first = s.weighted != NULL ? s.weighted : s.bn;
    if (first == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "'%s' found no module to fuse into",
                          fuser_method);
    TARE_TRY(check_modes(row, &s, is_qat, err));
    module *folded = NULL;
    if (s.weighted != NULL && s.bn != NULL) {
        if (is_qat)
            TARE_TRY(check_qat_batch_norm(&s, err));
        else
            TARE_TRY(tare__fold_batch_norm(s.weighted, s.bn, &folded, err));
    }
    const tare_status status =
        make(classes, bound_class, &s, is_qat, folded != NULL ? folded : first, out, err);
    tare__module_release(folded);
    return status;
}
