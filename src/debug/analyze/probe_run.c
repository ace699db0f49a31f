// SPDX-License-Identifier: Apache-2.0
// A run of a probe: selects what is quantized and what is taken from earlier runs, and calls the
// callbacks.
#include <string.h>

#include "core/memory/alloc.h"
#include "debug/analyze/probe.h"
#include "model/pass.h"
#include "ops/op.h"

// --- what is quantized ---

static bool is_quantized(const probe_run *r, size_t layer) {
    switch (r->mode) {
    case PROBE_FLOATS:
        return false;
    case PROBE_ALL:
        return true;
    case PROBE_ONLY:
        return layer == r->layer;
    case PROBE_BUT:
        return layer != r->layer;
    }
    return false;
}

static bool is_on(const probe_run *r, const node *n) {
    const probe_fact *about = &r->probe->facts[n->id];
    if (r->is_over) return false;
    if (about->is_weight ? r->no_weights : r->no_activations) return false;
    return is_quantized(r, about->layer);
}

// The layer's module with the weights for this run; NULL: the call's own module.
static const module *module_for(const probe_run *r, const node *n) {
    const size_t layer = r->probe->facts[n->id].layer;
    if (layer == PROBE_NONE) return NULL;
    const probe_layer *l = &r->probe->layers[layer];
    return is_quantized(r, layer) && !r->no_weights ? l->rounded : l->with_floats;
}

// Creates and reports the rounded weight of a quantized layer.
static tare_status round_weight(const probe_run *r, const node *n) {
    const size_t layer = r->probe->facts[n->id].layer;
    if (layer == PROBE_NONE || !is_quantized(r, layer) || r->no_weights) return TARE_OK;
    const probe_layer *l = &r->probe->layers[layer];
    TARE_TRY(tare__probe_round(r->probe, layer, r->err));
    return r->weight != NULL && l->rounded_weight != NULL
               ? r->weight(r->user, n, l->weight, l->rounded_weight, r->err)
               : TARE_OK;
}

// --- what is computed ---

static const tare_tensor *known(const probe_run *r, size_t id) {
    return r->base != NULL ? tare__value_cache_get(r->base, id) : NULL;
}

static void need(bool *needed, const node *n) {
    if (n != NULL) needed[n->id] = true;
}

// A dequantize that is switched off returns the input of its quantize node.
static const node *float_source(const probe_run *r, const node *n) {
    const probe_fact *about = &r->probe->facts[n->id];
    if (about->kind != PROBE_DEQUANTIZE || is_on(r, n)) return NULL;
    return tare__node_arg(tare__node_arg(n, 0), 0);
}

static void need_inputs(const probe_run *r, const node *n, bool *needed) {
    const node *source = float_source(r, n);
    if (source != NULL) {
        need(needed, source);
        return;
    }
    for (size_t i = 0; i < n->input_count; i++) need(needed, n->inputs[i]);
}

static bool changes(const probe_run *r, const node *n, const bool *changed) {
    if (r->probe->facts[n->id].layer == r->layer) return true;
    for (size_t i = 0; i < n->input_count; i++)
        if (changed[n->inputs[i]->id]) return true;
    return false;
}

// Forward: what depends on the layer. Backward: what must be computed for it.
static tare_status plan(probe_run *r, tare_error *err) {
    const probe *p = r->probe;
    bool *changed = tare__alloc_zeroed(p->id_count + 1, sizeof *changed);
    bool *needed = tare__alloc_zeroed(p->id_count + 1, sizeof *needed);
    r->is_computed = tare__alloc_zeroed(p->id_count + 1, sizeof *r->is_computed);
    const bool is_short = changed == NULL || needed == NULL || r->is_computed == NULL;
    for (const node *n = p->g->first; n != NULL && !is_short; n = n->next)
        changed[n->id] = changes(r, n, changed);
    if (!is_short) need(needed, p->g->last);
    for (const node *n = p->g->last; n != NULL && !is_short; n = n->prev) {
        r->is_computed[n->id] = needed[n->id] && (changed[n->id] || known(r, n->id) == NULL);
        if (r->is_computed[n->id]) need_inputs(r, n, needed);
    }
    tare__free(changed);
    tare__free(needed);
    return is_short ? tare__out_of_memory(err) : TARE_OK;
}

static bool is_plain_float(const value *v) {
    return v->kind == VALUE_TENSOR && v->as.tensor->dtype == TARE_FLOAT32;
}

static void give(op_call *call, const tare_tensor *t) {
    tare_tensor *kept = tare_tensor_retain((tare_tensor *)t); // NOLINT: counted, not changed
    tare__value_release_tensors(&call->result);
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = kept};
}

// Takes the value of an earlier run; a result that is not needed keeps its initial zeros.
static bool take_known(const probe_run *r, const node *n, op_call *call) {
    const bool isolated =
        r->isolates && r->probe->facts[n->id].kind == PROBE_PLAIN &&
        (r->is_over || r->probe->facts[n->id].layer == PROBE_NONE || known(r, n->id) == NULL);
    if (r->is_computed != NULL ? r->is_computed[n->id] : !isolated) return false;
    const tare_tensor *t = known(r, n->id);
    if (t != NULL)
        give(call, t);
    else if (r->isolates || !is_plain_float(&call->result))
        return false;
    return true;
}

// --- nodes ---

static tare_status compute(const probe_run *r, const node *n, op_call *call) {
    if (n->op != NODE_CALL_MODULE) return tare__op_compute(call);
    TARE_TRY(round_weight(r, n));
    const module *other = module_for(r, n);
    if (other != NULL) {
        call->module = other;
        call->is_bound = false; // the shape rule bound the other module's weight
    }
    return call->module->class->forward(call);
}

static tare_status quantize(probe_run *r, const node *n, op_call *call) {
    const tare_tensor *x = tare__call_tensor(call, 0);
    const probe_fact *about = &r->probe->facts[n->id];
    if (x == NULL || x->dtype != TARE_FLOAT32) return compute(r, n, call);
    tare_tensor_release(r->sources[n->id]);
    r->sources[n->id] = tare_tensor_retain((tare_tensor *)x); // NOLINT: counted, not changed
    if (r->quantizes != NULL && !about->is_weight) TARE_TRY(r->quantizes(r->user, n, x, r->err));
    bool is_read = false;
    for (size_t i = 0; i < n->user_count && !is_read; i++)
        is_read = float_source(r, n->users[i]) == NULL;
    if (r->is_computed != NULL && !r->is_computed[n->id]) is_read = false;
    return is_read ? compute(r, n, call) : TARE_OK;
}

static tare_status dequantize(const probe_run *r, const node *n, op_call *call) {
    const node *from = tare__node_arg(n, 0);
    const tare_tensor *x = r->sources[from->id];
    if (x == NULL || is_on(r, n)) {
        TARE_TRY(compute(r, n, call));
        const bool is_told = x != NULL && r->weight != NULL && r->probe->facts[n->id].is_weight;
        return is_told && is_plain_float(&call->result)
                   ? r->weight(r->user, from, x, call->result.as.tensor, r->err)
                   : TARE_OK;
    }
    give(call, x);
    return TARE_OK;
}

static tare_status execute(void *user, const node *n, op_call *call, bool *handled) {
    probe_run *r = user;
    *handled = n->owner == r->probe->g; // not for a graph inside the graph
    if (!*handled) return TARE_OK;
    if (r->goes_on != NULL && !r->is_over) r->is_over = !r->goes_on(r->user);
    const probe_kind kind = r->probe->facts[n->id].kind;
    if (kind == PROBE_QUANTIZE) return quantize(r, n, call);
    if (take_known(r, n, call)) return TARE_OK;
    return kind == PROBE_DEQUANTIZE ? dequantize(r, n, call) : compute(r, n, call);
}

// Replaces the result of a call by that of an earlier run. The interpreter's table owns it, and no
// node has read it yet.
static void substitute(const value *result, const tare_tensor *t) {
    value *own = (value *)result; // NOLINT: not const where it is kept
    if (t == NULL || t == own->as.tensor) return;
    tare_tensor *kept = tare_tensor_retain((tare_tensor *)t); // NOLINT: counted, not changed
    tare_tensor_release(own->as.tensor);
    own->as.tensor = kept;
}

// For calls that return their input, or a view of it, and are never executed.
static tare_status finish_plain(const probe_run *r, const node *n, const value *result,
                                tare_error *err) {
    const bool is_layer = r->probe->facts[n->id].layer != PROBE_NONE;
    const bool is_taken = r->is_computed != NULL && !r->is_computed[n->id];
    if (r->result != NULL && (r->isolates ? is_layer && !r->is_over : !is_taken))
        TARE_TRY(r->result(r->user, n, result->as.tensor, err));
    if (r->isolates || is_taken) substitute(result, known(r, n->id));
    return TARE_OK;
}

// True for a layer, or a value that a layer reads, directly or quantized.
static bool matters(const probe *p, const node *n) {
    bool found = p->facts[n->id].layer != PROBE_NONE;
    for (size_t i = 0; i < n->user_count && !found; i++) {
        const probe_fact *about = &p->facts[n->users[i]->id];
        found = about->layer != PROBE_NONE || about->kind == PROBE_QUANTIZE;
    }
    return found;
}

static tare_status finish(void *user, const node *n, const value *result, tare_error *err) {
    probe_run *r = user;
    if (n->owner != r->probe->g || !tare__node_is_call(n) || !is_plain_float(result))
        return TARE_OK;
    const probe_kind kind = r->probe->facts[n->id].kind;
    if (kind == PROBE_PLAIN) TARE_TRY(finish_plain(r, n, result, err));
    if (r->keep == NULL || kind == PROBE_QUANTIZE) return TARE_OK;
    if (kind == PROBE_DEQUANTIZE && !is_on(r, n)) return TARE_OK; // its source is reported
    return tare__value_cache_put(r->keep, n->id, result->as.tensor,
                                 r->keeps_layers && matters(r->probe, n), err);
}

// --- runs ---

static void collect(const value *v, probe_outputs *out) {
    if (is_plain_float(v) && out->count < PROBE_MOST_OUTPUTS) {
        out->tensors[out->count++] = tare_tensor_retain(v->as.tensor);
        return;
    }
    if (!tare__value_has_items(v)) return;
    for (uint32_t i = 0; i < v->count; i++) collect(&v->as.items[i], out);
}

void tare__probe_outputs_release(probe_outputs *out) {
    for (size_t i = 0; i < out->count; i++) tare_tensor_release(out->tensors[i]);
    out->count = 0;
}

static tare_status interpret(probe_run *r, const tare_tensor *const *inputs, size_t input_count,
                             arena *memory, value *out, tare_error *err) {
    const probe *p = r->probe;
    const interpreter it = {.root = p->model->root,
                            .thread_count = p->thread_count,
                            .kernels = p->kernels,
                            .memory_limit = p->model->memory_limit,
                            .execute = execute,
                            .after = finish,
                            .user = r};
    value *values = tare__arena_array(memory, input_count + 1, sizeof *values);
    if (values == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < input_count; i++)
        values[i] = (value){.kind = VALUE_TENSOR, .as.tensor = (tare_tensor *)inputs[i]}; // NOLINT
    return tare__interpret(&it, values, input_count, memory, out, err);
}

tare_status tare__probe_run(probe_run *r, const tare_tensor *const *inputs, size_t input_count,
                            probe_outputs *out, tare_error *err) {
    arena memory = {0};
    value result = tare__none();
    r->err = err;
    r->is_computed = NULL;
    r->is_over = false;
    r->sources = tare__alloc_zeroed(r->probe->id_count + 1, sizeof(tare_tensor *));
    tare_status status = r->sources != NULL ? TARE_OK : tare__out_of_memory(err);
    if (status == TARE_OK && r->base != NULL && !r->isolates) status = plan(r, err);
    if (status == TARE_OK) status = interpret(r, inputs, input_count, &memory, &result, err);
    if (status == TARE_OK && out != NULL) collect(&result, out);
    tare__value_release_tensors(&result);
    for (size_t i = 0; r->sources != NULL && i < r->probe->id_count; i++)
        tare_tensor_release(r->sources[i]);
    tare__free(r->sources);
    tare__free(r->is_computed);
    tare__arena_release(&memory);
    return status;
}
