// SPDX-License-Identifier: Apache-2.0
// Float layers: convolution and linear, with a following batch norm folded into the weights, and
// activations and a residual addition in the library's epilogue.
#include <string.h>

#include "flow/fold.h"
#include "runtime/steps/layer.h"
#include "runtime/steps/steps.h"

// --- kinds ---

struct layer_kind {
    op_id op;
    plan_layout layout;
    bool is_linear, is_transposed;
    /// Compiles the layer of a call with the folded weights. NULL for transposed convolutions,
    /// which consist of several.
    tare_status (*compile)(plan_builder *b, op_call *call, const folded_norm *folded,
                           const float_epilogue *e, float_layer **out);
};

void tare__folded_norm_release(folded_norm *folded) {
    tare_tensor_release(folded->weight);
    tare_tensor_release(folded->bias);
}

float_weights tare__layer_weights(const tare_tensor *w, const tare_tensor *bias,
                                  const folded_norm *folded) {
    const tare_tensor *b = folded->bias != NULL ? folded->bias : bias;
    return (float_weights){.w = folded->weight != NULL ? folded->weight : w,
                           .bias = b != NULL ? tare__f32(b) : NULL,
                           .is_model = folded->weight == NULL};
}

static tare_status compile_conv(plan_builder *b, op_call *call, const folded_norm *folded,
                                const float_epilogue *e, float_layer **out) {
    conv_call c;
    TARE_TRY(tare__conv_read(call, &c));
    if (!c.is_plain) return TARE_OK;
    const float_weights w = tare__layer_weights(c.w, c.bias, folded);
    return tare__float_layer_conv(b->setting->layers, &c.conv, e, &w, out, b->err);
}

static tare_status compile_linear(plan_builder *b, op_call *call, const folded_norm *folded,
                                  const float_epilogue *e, float_layer **out) {
    linear_call c;
    TARE_TRY(tare__linear_read(call, &c));
    const float_product p = {.rows = tare__call_out(call)->count / c.w->shape[0],
                             .inner = c.w->shape[1],
                             .columns = c.w->shape[0],
                             .transposed = true};
    const float_weights w = tare__layer_weights(c.w, c.bias, folded);
    return tare__float_layer_product(b->setting->layers, &p, e, &w, out, b->err);
}

static const layer_kind kinds[] = {
    {TARE_OP_CONV1D, LAYOUT_CHANNELS_LAST, false, false, compile_conv},
    {TARE_OP_CONV2D, LAYOUT_CHANNELS_LAST, false, false, compile_conv},
    {TARE_OP_CONV3D, LAYOUT_CHANNELS_LAST, false, false, compile_conv},
    {TARE_OP_CONV_TRANSPOSE1D, LAYOUT_CHANNELS_LAST, false, true, NULL},
    {TARE_OP_CONV_TRANSPOSE2D, LAYOUT_CHANNELS_LAST, false, true, NULL},
    {TARE_OP_CONV_TRANSPOSE3D, LAYOUT_CHANNELS_LAST, false, true, NULL},
    {TARE_OP_LINEAR, LAYOUT_PLAIN, true, false, compile_linear},
};

static bool is_constant(const op_call *call, size_t param) {
    const value *v = call->param[param];
    if (v == NULL || v->kind == VALUE_NONE) return true;
    return v->kind == VALUE_TENSOR && v->as.tensor->data != NULL;
}

static const layer_kind *find_kind(const plan_record *r) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tare__record_is(r, kinds[i].op)) return &kinds[i];
    return NULL;
}

const layer_kind *tare__layer_kind_of(const plan_record *r) {
    const layer_kind *kind = find_kind(r);
    return kind != NULL && is_constant(&r->call, 1) && is_constant(&r->call, 2) ? kind : NULL;
}

// --- epilogues ---

static bool read_epilogue(const plan_record *r, float_epilogue *e) {
    op_call call = r->call;
    call.err = NULL;
    if (!tare__plan_is_element(r) || e->count == MOST_EPILOGUES ||
        tare__element_of(&call) != call.op->element ||
        !tare__float_layer_applies(call.op->element->kind) ||
        tare__element_parameters(&call, call.op->element, e->steps[e->count].p) != TARE_OK)
        return false;
    e->steps[e->count++].kind = call.op->element->kind;
    return true;
}

bool tare__layer_is_transposed(const plan_record *r) {
    const layer_kind *kind = tare__layer_kind_of(r);
    return kind != NULL && kind->is_transposed;
}

static bool has_epilogue(const plan_record *r) {
    float_epilogue unused = {0};
    return read_epilogue(r, &unused);
}

// --- what follows a layer ---

// True if the batch norm has constant statistics and normalizes the channels of the layer's result.
static bool is_foldable(const plan_builder *b, const plan_record *layer, const plan_record *next) {
    static const char *const params[] = {"running_mean", "running_var", "weight", "bias"};
    const op_call *call = &next->call;
    const tare_tensor *y = b->values[layer->result].tensor, *w = layer->call.param[1]->as.tensor;
    if (!tare__record_is(next, TARE_OP_BATCH_NORM) || y->ndim != w->ndim)
        return false; // no batch dimension, or a linear layer of sequences: other channels
    if (tare__layer_is_transposed(layer) && w->shape[1] != y->shape[1])
        return false; // its groups share a dimension of the weights
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        const value *v = call->param[tare__op_param_index(call->op, params[i])];
        const bool is_none = v == NULL || v->kind == VALUE_NONE;
        if (is_none && i < 2) return false;
        if (!is_none && (v->kind != VALUE_TENSOR || v->as.tensor->data == NULL)) return false;
    }
    const value *training = call->param[tare__op_param_index(call->op, "training")];
    return training == NULL || training->kind != VALUE_BOOL || !training->as.boolean;
}

size_t tare__layer_extend(plan_builder *b, size_t head, size_t *last, bool *adds) {
    const plan_record *layer = &b->records[*last];
    size_t next = tare__plan_only_reader(b, *last), count = 0;
    const bool may_add = !tare__layer_is_transposed(layer);
    *adds = false;
    if (next != NOTHING && is_foldable(b, layer, &b->records[next])) {
        tare__plan_append(b, head, last, next);
        next = tare__plan_only_reader(b, *last);
    }
    for (; next != NOTHING && count < MOST_EPILOGUES; count++) {
        const plan_record *r = &b->records[next];
        const bool is_sum = tare__plan_is_sum(b, r);
        if (!tare__plan_keeps_shape(b, *last, next) || (is_sum && (*adds || !may_add)) ||
            (!is_sum && !has_epilogue(r)))
            break;
        *adds = *adds || is_sum;
        tare__plan_append(b, head, last, next);
        next = tare__plan_only_reader(b, *last);
    }
    return next;
}

// --- the step ---

typedef struct layer_step {
    float_layer *layer;
    layer_buffers at;
    size_t links;    // number of layers that it computes
    bool is_replica; // with memory of its own
} layer_step;

static tare_status run_layer(const plan_run_state *run, void *state) {
    const layer_step *s = state;
    const layer_buffers *at = &s->at;
    float *y = tare__buffer_data(run, at->y);
    if (at->addend != NOTHING && at->addend != at->y)
        memcpy(y, tare__buffer_data(run, at->addend), at->bytes);
    return tare__float_layer_run(s->layer, tare__buffer_data(run, at->x), y, run->err);
}

static void destroy_layer(void *state) {
    layer_step *s = state;
    tare__float_layer_destroy(s->layer);
    if (s->is_replica) tare__free(s);
}

static tare_status replicate_layer(const plan *replica, const void *state, void **out,
                                   tare_error *err) {
    const layer_step *s = state;
    layer_step *made = tare__alloc(sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *s;
    made->layer = NULL;
    made->is_replica = true;
    const tare_status status =
        tare__float_layer_replica(s->layer, replica->setting.layers, &made->layer, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare__free(made);
    return status;
}

static void describe_layer(const plan *p, const void *state, step_note *out) {
    const layer_step *s = state;
    (void)p;
    out->kernel = tare__float_layer_kernel(s->layer, &out->weight_bytes);
    out->bits_may_differ = true;
    out->samples_are_alike = tare__float_layer_images_are_alike(s->layer);
    if (s->links > 1) tare__step_say(out, "%zu layers in row blocks; ", s->links);
    tare__step_say(out, "float: oneDNN; bits may differ between machines");
}

// The input of a sum that is not computed by the previous record.
static size_t other_input(const plan_record *sum, const plan_record *before) {
    return sum->inputs[0] == before->result ? sum->inputs[1] : sum->inputs[0];
}

bool tare__layer_read(const plan_builder *b, size_t head, layer_chain *out) {
    const plan_record *before = &b->records[head];
    *out = (layer_chain){.kind = tare__layer_kind_of(before), .addend = NOTHING, .next = NOTHING};
    for (size_t i = before->next; i != NOTHING; i = before->next) {
        const plan_record *r = &b->records[i];
        if (tare__layer_kind_of(r) != NULL) {
            out->next = i;
            break;
        }
        float_epilogue *e = &out->epilogue;
        if (tare__record_is(r, TARE_OP_BATCH_NORM)) {
            out->norm = r;
        } else if (tare__plan_is_sum(b, r)) {
            out->addend = other_input(r, before);
            e->steps[e->count++].adds = true;
        } else if (!read_epilogue(r, e)) {
            return false;
        }
        before = r;
    }
    out->result = before->result;
    return out->kind != NULL;
}

static const tare_tensor *tensor_param(const op_call *call, const char *name) {
    const value *v = call->param[tare__op_param_index(call->op, name)];
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

tare_status tare__layer_fold(const plan_builder *b, const op_call *layer, const layer_chain *chain,
                             folded_norm *out) {
    op_call norm = chain->norm->call;
    norm_fold_values values = {.layer = layer->op->id,
                               .norm = norm.op->id,
                               .weight = tensor_param(layer, "weight"),
                               .bias = tensor_param(layer, "bias"),
                               .mean = tensor_param(&norm, "running_mean"),
                               .var = tensor_param(&norm, "running_var"),
                               .gamma = tensor_param(&norm, "weight"),
                               .beta = tensor_param(&norm, "bias"),
                               .is_transposed = chain->kind->is_transposed,
                               .is_linear = chain->kind->is_linear};
    norm.err = b->err;
    TARE_TRY(tare__call_double(&norm, tare__op_param_index(norm.op, "eps"), 1e-5, &values.eps));
    return tare__fold_norm_values(&values, &out->weight, &out->bias, b->err);
}

static tare_status compile(plan_builder *b, size_t head, const layer_chain *chain,
                           float_layer **out) {
    op_call call = b->records[head].call;
    folded_norm folded = {0};
    call.err = b->err;
    if (chain->norm != NULL) TARE_TRY(tare__layer_fold(b, &call, chain, &folded));
    const tare_status status = chain->kind->compile(b, &call, &folded, &chain->epilogue, out);
    tare__folded_norm_release(&folded);
    return status;
}

tare_status tare__layer_assign_buffers(plan_builder *b, size_t head, const layer_chain *chain,
                                       layer_buffers *out) {
    const plan_layout layout = chain->kind->layout;
    bool is_same = false;
    TARE_TRY(tare__plan_read(b, b->records[head].inputs[0], layout, &out->x));
    out->addend = NOTHING;
    out->bytes = tare__tensor_bytes(b->values[chain->result].tensor);
    if (chain->addend == NOTHING) return tare__plan_write(b, chain->result, layout, &out->y);
    TARE_TRY(tare__plan_read(b, chain->addend, layout, &out->addend));
    return tare__plan_write_over(b, chain->result, chain->addend, layout, &out->y, &is_same);
}

tare_status tare__layer_add_step(plan_builder *b, size_t head, const layer_chain *chain,
                                 size_t links, float_layer *layer) {
    layer_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    tare_status status = s != NULL ? TARE_OK : tare__out_of_memory(b->err);
    if (status == TARE_OK) status = tare__layer_assign_buffers(b, head, chain, &s->at);
    if (status != TARE_OK) {
        tare__float_layer_destroy(layer);
        return status;
    }
    s->layer = layer;
    s->links = links;
    return tare__plan_add_step(b, &tare__layer_step, s, b->records[head].node);
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return find_kind(r) != NULL && !tare__layer_is_transposed(r) && tare__plan_is_float(b, r);
}

static bool extend(plan_builder *b, size_t head) {
    size_t last = head;
    bool unused;
    if (tare__layer_kind_of(&b->records[head]) == NULL) return false;
    (void)tare__layer_extend(b, head, &last, &unused);
    return last != head;
}

static tare_status plan_chain(plan_builder *b, size_t head, bool *done) {
    layer_chain chain;
    float_layer *layer = NULL;
    if (!tare__layer_read(b, head, &chain))
        return tare__plan_decline(b, "float: its weights are not constant");
    if (b->setting->layers == NULL)
        return tare__plan_decline(b, "float: no library compiles float layers here");
    TARE_TRY(compile(b, head, &chain, &layer));
    if (layer == NULL) return tare__plan_decline(b, "float: oneDNN has no fast form of it");
    *done = true;
    return tare__layer_add_step(b, head, &chain, 1, layer);
}

const step_class tare__layer_step = {
    .name = "layer",
    .heads = heads,
    .extend = extend,
    .plan = plan_chain,
    .run = run_layer,
    .destroy = destroy_layer,
    .describe = describe_layer,
    .replicate = replicate_layer,
};
