// SPDX-License-Identifier: Apache-2.0
// EmbeddingQuantizer: embedding tables, with a scale and a float zero point per row.
#include "ops/op.h"
#include "quantizers/annotate.h"
#include "quantizers/builtin.h"

tare_status tare__embedding_check(const struct builtin_row *row, const tare_quantizer_settings *s,
                                  tare_error *err) {
    (void)row;
    if (s->module_names.count + s->module_types.count + s->operators.count > 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "takes a config for the whole model only");
    if (s->has_global && (s->global.is_none || s->global.config.weight == NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Embedding config must have a valid weight quantization spec.");
    return TARE_OK;
}

// The rule has the operator's name.
static const char *rule_name(void) {
    return tare__op_row(TARE_OP_EMBEDDING)->id;
}

void tare__embedding_each_rule(const struct builtin_row *row, name_visitor visit, void *user) {
    (void)row;
    visit(user, rule_name());
}

// The node is not marked, as in torchao, so that a later quantizer may annotate its other edges.
static tare_status annotate_table(annotating *a, const node *n, tare_qspec *spec) {
    const node *table = tare__node_arg(n, 0);
    tare_annotation *annotation = NULL;
    if (table == NULL) return TARE_OK;
    TARE_TRY(tare__annotate_anew(a, n, &annotation));
    annotation->is_marked = false;
    return tare__annotate_edge(a, annotation, table, spec);
}

tare_status tare__embedding_annotate(void *self, tare_model *model, tare_error *err) {
    const builtin_quantizer *q = self;
    annotating a;
    tare_status status = tare__annotating_begin(&a, model, err);
    a.rule = rule_name();
    tare__annotating_by(&a, q->settings, &q->settings->global);
    for (const node *n = a.g->first; n != NULL && status == TARE_OK; n = n->next)
        if (q->settings->has_global && tare__calls_overload(n, TARE_OP_EMBEDDING, "default"))
            status = annotate_table(&a, n, q->settings->global.config.weight);
    tare__annotating_end(&a);
    return status;
}
