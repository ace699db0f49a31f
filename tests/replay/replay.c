// SPDX-License-Identifier: Apache-2.0
// Both halves of a replay: structure and statistics, then arithmetic under recorded parameters.
#include "replay/replay.h"

#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "ops/text/print.h"
#include "replay/explained.h"
#include "replay/left_out.h"
#include "replay/pt2e.h"
#include "replay/run.h"
#include "replay/statistics.h"
#include "replay/text_compare.h"
#include "replay/unlearn.h"

typedef struct flow {
    const recorded_case *c;
    findings *out;
    tare_error *err;
    const char *step; // in progress, for messages
    agreement numbers;
    arena memory;
    value *inputs;
    const tare_tensor **tensors; // the inputs again; NULL if one is nested
    size_t input_count;
    tare_model *model, *prepared, *converted;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping, *convert_mapping; // the second NULL: convert was given none
    tare_prepare_custom_config *custom;              // NULL: none
    tare_convert_custom_config *convert_custom;      // idem
    double output_step;
    int64_t runs_to_unlearn; // see replay/unlearn.h
    bool has_learned;        // there may be other numbers of runs to try
} flow;

static const json_t *get(const flow *f, const char *key) {
    return json_object_get(f->c->json, key);
}

/// Torch itself failed at this run, so that nothing was recorded of it.
static bool torch_failed(const flow *f, const char *run) {
    return json_object_get(get(f, "torch_errors"), run) != NULL;
}

static tare_status check_supported(flow *f) {
    const char *kind = json_string_value(get(f, "kind"));
    if (pt2e_is_case(f->c)) return TARE_OK;
    if (kind == NULL || (strcmp(kind, "lowered") != 0 && strcmp(kind, "reference") != 0 &&
                         strcmp(kind, "decomposed") != 0))
        return tare__fail(f->err, TARE_UNSUPPORTED, "cases of kind '%s'",
                          kind != NULL ? kind : "?");
    return TARE_OK;
}

/// Both are absent from most cases.
static tare_status read_custom_configs(flow *f) {
    const json_t *custom = get(f, "prepare_custom_config");
    const json_t *convert = get(f, "convert_custom_config");
    char *prepare_text = json_dumps(custom, JSON_ENCODE_ANY);
    char *convert_text = json_dumps(convert, JSON_ENCODE_ANY);
    tare_status status = TARE_OK;
    if (json_is_object(custom))
        status = tare_prepare_custom_config_from_json(prepare_text, strlen(prepare_text),
                                                      &f->custom, f->err);
    if (status == TARE_OK && json_is_object(convert))
        status = tare_convert_custom_config_from_json(convert_text, strlen(convert_text),
                                                      &f->convert_custom, f->err);
    free(prepare_text);
    free(convert_text);
    return status;
}

static tare_status read_configs(flow *f) {
    const json_t *backend = get(f, "backend");
    char *text_of = json_dumps(get(f, "qconfig_mapping"), JSON_ENCODE_ANY);
    if (text_of == NULL)
        return tare__fail(f->err, TARE_MALFORMED_FILE, "case.json has no qconfig_mapping");
    tare_status status =
        tare_qconfig_mapping_from_json(text_of, strlen(text_of), &f->mapping, f->err);
    free(text_of);
    TARE_TRY(status);
    TARE_TRY(left_out_convert_mapping(f->c->name, f->mapping, &f->convert_mapping, f->err));
    if (json_is_string(backend))
        return tare_backend_config_builtin(json_string_value(backend), &f->backend, f->err);
    text_of = json_dumps(backend, JSON_ENCODE_ANY);
    if (text_of == NULL) return tare__fail(f->err, TARE_MALFORMED_FILE, "case.json has no backend");
    status = tare_backend_config_from_json(text_of, strlen(text_of), &f->backend, f->err);
    free(text_of);
    return status;
}

static tare_status check_text(flow *f, const char *key, const tare_model *model) {
    const char *recorded = case_text(f->c, key);
    if (recorded == NULL) return tare__fail(f->err, TARE_MALFORMED_FILE, "case.json has no text");
    text printed = {0};
    tare_status status = tare__print_model(model->root, &printed, f->err);
    if (status == TARE_OK) status = tare__text_status(&printed, f->err);
    if (status == TARE_OK)
        compare_texts(key, tare__text_chars(&printed), recorded, &f->numbers, f->out);
    tare__text_release(&printed);
    return status;
}

/// A recorded text, read as code, is the graph that stands in the model file.
static tare_status check_parsed(flow *f) {
    const char *recorded = case_text(f->c, "float_text");
    graph *parsed = NULL;
    text again = {0}, ours = {0};
    TARE_TRY(tare__parse_code(recorded, strlen(recorded), f->model->root, &parsed, f->err));
    tare_status status = tare__print_graph(parsed, &again, f->err);
    if (status == TARE_OK) status = tare__print_graph(f->model->root->graph, &ours, f->err);
    if (status == TARE_OK) status = tare__text_status(&again, f->err);
    if (status == TARE_OK) status = tare__text_status(&ours, f->err);
    if (status == TARE_OK)
        compare_texts("float_text read back", tare__text_chars(&again), tare__text_chars(&ours),
                      &f->numbers, f->out);
    tare__text_release(&again);
    tare__text_release(&ours);
    tare__graph_destroy(parsed);
    return status;
}

static tare_status check_run(flow *f, const char *run, const tare_model *model, finding_kind kind) {
    f->step = run;
    if (f->numbers.is_random) return TARE_OK; // torch's random numbers cannot be had
    run_result result;
    const tare_status status = replay_run(model, f->inputs, f->input_count, &result, f->err);
    // What cannot run yet is one finding, structure is compared all the same.
    if (status != TARE_OK && pt2e_is_case(f->c)) {
        findings_add_error(f->out, kind, run, f->err);
        return TARE_OK;
    }
    // Where torch failed, we may run to the end; observers have seen what came before in any case.
    if (torch_failed(f, run)) {
        if (status == TARE_OK) replay_run_release(&result);
        return TARE_OK;
    }
    TARE_TRY(status);
    replay_compare(f->c, run, &result, kind, f->out);
    if (result.step_count > 0) f->output_step = result.steps[0];
    replay_run_release(&result);
    return TARE_OK;
}

static tare_status convert(flow *f) {
    const char *kind = json_string_value(get(f, "kind"));
    const char *engine = json_string_value(get(f, "engine"));
    const tare_convert_options options = {.struct_size = sizeof options,
                                          .backend = f->backend,
                                          .engine = engine != NULL ? tare_engine_from_name(engine)
                                                                   : TARE_ENGINE_DEFAULT,
                                          .qconfig_mapping = f->convert_mapping,
                                          .custom_config = f->convert_custom,
                                          .is_lenient = true};
    tare_model_destroy(f->converted);
    f->converted = NULL;
    if (pt2e_is_case(f->c)) return pt2e_convert(f->c, f->prepared, &f->converted, f->err);
    if (strcmp(kind, "lowered") == 0)
        return tare_convert_fx(f->prepared, &options, &f->converted, f->err);
    if (strcmp(kind, "reference") == 0)
        return tare_convert_to_reference_fx(f->prepared, &options, &f->converted, f->err);
    return tare_convert_to_reference_decomposed_fx(f->prepared, &options, &f->converted, f->err);
}

static tare_status convert_as_recorded(flow *f) {
    TARE_TRY(convert(f));
    return use_recorded_quantized(f->c, f->converted, f->out, f->err);
}

/// A program that writes its buffers is converted anew, as a run has moved them.
static tare_status restore_state(flow *f) {
    return writes_buffers(f->converted) ? convert_as_recorded(f) : TARE_OK;
}

/// The fast kernels must agree with what was recorded as the references do.
static tare_status check_session(flow *f) {
    f->step = "session";
    if (torch_failed(f, "converted") || findings_any(f->out) || f->numbers.is_random)
        return TARE_OK;
    if (f->tensors == NULL) return TARE_OK;
    run_result result;
    TARE_TRY(restore_state(f));
    TARE_TRY(replay_run(f->converted, f->inputs, f->input_count, &result, f->err));
    tare_status status = restore_state(f);
    if (status == TARE_OK)
        status = replay_in_session(f->converted, f->tensors, f->input_count, &result, f->err);
    if (status == TARE_OK) replay_compare(f->c, "converted", &result, FINDING_VALUE, f->out);
    replay_run_release(&result);
    return status;
}

/// On a model of its own: in training, batch norms learn from the inputs.
static tare_status check_float_run(flow *f) {
    tare_model *model = NULL;
    TARE_TRY(case_model(f->c, &model, f->err));
    tare_status status = TARE_OK;
    if (!json_is_true(get(f, "is_qat")))
        status = unlearn_writes(f->c, model, f->inputs, f->input_count, f->err);
    if (status == TARE_OK) status = check_run(f, "float", model, FINDING_STRUCTURE);
    tare_model_destroy(model);
    return status;
}

static bool is_positive(const value *v) {
    return v != NULL && ((v->kind == VALUE_FLOAT && v->as.real > 0) ||
                         (v->kind == VALUE_INT && v->as.integer > 0));
}

/// Does the module drop values at random while it trains?
static tare_status find_dropout(void *user, const char *path, module *m, tare_error *err) {
    (void)path;
    (void)err;
    bool *found = user;
    const bool is_dropout = m->class->op != NULL && strcmp(m->class->op, "dropout") == 0;
    const value *p = tare__module_config(m, is_dropout ? "p" : "dropout");
    if (m->training && is_positive(p)) *found = true;
    return TARE_OK;
}

static bool calls_dropout(const node *n) {
    if (n->op == NODE_CALL_FUNCTION && strcmp(n->target, "torch.ops.aten.dropout.default") == 0)
        return n->arg_count == 3 && is_positive(&n->args[1]) && n->args[2].kind == VALUE_BOOL &&
               n->args[2].as.boolean;
    const value *training = tare__node_kwarg(n, "training");
    return n->op == NODE_CALL_FUNCTION && training != NULL && training->kind == VALUE_BOOL &&
           training->as.boolean && strstr(n->target, "dropout") != NULL &&
           is_positive(tare__node_kwarg(n, "p"));
}

static tare_status check_training(flow *f) {
    f->step = "unlearn";
    if (!json_is_true(get(f, "is_qat")))
        return unlearn_writes(f->c, f->model, f->inputs, f->input_count, f->err);
    const int64_t limit = unlearn_limit(f->model);
    f->has_learned = limit > f->runs_to_unlearn;
    if (f->runs_to_unlearn > limit) f->runs_to_unlearn = limit;
    if (limit > 0) f->numbers.relative = AGREEMENT_RELATIVE_QAT;
    TARE_TRY(tare__module_walk(f->model->root, find_dropout, &f->numbers.is_random, f->err));
    for (const node *n = f->model->root->graph->first; n != NULL; n = n->next)
        if (calls_dropout(n)) f->numbers.is_random = true;
    return unlearn(f->c, f->model, f->inputs, f->input_count, f->runs_to_unlearn, f->err);
}

static tare_status read_model(flow *f) {
    f->step = "not supported";
    TARE_TRY(check_supported(f));
    f->step = "read";
    if (!pt2e_is_case(f->c)) {
        TARE_TRY(read_configs(f));
        TARE_TRY(read_custom_configs(f));
    }
    TARE_TRY(replay_inputs(f->c, &f->memory, &f->inputs, &f->input_count, f->err));
    TARE_TRY(replay_tensors(f->inputs, f->input_count, &f->memory, &f->tensors, f->err));
    TARE_TRY(case_model(f->c, &f->model, f->err));
    TARE_TRY(check_training(f));
    f->step = "print";
    TARE_TRY(check_text(f, "float_text", f->model));
    f->step = "parse";
    TARE_TRY(check_parsed(f));
    return check_float_run(f);
}

/// torch shares an observer by binding it under several names.
static bool is_repeated(const module *root, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (root->children[i].module == root->children[index].module) return true;
    return false;
}

/// What was recorded is a copy of the prepared module, and torch's copy of a GraphModule tells a
/// module once: other names of it come last.
static tare_status move_repeats_last(flow *f, module *root) {
    named_module *sorted = tare__arena_array(&f->memory, root->child_count + 1, sizeof *sorted);
    if (sorted == NULL) return tare__out_of_memory(f->err);
    size_t count = 0;
    for (size_t i = 0; i < root->child_count; i++)
        if (!is_repeated(root, i)) sorted[count++] = root->children[i];
    for (size_t i = 0; i < root->child_count; i++)
        if (is_repeated(root, i)) sorted[count++] = root->children[i];
    for (size_t i = 0; i < count; i++) root->children[i] = sorted[i];
    const named_items children = {root->children, sizeof *root->children, root->child_count};
    tare__name_index_refill(&root->child_names, &children);
    tare__name_index_refill(&root->child_names,
                            &(named_items){root->children, sizeof *root->children, count});
    return TARE_OK;
}

static tare_status prepare(flow *f, tare_model **out) {
    f->step = "prepare";
    if (pt2e_is_case(f->c))
        return pt2e_prepare(f->c, f->model, f->prepared == NULL ? &f->numbers : NULL, f->out, out,
                            f->err);
    const tare_prepare_options options = {.struct_size = sizeof options,
                                          .backend = f->backend,
                                          .qconfig_mapping = f->mapping,
                                          .custom_config = f->custom,
                                          .is_lenient = true};
    return (json_is_true(get(f, "is_qat")) ? tare_prepare_qat_fx
                                           : tare_prepare_fx)(f->model, &options, out, f->err);
}

/// Outputs come from a model of their own, so that calibration is one pass of the product's.
static tare_status check_prepared_run(flow *f) {
    tare_model *model = NULL;
    TARE_TRY(prepare(f, &model));
    const tare_status status = check_run(f, "prepared", model, FINDING_STRUCTURE);
    tare_model_destroy(model);
    return status;
}

static tare_status calibrate(flow *f) {
    f->step = "calibrate";
    if (f->tensors == NULL) return check_run(f, "prepared", f->prepared, FINDING_STRUCTURE);
    const tare_status status = tare_calibrate(f->prepared, f->tensors, f->input_count, f->err);
    if (status != TARE_OK && pt2e_is_case(f->c)) {
        findings_add_error(f->out, FINDING_STRUCTURE, f->step, f->err);
        return use_recorded_parameters(f->c, f->prepared, f->err);
    }
    // Where torch stopped, observers have seen what came before.
    return torch_failed(f, "prepared") ? TARE_OK : status;
}

static tare_status check_prepared(flow *f) {
    TARE_TRY(prepare(f, &f->prepared));
    TARE_TRY(move_repeats_last(f, f->prepared->root));
    TARE_TRY(check_text(f, "prepared_text", f->prepared));
    TARE_TRY(check_prepared_run(f));
    TARE_TRY(calibrate(f));
    f->step = "observers";
    if (!f->numbers.is_random) compare_observers(f->c, f->prepared, &f->numbers, f->out);
    return TARE_OK;
}

static tare_status check_structure(flow *f) {
    TARE_TRY(read_model(f));
    TARE_TRY(check_prepared(f));
    f->step = "convert";
    TARE_TRY(convert(f));
    TARE_TRY(check_text(f, "converted_text", f->converted));
    TARE_TRY(compare_explained(f->converted, f->out, f->err));
    if (f->numbers.is_random) return TARE_OK;
    compare_constants(f->c, f->converted, &f->numbers, f->out);
    compare_weights(f->c, f->converted, f->out);
    return TARE_OK;
}

static tare_status check_arithmetic(flow *f) {
    f->step = "convert under recorded parameters";
    TARE_TRY(use_recorded_parameters(f->c, f->prepared, f->err));
    TARE_TRY(convert_as_recorded(f));
    f->output_step = 0;
    TARE_TRY(check_run(f, "converted", f->converted, FINDING_VALUE));
    return check_session(f);
}

static void release(flow *f) {
    tare_model_destroy(f->model);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->converted);
    tare_backend_config_destroy(f->backend);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_qconfig_mapping_destroy(f->convert_mapping);
    tare_prepare_custom_config_destroy(f->custom);
    tare_convert_custom_config_destroy(f->convert_custom);
    agreement_release(&f->numbers);
    tare__arena_release(&f->memory);
    tare_error_destroy(f->err);
}

// *more: with another number of runs taken back it might go better.
static void replay_unlearning(const recorded_case *c, int64_t runs, findings *out,
                              double *output_step, bool *more) {
    flow f = {.c = c, .out = out, .err = tare_error_create(), .runs_to_unlearn = runs};
    finding_kind kind = FINDING_STRUCTURE;
    tare_status status = check_structure(&f);
    if (status == TARE_OK) {
        status = check_arithmetic(&f);
        kind = FINDING_VALUE;
    }
    if (status != TARE_OK) findings_add_error(out, kind, f.step, f.err);
    *output_step = f.output_step;
    *more = f.has_learned;
    release(&f);
}

void replay(const recorded_case *c, findings *out, double *output_step) {
    enum { MOST_RUNS = 3 };
    bool more = false;
    replay_unlearning(c, 1, out, output_step, &more);
    for (int64_t runs = 2; more && runs <= MOST_RUNS && findings_any(out); runs++) {
        findings again = {0};
        replay_unlearning(c, runs, &again, output_step, &more);
        if (findings_any(&again)) {
            findings_release(&again);
            continue;
        }
        findings_release(out);
        *out = again;
    }
}
