// SPDX-License-Identifier: Apache-2.0
// Prepare in FX mode: the list of its steps, from fusion to observers.
#include "flow/fx/prepare.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "flow/fx/qat.h"
#include "flow/node_qconfigs.h"
#include "flow/sound_weights.h"
#include "ops/op.h"

prepare_node *tare__prepare_node(const prepare_pass *p, const node *n) {
    return n->id < p->node_count ? &p->nodes[n->id] : NULL;
}

// torch's `getattr`, `size`: the result is no tensor.
static bool gives_numbers(const node *n) {
    if (n->op == NODE_CALL_METHOD) return tare__node_op(n) == TARE_OP_SIZE;
    if (tare__function_op(n) != TARE_OP_GETATTR || n->arg_count < 2) return false;
    const value *name = &n->args[1];
    return name->kind == VALUE_STRING &&
           (strcmp(name->as.text, "ndim") == 0 || strcmp(name->as.text, "shape") == 0);
}

static bool holds_only_integers(const value *v) {
    for (uint32_t i = 0; i < v->count; i++)
        if (v->as.items[i].kind != VALUE_INT) return false;
    return true;
}

// torch treats floats, and the tuple in `x.size() + (2,)`, as tensors. It then observes numbers,
// which fails in calibration.
static bool arg_has_tensor(const prepare_pass *p, const node *n, const value *v) {
    if (v->kind == VALUE_INT || v->kind == VALUE_FLOAT) return false;
    if (v->kind == VALUE_TUPLE && tare__function_op(n) == TARE_OP_ADD && holds_only_integers(v))
        return false;
    if (v->kind == VALUE_NODE) return !tare__has_no_tensor_args(p, v->as.node);
    if (v->kind != VALUE_LIST) return true; // torch treats all else as tensors, also tuples
    for (uint32_t i = 0; i < v->count; i++)
        if (v->as.items[i].kind == VALUE_NODE &&
            !tare__has_no_tensor_args(p, v->as.items[i].as.node))
            return true;
    return false;
}

bool tare__has_no_tensor_args(const prepare_pass *p, const node *n) {
    const prepare_node *known = tare__prepare_node(p, n);
    while (known == NULL && (n = tare__node_arg(n, 0)) != NULL) // an observer returns its input
        known = tare__prepare_node(p, n);
    return known != NULL && known->has_no_tensor_args;
}

// Inputs precede their users, so they are already classified.
static bool find_no_tensor_args(const prepare_pass *p, const node *n) {
    if (n->op == NODE_PLACEHOLDER || n->op == NODE_GET_ATTR) return false;
    const bool is_observer = tare__is_observer_node(p->base->model, n);
    const bool is_getitem = tare__function_op(n) == TARE_OP_GETITEM;
    if (is_observer || is_getitem) {
        const node *input = tare__node_arg(n, 0);
        return input != NULL && tare__has_no_tensor_args(p, input);
    }
    if (n->op == NODE_CALL_MODULE) return false;
    if (gives_numbers(n)) return true;
    if (n->arg_count == 0) return false;
    for (size_t i = 0; i < n->arg_count; i++)
        if (arg_has_tensor(p, n, &n->args[i])) return false;
    return true;
}

// index: -1 for none.
static bool is_argument(const node *n, int64_t index, const char *name, const node *arg) {
    if (index >= 0 && tare__node_arg(n, (size_t)index) == arg) return true;
    const value *v = tare__node_kwarg(n, name);
    return v != NULL && v->kind == VALUE_NODE && v->as.node == arg;
}

bool tare__is_weight_arg(const prepare_node *entry, const node *n, const node *arg) {
    return is_argument(n, entry->info.weight_index, "weight", arg);
}

bool tare__is_bias_arg(const prepare_node *entry, const node *n, const node *arg) {
    return is_argument(n, entry->info.bias_index, "bias", arg);
}

tare_status tare__qconfig_is_half(const prepare_pass *p, const tare_qconfig *q, bool *out) {
    tare_observer_info activation, weight;
    TARE_TRY(tare__pass_spec_info(p->base, q->activation, &activation));
    TARE_TRY(tare__pass_spec_info(p->base, q->weight, &weight));
    *out =
        activation.dtype == TARE_FLOAT16 && weight.dtype == TARE_FLOAT16 && !activation.is_dynamic;
    return TARE_OK;
}

static tare_status new_placeholder(tare_dtype dtype, tare_observer_spec **out, tare_error *err) {
    *out = tare_observer_spec_create("PlaceholderObserver");
    if (*out == NULL) return tare__out_of_memory(err);
    tare_observer_spec_set_dtype(*out, "dtype", dtype);
    return tare__observer_spec_status(*out, err);
}

static tare_status begin(prepare_pass *p) {
    tare_error *err = p->base->err;
    TARE_TRY(new_placeholder(TARE_FLOAT32, &p->float_spec, err));
    TARE_TRY(new_placeholder(TARE_FLOAT16, &p->half_spec, err));
    TARE_TRY(new_placeholder(TARE_QUINT8, &p->byte_spec, err));
    TARE_TRY(tare__qconfig_mapping_status(p->options->qconfig_mapping, err));
    TARE_TRY(tare_qconfig_mapping_clone(p->options->qconfig_mapping, &p->mapping, err));
    p->leaves_weights = tare__qconfig_mapping_is_torch(p->mapping);
    if (p->options->equalization == NULL) return TARE_OK;
    TARE_TRY(tare__qconfig_mapping_status(p->options->equalization, err));
    return tare_qconfig_mapping_clone(p->options->equalization, &p->equalization, err);
}

static tare_status allocate_nodes(prepare_pass *p) {
    p->node_count = p->base->model->root->graph->next_id;
    p->nodes = tare__arena_array(&p->base->scratch, p->node_count, sizeof *p->nodes);
    p->match_order = tare__arena_array(&p->base->scratch, p->node_count, sizeof *p->match_order);
    if (p->nodes == NULL || p->match_order == NULL) return tare__out_of_memory(p->base->err);
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next)
        p->nodes[n->id].has_no_tensor_args = find_no_tensor_args(p, n);
    return TARE_OK;
}

// Records what convert will need: the qconfig of each node, and whether it was observed.
static tare_status keep_nodes(prepare_pass *p) {
    for (const node *n = p->base->model->root->graph->first; n != NULL; n = n->next) {
        const prepare_node *entry = tare__prepare_node(p, n);
        if (entry == NULL) continue; // an observer
        TARE_TRY(tare__prepared_state_add(p->state, n->name, entry->qconfig.qconfig,
                                          entry->is_observed, p->base->err));
        tare__prepared_node(p->state, n->name)->equalization =
            tare_qconfig_retain(entry->equalization.qconfig);
    }
    return TARE_OK;
}

static tare_status begin_state(prepare_pass *p) {
    const tare_prepare_custom_config *c = p->custom;
    tare_error *err = p->base->err;
    TARE_TRY(tare__prepared_state_create(p->node_count, &p->state, err));
    TARE_TRY(tare__index_list_set(&p->state->input_quantized, c->input_quantized.items,
                                  c->input_quantized.count, err));
    return tare__index_list_set(&p->state->output_quantized, c->output_quantized.items,
                                c->output_quantized.count, err);
}

static tare_status run(prepare_pass *p, const module *original) {
    TARE_TRY(begin(p));
    TARE_TRY(
        tare__prepare_lift_linear(p)); // functions of exported programs with group-wise weights
    TARE_TRY(tare__fuse_steps(p->base, p->is_qat));
    TARE_TRY(allocate_nodes(p));
    TARE_TRY(begin_state(p));
    TARE_TRY(tare__prepare_find_integers(p));
    TARE_TRY(tare__mapping_extend_by_fusion(p->base, p->mapping));
    TARE_TRY(tare__mapping_extend_by_fusion(p->base, p->equalization));
    TARE_TRY(tare__prepare_modules(p));
    TARE_TRY(tare__prepare_qconfigs(p, original)); // the qconfig of each node
    TARE_TRY(tare__prepare_match(p));              // the backend pattern of each node
    TARE_TRY(tare__prepare_custom_matches(p));     // the modules that the custom config names
    TARE_TRY(tare__prepare_custom_modules(p));     // .. and prepares them
    TARE_TRY(tare__prepare_keep_ranges(p));        // values that one scale cannot represent
    TARE_TRY(tare__prepare_choose(p));             // the dtype of every edge
    TARE_TRY(tare__prepare_leave_islands(p));      // operators that would be slower with integers
    TARE_TRY(tare__prepare_find_facts(p));         // facts about patterns and dtypes, for explain
    TARE_TRY(tare__prepare_insert(p));             // an observer for each edge that changes dtype
    TARE_TRY(tare__prepare_edge_facts(p));
    TARE_TRY(keep_nodes(p));
    p->state->is_qat = p->is_qat;
    p->state->mapping = p->mapping; // extended by fusion and training
    p->mapping = NULL;
    p->base->model->stage = TARE_STAGE_PREPARED;
    TARE_TRY(tare__pass_rebuild(p->base, NULL));
    return tare__pass_preserve(p->base, &p->custom->preserved_attributes, original,
                               p->options->is_lenient);
}

static const tare_prepare_custom_config no_custom_config;

// options: complete, with defaults filled in.
static tare_status prepare_model(const tare_model *model, const tare_prepare_options *known,
                                 bool is_qat, tare_model **out, tare_error *err) {
    pass base;
    prepare_pass p = {.base = &base,
                      .options = known,
                      .is_qat = is_qat,
                      .custom =
                          known->custom_config != NULL ? known->custom_config : &no_custom_config};
    TARE_TRY(tare__setter_status(&p.custom->failure, err));
    tare_status status = tare__pass_begin(&base, "prepare", model, known->backend, err);
    if (status == TARE_OK) status = run(&p, model->root);
    if (status == TARE_OK) {
        base.model->prepared = p.state;
        status = tare__refuse_unsound_weights(base.model, err);
    } else {
        tare__prepared_state_release(p.state);
    }
    tare_qconfig_mapping_destroy(p.mapping);
    tare_qconfig_mapping_destroy(p.equalization);
    tare_observer_spec_release(p.float_spec);
    tare_observer_spec_release(p.half_spec);
    tare_observer_spec_release(p.byte_spec);
    return tare__pass_end(&base, status, out);
}

tare_status tare__prepare_standalone(prepare_pass *p, const module *m, const char *path,
                                     const tare_prepare_options *options, module **out,
                                     prepared_state **state) {
    tare_error *err = p->base->err;
    module *copy = NULL;
    tare_model *model = NULL, *prepared = NULL;
    TARE_TRY(tare__module_clone(m, &copy, err));
    tare_status status =
        tare__model_create(p->base->model->context, copy, TARE_STAGE_FLOAT, NULL, &model, err);
    if (status != TARE_OK) {
        tare__module_release(copy);
        return status;
    }
    status = prepare_model(model, options, p->is_qat, &prepared, err);
    tare_model_destroy(model);
    TARE_TRY(status);
    status = tare__record_append_inner(&p->base->model->decisions, &prepared->decisions, 0, path,
                                       '.', err);
    if (status == TARE_OK)
        status = tare__facts_append_inner(&p->base->model->facts, &prepared->facts, path, '.', err);
    if (status == TARE_OK) {
        *out = tare__module_retain(prepared->root);
        *state = prepared->prepared;
        prepared->prepared = NULL;
    }
    tare_model_destroy(prepared);
    return status;
}

static tare_status prepare(const tare_model *model, const tare_prepare_options *options,
                           bool is_qat, tare_model **out, tare_error *err) {
    tare_prepare_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (model == NULL || known.qconfig_mapping == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "prepare: expected a model and a qconfig mapping, found NULL");
    if (model->stage > TARE_STAGE_FUSED)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "prepare: expected a float model, found one that was prepared already");
    return prepare_model(model, &known, is_qat, out, err);
}

tare_status tare_prepare_fx(const tare_model *model, const tare_prepare_options *options,
                            tare_model **out, tare_error *err) {
    return prepare(model, options, false, out, err);
}

tare_status tare_prepare_qat_fx(const tare_model *model, const tare_prepare_options *options,
                                tare_model **out, tare_error *err) {
    tare_prepare_options known = {0};
    if (options != NULL) tare__struct_copy(&known, sizeof known, options);
    if (known.equalization != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "prepare_qat: equalization is for quantization after training only");
    return prepare(model, options, true, out, err);
}

bool tare_model_is_prepared_own(const tare_model *model) {
    const prepared_state *s = model != NULL ? model->prepared : NULL;
    return s != NULL && !s->is_qat && s->mapping != NULL &&
           tare__qconfig_mapping_is_own(s->mapping);
}
