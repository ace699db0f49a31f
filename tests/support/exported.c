// SPDX-License-Identifier: Apache-2.0
// Writes the metadata of an exporter into nodes, and annotations of a model as one line of text.
#include "support/exported.h"

#include "ops/text/print.h"
#include "support/models.h"
#include "support/test.h"

#define VAL "\"val\": {\"shape\": [1, 4, 4, 4], \"dtype\": \"torch.float32\"}"

static void set_meta(node *n, const char *more) {
    n->meta_json = tare__arena_printf(&n->owner->memory, "{" VAL "%s}", more);
    assert_non_null(n->meta_json);
}

tare_model *new_exported(module *root, const char *code) {
    tare_model *model = new_model(NULL, root != NULL ? root : new_tree(), code);
    for (node *n = model->root->graph->first; n != NULL; n = n->next) set_meta(n, "");
    return model;
}

static node *find(tare_model *model, const char *name) {
    node *n = tare__graph_find(model->root->graph, name);
    if (n == NULL) fail_msg("no node '%s'", name);
    return n;
}

void set_dtype(tare_model *model, const char *name, tare_dtype dtype) {
    node *n = find(model, name);
    n->meta_json =
        tare__arena_printf(&n->owner->memory, "{\"val\": {\"shape\": [4], \"dtype\": \"%s\"}}",
                           tare_dtype_name(dtype));
    assert_non_null(n->meta_json);
}

void set_source(tare_model *model, const char *name, const char *call, const char *function) {
    char more[512];
    snprintf(more, sizeof more, ", \"source_fn_stack\": [[\"%s\", \"%s\"]]", call, function);
    set_meta(find(model, name), more);
}

void set_module(tare_model *model, const char *name, const char *path, const char *class_name) {
    char more[512];
    snprintf(more, sizeof more,
             ", \"nn_module_stack\": [[\"a\", \"\", \"m.Net\"], [\"b\", \"%s\", \"%s\"]]", path,
             class_name);
    set_meta(find(model, name), more);
}

static void spec_text(const tare_qspec *spec, text *out) {
    tare_edge_name target;
    tare_qspec_fields f;
    if (spec == NULL) {
        tare__text_char(out, '-');
        return;
    }
    if (tare_qspec_get_kind(spec) == TARE_QSPEC_SHARED) {
        assert_true(tare_qspec_target(spec, 0, &target));
        tare__text_printf(out, "=%s%s%s", target.from ? target.from : "", target.from ? "/" : "",
                          target.node);
        return;
    }
    tare_qspec_get_fields(spec, &f);
    tare__text_append(out, tare_dtype_name(f.dtype) + strlen("torch."));
}

static void annotation_text(const tare_node *n, const tare_annotation *a, text *out) {
    if (out->length > 0) tare__text_append(out, "; ");
    tare__text_append(out, tare_node_name(n));
    for (size_t i = 0; i < tare_annotation_input_count(a); i++) {
        tare_qspec *spec = NULL;
        const char *input = tare_annotation_input_at(a, i, &spec);
        tare__text_printf(out, "%s%s: ", i == 0 ? "[" : ", ", input);
        spec_text(spec, out);
    }
    if (tare_annotation_input_count(a) > 0) tare__text_char(out, ']');
    if (tare_annotation_output(a) == NULL) return;
    tare__text_append(out, " -> ");
    spec_text(tare_annotation_output(a), out);
}

const char *annotated(const tare_model *model) {
    static char kept[4][2048];
    static int next;
    char *chars = kept[next++ % 4];
    text out = {0};
    for (const tare_node *n = tare_model_first_node(model); n != NULL; n = tare_node_next(n)) {
        const tare_annotation *a = tare_model_annotation(model, n);
        if (tare_annotation_is_valid(a)) annotation_text(n, a, &out);
    }
    assert_false(out.failed);
    snprintf(chars, sizeof kept[0], "%s", tare__text_chars(&out));
    tare__text_release(&out);
    return chars;
}
