// SPDX-License-Identifier: Apache-2.0
// Lowering of models that are already quantized, by tare or by other tools.
#include "flow/lower/lower.h"

#include "core/struct_size.h"
#include "core/text/text.h"
#include "flow/lower/fx/lower.h"
#include "model/coverage.h"
#include "model/nested/nested.h"
#include "ops/op.h"
#include "tare/pt2e.h"

// FX mode keeps parameters in buffers, which nodes read; all other tools write literals.
static bool is_of_fx(const tare_model *model) {
    bool found = false;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        const op_id id = tare__function_op(n);
        const node *scale = tare__node_arg(n, 1);
        const bool reads_buffer = scale != NULL && scale->op == NODE_GET_ATTR;
        if (OP_IS_ANY(id, TARE_OP_QUANTIZE_PER_TENSOR, TARE_OP_QUANTIZE_PER_CHANNEL)) {
            if (!reads_buffer) return false;
            found = true;
        } else if (id == TARE_OP_QUANTIZE_PER_TENSOR_DYNAMIC || tare__is_half_node(n))
            found = true;
    }
    return found;
}

static tare_status refuse_arithmetic(void *unused, const tare_model *model, const char *prefix,
                                     tare_error *err) {
    (void)unused;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next) {
        if (!tare__coverage_is_arithmetic(n)) continue;
        tare__fail(
            err, TARE_UNSUPPORTED,
            "node '%s%s': the program is in reference representation, and no integer operator "
            "gives the bits of its arithmetic",
            prefix, n->name);
        return tare__hint(err, TARE_UNSUPPORTED, "convert it without use_reference_representation");
    }
    return TARE_OK;
}

// A model that cannot run cannot be lowered: torchao's integer products (_int_mm).
static tare_status refuse_unknown(void *unused, const tare_model *model, const char *prefix,
                                  tare_error *err) {
    (void)unused;
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_FUNCTION && tare__aten_name(n->target) != NULL &&
            tare__function_row(n) == NULL)
            return tare__fail(err, TARE_UNSUPPORTED, "node '%s%s': function '%s' is not known",
                              prefix, n->name, n->target);
    return TARE_OK;
}

tare_status tare_lower(const tare_model *reference, const tare_lower_options *options,
                       tare_model **out, tare_error *err) {
    tare_lower_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (reference == NULL || reference->stage != TARE_STAGE_REFERENCE)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "lower: expected a model that holds quantize and dequantize");
    TARE_TRY(refuse_arithmetic(NULL, reference, "", err));
    TARE_TRY(tare__nested_visit(reference, refuse_arithmetic, NULL, err));
    TARE_TRY(refuse_unknown(NULL, reference, "", err));
    TARE_TRY(tare__nested_visit(reference, refuse_unknown, NULL, err));
    if (is_of_fx(reference)) return tare__lower_fx(reference, known.engine, out, err);
    const tare_lower_pt2e_options same = {.struct_size = sizeof same, .engine = known.engine};
    return tare_lower_pt2e(reference, &same, out, err);
}
