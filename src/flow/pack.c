// SPDX-License-Identifier: Apache-2.0
// Creates and names packed weights.
#include "flow/pack.h"

#include <string.h>

#include "ops/quantized/frozen_rule.h"

// --- calls ---

bool tare__weighted_bind(arena *memory, node *n, function_call *out) {
    const op_info *op = tare__function_row(n);
    return op != NULL && tare__op_has(tare__op_form(op, FORM_QUANTIZED), OP_WEIGHTED) &&
           tare__function_bind(memory, n, out);
}

const op_info *tare__weighted_form(const function_call *w, op_form form) {
    return tare__op_form(w->bound.op, form);
}

// --- modules ---

static void find_node(void *user, node *n) {
    (void)n;
    *(bool *)user = true;
}

// The geometry of a convolution must be constant, because torch packs it with the weight.
static tare_status set_geometry(const function_call *w, module *m, bool *is_constant,
                                tare_error *err) {
    static const char *const keys[] = {"stride", "padding", "output_padding", "dilation", "groups"};
    bool has_node = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const value *v = tare__function_argument(w, keys[i]);
        if (v == NULL || v->kind == VALUE_NONE) continue;
        tare__value_each_node(v, find_node, &has_node);
        if (!has_node) TARE_TRY(tare__module_set_config(m, keys[i], v, err));
    }
    *is_constant = !has_node;
    return TARE_OK;
}

static tare_status fill(const pass *p, const function_call *w, tare_tensor *weight,
                        tare_tensor *bias, requant_rule rule, module *m, bool *fits) {
    bool is_constant = false;
    TARE_TRY(set_geometry(w, m, &is_constant, p->err));
    TARE_TRY(tare__module_set_tensor(m, "weight", weight, true, p->err));
    TARE_TRY(tare__module_set_tensor(m, "bias", bias, true, p->err));
    const value name = tare__string(tare__requant_rule_name(rule));
    if (weight->q != NULL)
        TARE_TRY(rule == REQUANT_UNSET ? tare__module_set_rule(m, p->model->engine, weight, p->err)
                                       : tare__module_set_config(m, "rule", &name, p->err));
    const tare_status status = is_constant ? m->class->check(m, NULL) : TARE_OK;
    *fits = is_constant && status == TARE_OK;
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(p->err) : TARE_OK;
}

tare_status tare__pack_weights(pass *p, const function_call *w, tare_tensor *weight,
                               tare_tensor *bias, requant_rule rule, module **out) {
    const module_class *class =
        tare__class_of_op(&p->model->context->classes, w->bound.op, ROLE_PACKED, FUSED_NONE);
    module *m = NULL;
    bool fits = false;
    *out = NULL;
    TARE_TRY(tare__module_create(class, &m, p->err));
    const tare_status status = fill(p, w, weight, bias, rule, m, &fits);
    if (status == TARE_OK && fits)
        *out = m;
    else
        tare__module_release(m);
    return status;
}

// --- names ---

static tare_status packed_name(pass *p, const node *function, const char **out) {
    const char *scope = function->scope_path != NULL ? function->scope_path : "";
    char *prefix = tare__arena_printf(&p->scratch, "%s_packed_weight_", scope);
    size_t number = 0;
    if (prefix == NULL) return tare__out_of_memory(p->err);
    for (char *at = prefix; *at != '\0'; at++)
        if (*at == '.') *at = '_';
    *out = tare__module_free_name(p->model->root, &p->scratch, prefix, &number);
    return *out != NULL ? TARE_OK : tare__out_of_memory(p->err);
}

tare_status tare__insert_packed(pass *p, module *m, const node *function, node *before,
                                node **out) {
    module *root = p->model->root;
    const char *name = NULL;
    tare_status status = packed_name(p, function, &name);
    if (status == TARE_OK) status = tare__module_set_child(root, name, m, p->err);
    tare__module_release(m);
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    return status == TARE_OK ? tare__graph_insert(root->graph, &spec, before, out, p->err) : status;
}
