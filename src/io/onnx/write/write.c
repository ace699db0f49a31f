// SPDX-License-Identifier: Apache-2.0
// Writes a model as ONNX: traces it, writes each call, assembles the file.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/tensor/map.h"
#include "io/onnx/families/families.h"
#include "io/onnx/schema.h"
#include "io/onnx/write/model.h"
#include "io/onnx/write/state.h"
#include "io/onnx/write/wire.h"
#include "ir/call_names.h"
#include "ops/quantized/rule.h"

enum {
    // Two batch sizes, neither of which is 1.
    BATCH = 2,
    OTHER_BATCH = 3,
    DEEPEST_RULE = 8
};

// --- rules ---

const onnx_write_rule *tare__onnx_write_rule_at(size_t index) {
    const onnx_family *family;
    for (size_t f = 0; (family = tare__onnx_family_at(f)) != NULL; f++) {
        if (index < family->write.count) return &family->write.rows[index];
        index -= family->write.count;
    }
    return NULL;
}

const onnx_write_rule *tare__onnx_find_write_rule(const char *id) {
    const onnx_write_rule *rule = NULL;
    const op_info *op = tare__op_by_id(id, 0);
    if (op != NULL && tare__quantized_rule_op(op) != NULL) id = ONNX_RULED;
    for (size_t i = 0; (rule = tare__onnx_write_rule_at(i)) != NULL; i++)
        if (strcmp(rule->id, id) == 0) return rule;
    return NULL;
}

// Writes a call as one node on its tensors, in one common dtype.
static void write_one_node(onnx_out *o) {
    const char *inputs[OP_MAX_PARAMS];
    size_t count = 0;
    for (size_t i = 0; i < o->call.param_count; i++) {
        const value *v = o->call.param[i];
        if (v != NULL && v->kind == VALUE_TENSOR) inputs[count++] = tare__out_input(o, i);
    }
    tare__out_result(o, tare__out_node(o, o->rule->op_type, inputs, count));
}

void tare__out_dispatch(onnx_out *o) {
    const onnx_write_rule *rule = o->rule;
    if (rule->write == NULL && rule->since > o->w->opset)
        tare__out_refuse(o, "%s comes with opset %d", rule->op_type, rule->since);
    if (rule->write == NULL)
        write_one_node(o);
    else
        rule->write(o);
}

void tare__out_as(onnx_out *o, const char *id, const value *const *params, size_t count) {
    onnx_out inner = *o;
    if (tare__out_failed(o)) return;
    inner.rule = tare__onnx_find_write_rule(id);
    inner.call.op = tare__op_by_id(id, 0);
    inner.depth++;
    if (inner.rule == NULL || inner.call.op == NULL || inner.depth > DEEPEST_RULE) {
        tare__out_refuse(o, "ONNX export does not support '%s'", id);
        return;
    }
    memset(inner.call.param, 0, sizeof inner.call.param);
    inner.call.param_count = tare__op_param_count(inner.call.op);
    for (size_t i = 0; i < count; i++) inner.call.param[i] = params[i];
    tare__out_dispatch(&inner);
    o->status = inner.status;
}

// --- inputs ---

// A trace for a batch size, or for stand-in sizes of open dimensions.
typedef struct trace_kind {
    int64_t batch; // 0: the stand-in size
    bool is_other;
} trace_kind;

// The stand-in size of dimension d of input i; -1 if it is not open.
static int64_t open_size(const onnx_writer *w, size_t i, int d, trace_kind kind) {
    const data_input *in = &w->spec->inputs[i];
    int64_t now, other;
    if (d == 0 && kind.batch > 0) return kind.batch;
    if (w->open.count == 0 ||
        !tare__onnx_open_size(&w->open, in->name, d, w->dim_names[i * TARE_MAX_DIMS + (size_t)d],
                              &now, &other))
        return -1;
    return kind.is_other ? other : now;
}

static tare_status make_input(const onnx_writer *w, size_t i, trace_kind kind, tare_tensor **out,
                              tare_error *err) {
    const data_input *in = &w->spec->inputs[i];
    int64_t shape[TARE_MAX_DIMS];
    if (in->ndim < 0) {
        tare__fail(err, TARE_INVALID_ARGUMENT, "input '%s' has no shape", in->name);
        return tare__hint(err, TARE_INVALID_ARGUMENT,
                          "give its shape: --input-shape %s=1x3x224x224", in->name);
    }
    for (int d = 0; d < in->ndim; d++) {
        shape[d] = in->shape[d] < 0 ? open_size(w, i, d, kind) : in->shape[d];
        if (shape[d] >= 0) continue;
        tare__fail(err, TARE_INVALID_ARGUMENT, "input '%s': dimension %d has no size", in->name, d);
        return tare__hint(err, TARE_INVALID_ARGUMENT,
                          "give the input a shape: --input-shape %s=1x128", in->name);
    }
    const tare_dtype dtype = in->dtype != TARE_DTYPE_UNSET ? in->dtype : TARE_FLOAT32;
    return tare__tensor_meta(dtype, in->ndim, shape, NULL, out, err);
}

static tare_status trace_batch(onnx_writer *w, trace_kind kind, out_trace *out, tare_error *err) {
    const onnx_write_spec *spec = w->spec;
    tare_tensor **inputs = tare__alloc_zeroed(spec->input_count + 1, sizeof(tare_tensor *));
    if (inputs == NULL) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    for (size_t i = 0; i < spec->input_count && status == TARE_OK; i++)
        status = make_input(w, i, kind, &inputs[i], err);
    if (status == TARE_OK) status = tare__onnx_trace(w->root, inputs, spec->input_count, out, err);
    for (size_t i = 0; i < spec->input_count; i++) tare_tensor_release(inputs[i]);
    tare__free(inputs);
    return status;
}

// --- an open batch ---

static bool numbers_agree(const value *a, const value *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case VALUE_INT:
        return a->as.integer == b->as.integer;
    case VALUE_FLOAT:
        return a->as.real == b->as.real;
    default:
        break;
    }
    if (!tare__value_has_items(a)) return true;
    bool agree = a->count == b->count;
    for (uint32_t i = 0; agree && i < a->count; i++)
        agree = numbers_agree(&a->as.items[i], &b->as.items[i]);
    return agree;
}

static bool arguments_agree(const op_call *a, const op_call *b) {
    bool agree = a->arg_count == b->arg_count && a->kwarg_count == b->kwarg_count;
    for (size_t i = 0; agree && i < a->arg_count; i++)
        agree = numbers_agree(&a->args[i], &b->args[i]);
    for (size_t i = 0; agree && i < a->kwarg_count; i++)
        agree = numbers_agree(&a->kwargs[i].value, &b->kwargs[i].value);
    return agree;
}

static bool has_tensor(const value *v) {
    if (v->kind == VALUE_TENSOR) return true;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        if (has_tensor(&v->as.items[i])) return true;
    return false;
}

// Calls on sizes or numbers, and checks, are not written as nodes.
static bool computes(const out_record *r) {
    return has_tensor(&r->result);
}

static bool elements_agree(const tare_tensor *a, const tare_tensor *b) {
    return a->data == NULL || b->data == NULL ||
           (a->count == b->count && memcmp(a->data, b->data, tare__tensor_bytes(a)) == 0);
}

// True if a record can be written for any batch size, given the records for two of them.
static bool record_is_open(const onnx_writer *w, const out_record *a, const out_record *b) {
    const onnx_write_rule *rule =
        a->call.op != NULL ? tare__onnx_find_write_rule(a->call.op->id) : NULL;
    const bool takes_sizes =
        rule != NULL && (rule->takes_sizes || (w->open.count > 0 && rule->takes_open_sizes));
    if (a->node != b->node || a->result.kind != b->result.kind || a->call.op != b->call.op)
        return false;
    if (!computes(a) || takes_sizes) return true;
    // If the batch is open, constants that depend on sizes are computed by nodes.
    const bool is_one = a->result.kind == VALUE_TENSOR && w->open.count == 0;
    return arguments_agree(&a->call, &b->call) &&
           (!is_one || elements_agree(a->result.as.tensor, b->result.as.tensor));
}

static const char *find_fixed(const onnx_writer *w) {
    if (w->trace.record_count != w->other.record_count) return "";
    for (size_t i = 0; i < w->trace.record_count; i++)
        if (!record_is_open(w, &w->trace.records[i], &w->other.records[i]))
            return w->trace.records[i].node->name;
    return NULL;
}

static bool same_ranks(const value *a, const value *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == VALUE_TENSOR) return a->as.tensor->ndim == b->as.tensor->ndim;
    bool same = !tare__value_has_items(a) || a->count == b->count;
    for (uint32_t i = 0; same && tare__value_has_items(a) && i < a->count; i++)
        same = same_ranks(&a->as.items[i], &b->as.items[i]);
    return same;
}

// squeeze removes a dimension of size 1, so a batch of 1 differs. *found names the node, or is
// unset if the model cannot run with a batch of 1.
static tare_status find_squeezed(onnx_writer *w, const char **found) {
    out_trace one = {0};
    *found = NULL;
    const tare_status status = trace_batch(w, (trace_kind){.batch = 1}, &one, w->rule_err);
    if (status == TARE_OK)
        for (size_t i = 0; i < w->trace.record_count && *found == NULL; i++)
            if (i >= one.record_count ||
                !same_ranks(&w->trace.records[i].result, &one.records[i].result))
                *found = w->trace.records[i].node->name;
    tare__onnx_trace_release(&one);
    return status == TARE_OUT_OF_MEMORY ? tare__out_of_memory(w->err) : TARE_OK;
}

static bool is_open(const onnx_write_spec *spec) {
    for (size_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].ndim > 0 && spec->inputs[i].shape[0] < 0) return true;
    return false;
}

static void note_fixed(onnx_writer *w, const char *name, const char *why) {
    tare__text_append(&w->notes, "{\"node\":");
    tare__text_json_string(&w->notes, name);
    tare__text_append(&w->notes, ",\"note\":");
    tare__text_json_string(&w->notes, why);
    tare__text_char(&w->notes, '}');
}

static void release_traces(onnx_writer *w) {
    tare__onnx_trace_release(&w->other);
    tare__onnx_trace_release(&w->trace);
}

static tare_status cannot_stay_open(onnx_writer *w, const char *node_name) {
    const onnx_open_dim *dim = &w->open.items[0];
    for (size_t i = 0; i < w->open.count; i++)
        if (w->open.items[i].dim > 0) dim = &w->open.items[i];
    tare__fail(w->err, TARE_INVALID_ARGUMENT, "input '%s': dimension %d has no size, and %s%s%s",
               dim->input, dim->dim, *node_name != '\0' ? "node '" : "",
               *node_name != '\0' ? node_name : "the model",
               *node_name != '\0' ? "' computes with it" : " does not take any");
    return tare__hint(w->err, TARE_INVALID_ARGUMENT,
                      "give the input a shape: --input-shape %s=1x128", dim->input);
}

// Traces the graph for two pairs of stand-in sizes; both must be the same program.
static tare_status trace_open(onnx_writer *w) {
    const char *fixed = "";
    for (int i = 0; tare__onnx_open_choose(&w->open, i, w->is_second); i++) {
        if (!w->open.is_exact) continue;
        tare_status status = trace_batch(w, (trace_kind){0}, &w->trace, w->rule_err);
        if (status == TARE_OK)
            status = trace_batch(w, (trace_kind){.is_other = true}, &w->other, w->rule_err);
        if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(w->err);
        const char *found = status == TARE_OK ? find_fixed(w) : "";
        if (status == TARE_OK && found == NULL) {
            TARE_TRY(find_squeezed(w, &found));
            w->has_other = found == NULL;
            if (w->has_other) return TARE_OK;
        }
        if (*fixed == '\0' && found != NULL) fixed = found;
        release_traces(w);
    }
    return cannot_stay_open(w, fixed);
}

// Traces the graph for two batch sizes. If one fails or the programs differ, the batch is fixed to
// 1.
static tare_status trace_all(onnx_writer *w) {
    w->batch = 1;
    TARE_TRY(tare__onnx_find_open(w));
    if (w->open.count > 0) return trace_open(w);
    if (!is_open(w->spec)) return trace_batch(w, (trace_kind){.batch = 1}, &w->trace, w->err);
    w->batch = BATCH;
    w->other_batch = OTHER_BATCH;
    tare_status status = trace_batch(w, (trace_kind){.batch = BATCH}, &w->trace, w->rule_err);
    if (status == TARE_OK)
        status = trace_batch(w, (trace_kind){.batch = OTHER_BATCH}, &w->other, w->rule_err);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(w->err);
    const char *fixed = status == TARE_OK ? find_fixed(w) : "";
    if (fixed == NULL) TARE_TRY(find_squeezed(w, &fixed));
    w->has_other = fixed == NULL;
    if (w->has_other) return TARE_OK;
    note_fixed(w, fixed,
               status == TARE_OK ? "the batch size is fixed to 1: the node computes with it"
                                 : "the batch size is fixed to 1: the model accepts no other");
    release_traces(w);
    w->batch = 1;
    return trace_batch(w, (trace_kind){.batch = 1}, &w->trace, w->err);
}

// --- names ---

static tare_status note_paths(void *user, const char *path, module *m, tare_error *err) {
    onnx_writer *w = user;
    char key[32];
    for (size_t i = 0; i < m->tensor_count; i++) {
        const tare_tensor *t = m->tensors[i].tensor;
        if (t == NULL) continue;
        snprintf(key, sizeof key, "%p", (const void *)t);
        if (tare__map_has(&w->paths, key)) continue;
        char *full = tare__arena_printf(&w->memory, "%s%s%s", path, *path != '\0' ? "." : "",
                                        m->tensors[i].name);
        if (full == NULL || !tare__map_set(&w->paths, key, full)) return tare__out_of_memory(err);
    }
    return TARE_OK;
}

static tare_status bind_inputs(onnx_writer *w) {
    for (size_t i = 0; i < w->spec->input_count; i++) {
        const char *name = tare__out_unique(w, &w->names, w->spec->inputs[i].name);
        if (name == NULL || !tare__out_bind(w, w->trace.inputs[i].as.tensor, name))
            return tare__out_of_memory(w->err);
    }
    return TARE_OK;
}

// --- calls ---

static bool all_bound(const onnx_writer *w, const value *v) {
    if (v->kind == VALUE_TENSOR) return tare__out_bound(w, v->as.tensor) != NULL;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        if (!all_bound(w, &v->as.items[i])) return false;
    return true;
}

// True if the result is an argument or a tensor of the model: dropout, an item of a tuple.
static bool is_known(const onnx_writer *w, const out_record *r) {
    if (all_bound(w, &r->result)) return true;
    const tare_tensor *t = r->result.kind == VALUE_TENSOR ? r->result.as.tensor : NULL;
    return t != NULL && tare__out_path(w, t) != NULL;
}

// An observer returns its input, too, but shows that the model is not converted.
static bool is_observer(const out_record *r) {
    return r->call.module != NULL && r->call.module->class->role == ROLE_OBSERVER;
}

static bool is_constant(const out_record *r) {
    return r->result.kind == VALUE_TENSOR && r->result.as.tensor->data != NULL;
}

// A constant that depends on no tensor of the model or batch size needs no node.
static bool is_plain_constant(const onnx_writer *w, size_t i) {
    const out_record *a = &w->trace.records[i];
    if (!is_constant(a) || !tare__onnx_is_pure(&w->trace, a->result.as.tensor)) return false;
    return !w->has_other ||
           (is_constant(&w->other.records[i]) &&
            elements_agree(a->result.as.tensor, w->other.records[i].result.as.tensor));
}

// Operators that only move elements keep quantized values as integers.
static bool works_on_quantized(const op_call *call) {
    const tare_tensor *to = call->result.kind == VALUE_TENSOR ? call->result.as.tensor : NULL;
    const value *first = call->param_count > 0 ? call->param[0] : NULL;
    if (call->result.kind == VALUE_TUPLE && call->result.count > 0 &&
        call->result.as.items[0].kind == VALUE_TENSOR)
        to = call->result.as.items[0].as.tensor;
    return call->op != NULL && (call->op->traits & OP_MOVES_DATA) != 0 &&
           (call->op->traits & OP_ANY_DTYPE) == 0 && to != NULL && to->q != NULL && first != NULL &&
           first->kind == VALUE_TENSOR && first->as.tensor->q != NULL &&
           tare__qparams_equal(first->as.tensor->q, to->q);
}

static const char *rule_id(const op_call *call) {
    const module *m = call->module;
    if (m == NULL) return call->op != NULL ? call->op->id : "";
    switch (m->class->role) {
    case ROLE_QUANTIZED:
        return "quantized.module";
    case ROLE_DYNAMIC:
        return "dynamic.module";
    case ROLE_OBSERVER:
    case ROLE_QAT:
    case ROLE_OBSERVED:
        return "observer.module";
    case ROLE_FUSED:
        return "fused.module";
    case ROLE_REFERENCE:
        return "reference.module";
    case ROLE_GROUPED:
        return "grouped.module";
    default:
        return call->op != NULL ? call->op->id : "";
    }
}

static void write_call(onnx_out *o) {
    const module *m = o->call.module;
    o->rule = tare__onnx_find_write_rule(rule_id(&o->call));
    if (o->rule == NULL && m != NULL)
        tare__out_refuse(o, "ONNX export does not support a %s", m->class->name);
    else if (o->rule == NULL)
        tare__out_refuse(o, "ONNX export does not support it");
    else
        tare__out_dispatch(o);
    if (!tare__out_failed(o) && !all_bound(o->w, &o->record->result))
        tare__out_refuse(o, "one of its results is not written");
}

static const char *target_of(const onnx_out *o) {
    const module *m = o->call.module;
    return m != NULL ? m->class->name : o->record->node->target;
}

static void bind_dummies(onnx_writer *w, const value *v) {
    if (v->kind == VALUE_TENSOR && tare__out_bound(w, v->as.tensor) == NULL)
        tare__out_bind(w, v->as.tensor, "refused");
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        bind_dummies(w, &v->as.items[i]);
}

static void list_refusal(onnx_out *o) {
    onnx_writer *w = o->w;
    const char *reason = tare_error_message(o->call.err);
    text *list = &w->refusals;
    tare__text_append(list, w->refusal_count > 0 ? ",{\"node\":" : "{\"node\":");
    tare__text_json_string(list, o->record->node->name);
    tare__text_append(list, ",\"operator\":");
    tare__text_json_string(list, target_of(o));
    tare__text_append(list, ",\"reason\":");
    tare__text_json_string(list, reason);
    tare__text_char(list, '}');
    tare__text_printf(&w->first_refusal, "%s%s (%s): %s", w->refusal_count > 0 ? "; " : "",
                      o->record->node->name, target_of(o), reason);
    w->refusal_count++;
}

static void drop_nodes(onnx_writer *w, size_t from) {
    for (size_t i = from; i < w->node_count; i++) tare__text_release(&w->nodes[i].attributes);
    w->node_count = from;
}

// A number, if other dimensions than the batch are open. If it cannot be written, its users are
// refused.
static tare_status write_number(onnx_out *o) {
    const size_t mark = o->w->node_count;
    o->call.err = o->w->rule_err;
    tare__out_number_node(o);
    if (o->status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(o->w->err);
    if (o->status != TARE_OK) drop_nodes(o->w, mark);
    return TARE_OK;
}

static tare_status write_record(onnx_writer *w, size_t i) {
    const out_record *r = &w->trace.records[i];
    onnx_out o = {
        .w = w, .record = r, .other = w->has_other ? &w->other.records[i] : NULL, .call = r->call};
    const bool is_there = is_known(w, r) || is_plain_constant(w, i);
    if (!computes(r)) return write_number(&o);
    if (is_there && !is_observer(r)) return TARE_OK;
    const size_t mark = w->node_count;
    const char *batch_size = w->batch_size;
    o.call.err = w->rule_err;
    o.on_quantized = works_on_quantized(&o.call);
    tare_error_clear(w->rule_err);
    write_call(&o);
    if (o.status == TARE_OK) return TARE_OK;
    if (o.status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(w->err);
    drop_nodes(w, mark);
    w->batch_size = batch_size;
    if (is_constant(r) && !w->has_other && !is_observer(r))
        return TARE_OK; // its constant is used instead
    list_refusal(&o);
    bind_dummies(w, &r->result);
    return TARE_OK;
}

static tare_status refuse_all(onnx_writer *w) {
    TARE_TRY(tare__text_status(&w->first_refusal, w->err));
    tare__fail(w->err, TARE_UNSUPPORTED, "%zu node%s cannot be written as ONNX of opset %d: %s",
               w->refusal_count, w->refusal_count > 1 ? "s" : "", w->opset,
               tare__text_chars(&w->first_refusal));
    return w->opset < ONNX_NEWEST_WRITTEN
               ? tare__hint(w->err, TARE_UNSUPPORTED,
                            "--opset %d may have what is missing; --report "
                            "FILE lists every node",
                            ONNX_NEWEST_WRITTEN)
               : tare__hint(w->err, TARE_UNSUPPORTED, "--report FILE lists every node");
}

// --- outputs ---

// An output that the model names has that name in the file; others are named after their node.
// Reserved before nodes are written, so that none takes these names.
static tare_status reserve_output_names(onnx_writer *w) {
    const graph *g = w->root->graph;
    const bool is_named = g->output_names.count > 0 && g->export_json == NULL;
    call_names *names = &w->wanted_outputs;
    TARE_TRY(tare__output_names(g, &w->trace.outputs, &w->memory, names, w->err));
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        const bool is_default = strcmp(name, "output") == 0 || tare__starts_with(name, "output.");
        if (is_default && !is_named)
            names->items[i] = NULL;
        else if ((names->items[i] = tare__out_unique(w, &w->names, name)) == NULL)
            return tare__out_of_memory(w->err);
    }
    return TARE_OK;
}

static tare_status write_outputs(onnx_writer *w, const value *v, const value *other) {
    if (v->kind != VALUE_TENSOR && !tare__value_has_items(v))
        return tare__fail(w->err, TARE_UNSUPPORTED,
                          "the model returns something that is not a tensor");
    if (v->kind == VALUE_TENSOR)
        return tare__onnx_add_output(w, v->as.tensor, other != NULL ? other->as.tensor : NULL);
    const bool is_dict = v->kind == VALUE_DICT;
    for (uint32_t i = is_dict ? 1 : 0; i < v->count; i += is_dict ? 2 : 1)
        TARE_TRY(write_outputs(w, &v->as.items[i], other != NULL ? &other->as.items[i] : NULL));
    return TARE_OK;
}

// --- the whole ---

static tare_status check_opset(onnx_writer *w) {
    w->opset = w->spec->opset != 0 ? w->spec->opset : ONNX_DEFAULT_OPSET;
    if (w->opset >= ONNX_OLDEST_WRITTEN && w->opset <= ONNX_NEWEST_WRITTEN) return TARE_OK;
    return tare__fail(w->err, TARE_INVALID_ARGUMENT, "opset %d: %d to %d can be written", w->opset,
                      ONNX_OLDEST_WRITTEN, ONNX_NEWEST_WRITTEN);
}

static tare_status write_model(onnx_writer *w, onnx_image *out) {
    TARE_TRY(check_opset(w));
    TARE_TRY(tare__module_walk(w->root, note_paths, w, w->err));
    TARE_TRY(trace_all(w));
    TARE_TRY(bind_inputs(w));
    TARE_TRY(reserve_output_names(w));
    for (size_t i = 0; i < w->trace.record_count; i++) TARE_TRY(write_record(w, i));
    if (w->refusal_count > 0) return refuse_all(w);
    TARE_TRY(write_outputs(w, &w->trace.outputs, w->has_other ? &w->other.outputs : NULL));
    TARE_TRY(tare__onnx_name_outputs(w));
    TARE_TRY(tare__onnx_fit_runtime(w));
    return tare__onnx_assemble(w, out);
}

static tare_status write_report(onnx_writer *w, onnx_image *out) {
    tare__text_printf(&out->report, "{\"opset\":%d,\"batch\":", w->opset);
    tare__text_append(&out->report, w->has_other ? "\"open\"" : "\"fixed\"");
    tare__text_printf(&out->report, ",\"refused\":[%s],\"notes\":[%s]}\n",
                      tare__text_chars(&w->refusals), tare__text_chars(&w->notes));
    out->is_refused = w->refusal_count > 0;
    TARE_TRY(tare__text_status(&w->refusals, w->err));
    TARE_TRY(tare__text_status(&w->notes, w->err));
    return tare__text_status(&out->report, w->err);
}

static void release(onnx_writer *w) {
    drop_nodes(w, 0);
    tare__free(w->nodes);
    for (size_t i = 0; i < w->tensor_count; i++)
        tare_tensor_release((tare_tensor *)w->tensors[i].t);
    tare__free(w->tensors);
    map *const maps[] = {&w->tensor_names, &w->values,       &w->paths,   &w->names,
                         &w->node_names,   &w->constants,    &w->sources, &w->weights,
                         &w->dynamic,      &w->output_names, &w->numbers};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) tare__map_release(maps[i]);
    tare__tensor_map_release(&w->quantized);
    tare__onnx_trace_release(&w->trace);
    tare__onnx_trace_release(&w->other);
    tare__text_release(&w->refusals);
    tare__text_release(&w->notes);
    tare__text_release(&w->first_refusal);
    tare__text_release(&w->outputs);
    tare__arena_release(&w->memory);
    tare_error_destroy(w->rule_err);
}

static tare_status write_once(const onnx_write_spec *spec, bool is_second, bool *is_open,
                              onnx_image *out, tare_error *err) {
    onnx_writer w = {.spec = spec,
                     .root = spec->root,
                     .is_second = is_second,
                     .err = err,
                     .rule_err = tare_error_create()};
    *out = (onnx_image){0};
    tare_status status = w.rule_err != NULL ? write_model(&w, out) : tare__out_of_memory(err);
    const tare_status reported = status == TARE_OUT_OF_MEMORY ? status : write_report(&w, out);
    *is_open = w.open.count > 0;
    release(&w);
    return status != TARE_OK ? status : reported;
}

static bool same_text(const text *a, const text *b) {
    return a->length == b->length &&
           memcmp(tare__text_chars(a), tare__text_chars(b), a->length) == 0;
}

static bool same_images(const onnx_image *a, const onnx_image *b) {
    bool same = same_text(&a->nodes, &b->nodes) && same_text(&a->tail, &b->tail) &&
                a->tensor_count == b->tensor_count;
    for (size_t i = 0; same && i < a->tensor_count; i++) {
        same = tare__same_elements(a->tensors[i].t, b->tensors[i].t);
    }
    return same;
}

// With open dimensions, the second pair of stand-in sizes must give the same file.
tare_status tare__onnx_image(const onnx_write_spec *spec, onnx_image *out, tare_error *err) {
    onnx_image again = {.tensor_count = 0};
    bool is_open = false;
    TARE_TRY(write_once(spec, false, &is_open, out, err));
    if (!is_open) return TARE_OK;
    tare_status status = write_once(spec, true, &is_open, &again, err);
    if (status == TARE_OK && !same_images(out, &again)) {
        tare__fail(err, TARE_UNSUPPORTED, "the file depends on sizes that the inputs leave open");
        status =
            tare__hint(err, TARE_UNSUPPORTED, "give the inputs a shape: --input-shape x=1x128");
    }
    tare__onnx_image_release(&again);
    return status;
}
