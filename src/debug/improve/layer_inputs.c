// SPDX-License-Identifier: Apache-2.0
// Collects the inputs of layers over samples.
#include "debug/improve/layer_inputs.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "debug/improve/weight_observers.h"
#include "dnnl/float_kernels.h"
#include "flow/calibrate/calibrate.h"
#include "model/data.h"
#include "ops/classes/module_call.h"
#include "ops/interpret.h"
#include "ops/layer_call.h"
#include "ops/op.h"
#include "ops/rules.h"

enum {
    DEFAULT_SAMPLES = 64,
    MOST_INNER = 2048,      // columns of a weight: their products are kept as doubles
    MOST_GRAM_ROWS = 16384, // more rows add nothing
    MOST_PATCHES = 256,     // pixels of a convolution per sample
};

// --- the layers ---

static tare_status find_spec(const layer_inputs *x, const node *n, const tare_observer_spec **out) {
    const prepared_state *state = x->p->model->prepared;
    const prepared_node *known = state != NULL ? tare__prepared_node(state, n->name) : NULL;
    tare_observer_info info = {0};
    *out = NULL;
    if (known == NULL || !known->is_observed || known->qconfig == NULL ||
        known->qconfig->weight == NULL || known->equalization != NULL)
        return TARE_OK;
    TARE_TRY(tare__pass_spec_info(x->p, known->qconfig->weight, &info));
    if (info.has_qparams && !info.is_dynamic && info.qscheme != TARE_QSCHEME_UNSET)
        *out = known->qconfig->weight;
    return TARE_OK;
}

static bool is_weight_observer(const tare_model *model, const node *n) {
    if (n == NULL || !tare__is_observer_node(model, n)) return false;
    const tare_observer_info *info = tare__observer_info(tare__called_module(model, n));
    return info->has_qparams && !info->is_dynamic && info->qscheme != TARE_QSCHEME_UNSET;
}

static size_t find_stats(const layer_inputs *x, node *input, bool is_linear) {
    const node *source = tare__behind_observers(x->p->model, input);
    for (size_t i = 0; i < x->count && is_linear; i++) {
        const observed_layer *l = &x->layers[i];
        const node *other = tare__behind_observers(x->p->model, tare__node_arg(l->layer.node, 0));
        if (other == source && l->layer.tensor->ndim == 2) return l->stats;
    }
    return x->stats_count;
}

static tare_status add_layer(layer_inputs *x, const observed_layer *found) {
    node *input = tare__node_arg(found->layer.node, 0);
    observed_layer l = *found;
    if (input == NULL) return TARE_OK;
    l.stats = find_stats(x, input, l.layer.tensor->ndim == 2);
    if (l.stats == x->stats_count) {
        if (!tare__grow((void **)&x->stats, &x->stats_capacity, x->stats_count, sizeof *x->stats))
            return tare__out_of_memory(x->p->err);
        x->stats[x->stats_count++] = (input_stats){0};
    }
    if (!tare__grow((void **)&x->layers, &x->capacity, x->count, sizeof *x->layers))
        return tare__out_of_memory(x->p->err);
    x->layers[x->count++] = l;
    return TARE_OK;
}

static tare_status consider(layer_inputs *x, node *n) {
    observed_layer l = {0};
    tare__layer_find(x->p->model, n, &l.layer);
    if (l.layer.node == NULL || l.layer.tensor == NULL) return TARE_OK;
    if (tare__layer_weight_fault(x->p->model, &l.layer) != NULL) return TARE_OK;
    if (l.layer.module != NULL)
        TARE_TRY(find_spec(x, n, &l.weight_spec));
    else if (is_weight_observer(x->p->model, l.layer.weight))
        l.weight_observer = l.layer.weight;
    return l.weight_spec != NULL || l.weight_observer != NULL ? add_layer(x, &l) : TARE_OK;
}

tare_status tare__layer_inputs_find(pass *p, layer_inputs *out) {
    *out = (layer_inputs){.p = p};
    for (node *n = p->model->root->graph->first; n != NULL; n = n->next) TARE_TRY(consider(out, n));
    return TARE_OK;
}

// --- sums ---

typedef struct run_state {
    layer_inputs *x;
    bool *is_done; // [stats_count]: already done in this run
    float_kernels *kernels;
    tare_error *err;
} run_state;

static bool begin_channels(input_stats *s, int64_t channels) {
    s->channels = channels;
    s->min = tare__alloc_zeroed((size_t)channels + 1, sizeof *s->min);
    s->max = tare__alloc_zeroed((size_t)channels + 1, sizeof *s->max);
    s->absolutes = tare__alloc_zeroed((size_t)channels + 1, sizeof *s->absolutes);
    s->squares = tare__alloc_zeroed((size_t)channels + 1, sizeof *s->squares);
    return s->min != NULL && s->max != NULL && s->absolutes != NULL && s->squares != NULL;
}

// Adds x as [outer][channels][inner].
static tare_status add_channels(input_stats *s, const tare_tensor *x, int axis, tare_error *err) {
    const int64_t inner = tare__inner_count(x, axis), channels = x->shape[axis];
    if (s->channels == 0 && !begin_channels(s, channels)) return tare__out_of_memory(err);
    if (channels != s->channels) return TARE_OK; // differs between layers: not used
    for (int64_t i = 0; i < x->count / inner; i++) {
        const float *values = tare__f32(x) + i * inner;
        const int64_t c = i % channels;
        for (int64_t k = 0; k < inner; k++) {
            if (values[k] < s->min[c]) s->min[c] = values[k];
            if (values[k] > s->max[c]) s->max[c] = values[k];
            s->absolutes[c] += fabs((double)values[k]);
            s->squares[c] += (double)values[k] * (double)values[k];
        }
    }
    s->count += x->count / channels;
    return TARE_OK;
}

// Adds rows [count][inner] of a group to its matrix.
static tare_status add_gram(const run_state *r, input_stats *s, int64_t group, const float *rows,
                            int64_t count) {
    const size_t size = (size_t)(s->inner * s->inner);
    const float_product product = {s->inner, count, s->inner, false};
    float *transposed = tare__alloc_zeroed((size_t)(s->inner * count) + 1, sizeof *transposed);
    float *made = tare__alloc_zeroed(size + 1, sizeof *made);
    tare_status status = transposed == NULL || made == NULL ? tare__out_of_memory(r->err) : TARE_OK;
    for (int64_t i = 0; i < count && status == TARE_OK; i++)
        for (int64_t k = 0; k < s->inner; k++) transposed[k * count + i] = rows[i * s->inner + k];
    if (status == TARE_OK)
        status = tare__float_multiply(r->kernels, &product, transposed, rows, NULL, made, r->err);
    for (size_t i = 0; i < size && status == TARE_OK; i++)
        s->gram[(size_t)group * size + i] += (double)made[i];
    tare__free(transposed);
    tare__free(made);
    return status;
}

// False if the matrix is not needed, or has enough rows. *status tells failures.
static tare_status wants_rows(const run_state *r, input_stats *s, int64_t groups, int64_t inner,
                              bool *out) {
    *out = false;
    if (!r->x->wants_gram || inner > MOST_INNER || inner == 0 || s->gram_rows >= MOST_GRAM_ROWS)
        return TARE_OK;
    if (groups > MOST_INNER || groups * inner > INT64_C(1) << 24) return TARE_OK;
    if (s->gram == NULL) {
        s->groups = groups;
        s->inner = inner;
        s->gram = tare__alloc_zeroed((size_t)(groups * inner * inner), sizeof *s->gram);
        if (s->gram == NULL) return tare__out_of_memory(r->err);
    }
    *out = s->inner == inner && s->groups == groups;
    return TARE_OK;
}

// --- layers ---

static tare_status add_linear(const run_state *r, input_stats *s, op_call *call) {
    linear_call c;
    bool wants = false;
    TARE_TRY(tare__linear_read(call, &c));
    if (c.x->ndim == 0 || c.x->count == 0) return TARE_OK;
    const int64_t inner = c.x->shape[c.x->ndim - 1], rows = c.x->count / inner;
    TARE_TRY(add_channels(s, c.x, c.x->ndim - 1, r->err));
    s->rows += rows;
    TARE_TRY(wants_rows(r, s, 1, inner, &wants));
    if (!wants) return TARE_OK;
    s->gram_rows += rows;
    return add_gram(r, s, 0, tare__f32(c.x), rows);
}

// The inputs of one output pixel in one group; zeros for padding.
static void take_patch(const conv_call *c, int64_t sample, int64_t group, int64_t pixel,
                       float *out) {
    const float_conv *g = &c->conv;
    const int64_t channels = g->in_channels / g->groups, plane = g->in[0] * g->in[1] * g->in[2];
    const float *x = tare__f32(c->x) + (sample * g->in_channels + group * channels) * plane;
    const int64_t at[3] = {pixel / (g->out[1] * g->out[2]), pixel / g->out[2] % g->out[1],
                           pixel % g->out[2]};
    for (int64_t i = 0; i < channels * g->kernel[0] * g->kernel[1] * g->kernel[2]; i++) {
        const int64_t tap[3] = {i / (g->kernel[1] * g->kernel[2]) % g->kernel[0],
                                i / g->kernel[2] % g->kernel[1], i % g->kernel[2]};
        const int64_t channel = i / (g->kernel[0] * g->kernel[1] * g->kernel[2]);
        int64_t offset = 0;
        bool is_inside = true;
        for (int d = 0; d < 3; d++) {
            const int64_t position = at[d] * g->stride[d] + tap[d] * g->dilation[d] - g->pad[d];
            is_inside = is_inside && position >= 0 && position < g->in[d];
            offset = offset * g->in[d] + position;
        }
        out[i] = is_inside ? x[channel * plane + offset] : 0;
    }
}

static tare_status add_patches(const run_state *r, input_stats *s, const conv_call *c) {
    const int64_t pixels = c->conv.out[0] * c->conv.out[1] * c->conv.out[2];
    const int64_t step = (pixels + MOST_PATCHES - 1) / MOST_PATCHES;
    const int64_t each = step > 0 ? (pixels + step - 1) / step : 0, rows = each * c->conv.batch;
    float *patches = tare__alloc_zeroed((size_t)(rows * s->inner) + 1, sizeof *patches);
    tare_status status = patches != NULL ? TARE_OK : tare__out_of_memory(r->err);
    for (int64_t group = 0; group < s->groups && status == TARE_OK; group++) {
        for (int64_t i = 0; i < rows; i++)
            take_patch(c, i / each, group, i % each * step, patches + i * s->inner);
        status = add_gram(r, s, group, patches, rows);
    }
    tare__free(patches);
    s->gram_rows += rows;
    return status;
}

static tare_status add_conv(const run_state *r, input_stats *s, op_call *call) {
    conv_call c;
    bool wants = false;
    TARE_TRY(tare__conv_read(call, &c));
    if (!c.is_plain || c.x->count == 0) return TARE_OK;
    TARE_TRY(add_channels(s, c.x, 1, r->err));
    const int64_t inner =
        c.conv.in_channels / c.conv.groups * c.conv.kernel[0] * c.conv.kernel[1] * c.conv.kernel[2];
    s->rows += c.conv.batch * c.conv.out[0] * c.conv.out[1] * c.conv.out[2];
    TARE_TRY(wants_rows(r, s, c.conv.groups, inner, &wants));
    return wants ? add_patches(r, s, &c) : TARE_OK;
}

static const observed_layer *layer_of(const layer_inputs *x, const node *n) {
    for (size_t i = 0; i < x->count; i++)
        if (x->layers[i].layer.node == n) return &x->layers[i];
    return NULL;
}

// Binds the layer's call: a fused module has the weight in its first child.
static tare_status add_call(const run_state *r, const observed_layer *l, op_call *call) {
    input_stats *s = &r->x->stats[l->stats];
    op_call own = *call;
    if (l->layer.module != NULL) {
        own = tare__module_call_of(call, l->layer.module, call->args);
        TARE_TRY(tare__operator_module_bind(&own));
    }
    if (tare__op_has(own.op, OP_CONVOLUTION)) return add_conv(r, s, &own);
    return tare__op_id(own.op) == TARE_OP_LINEAR ? add_linear(r, s, &own) : TARE_OK;
}

static tare_status look(void *user, const node *n, op_call *call, bool *handled) {
    const run_state *r = user;
    *handled = call->module != NULL && call->module->class->role == ROLE_OBSERVER;
    const observed_layer *l = *handled ? NULL : layer_of(r->x, n);
    if (l == NULL || r->is_done[l->stats] || call->arg_count == 0 ||
        call->args[0].kind != VALUE_TENSOR || call->args[0].as.tensor->dtype != TARE_FLOAT32)
        return TARE_OK;
    r->is_done[l->stats] = true;
    return add_call(r, l, call);
}

// --- runs ---

// The first samples of a batch, if the model accepts any batch size.
static int64_t samples_of(const tare_data *data, const tare_batch *batch, int64_t left) {
    const data_cut how = tare__data_cut(data);
    return how.as_is || how.fixed_batch > 0 || batch->size < left ? batch->size : left;
}

static tare_status run_batch(run_state *r, const tare_data *data, const tare_batch *batch,
                             int64_t left, int thread_count) {
    const int64_t count = samples_of(data, batch, left);
    const interpreter it = {.root = r->x->p->model->root,
                            .thread_count = thread_count > 0 ? thread_count : 1,
                            .execute = look,
                            .kernels = r->kernels,
                            .memory_limit = r->x->p->model->memory_limit,
                            .user = r};
    arena memory = {0};
    value *values = tare__arena_array(&memory, batch->input_count + 1, sizeof *values);
    value result = tare__none();
    tare_status status = values != NULL ? TARE_OK : tare__out_of_memory(r->err);
    memset(r->is_done, 0, r->x->stats_count * sizeof *r->is_done);
    for (size_t i = 0; i < batch->input_count && status == TARE_OK; i++) {
        tare_tensor *t = (tare_tensor *)batch->inputs[i], *rows = t; // NOLINT: only read
        if (count < batch->size)
            status = tare__tensor_rows(t, 0, count, &rows, r->err);
        else
            (void)tare_tensor_retain(t);
        values[i] =
            status == TARE_OK ? (value){.kind = VALUE_TENSOR, .as.tensor = rows} : tare__none();
    }
    if (status == TARE_OK)
        status = tare__interpret(&it, values, batch->input_count, &memory, &result, r->err);
    tare__value_release_tensors(&result);
    for (size_t i = 0; values != NULL && i < batch->input_count; i++)
        tare__value_release_tensors(&values[i]);
    tare__arena_release(&memory);
    return status;
}

void tare__layer_inputs_set_limit(layer_inputs *x, double seconds) {
    x->end_ns = seconds > 0 ? tare__job_now_ns() + (uint64_t)(seconds * 1e9) : 0;
}

bool tare__layer_inputs_is_over(const layer_inputs *x) {
    return x->end_ns != 0 && tare__job_now_ns() >= x->end_ns;
}

static tare_status run_all(run_state *r, tare_data *data, int64_t limit, int thread_count) {
    const uint64_t begin = tare__job_now_ns(), end = r->x->end_ns;
    TARE_TRY(tare_data_rewind(data, r->err));
    for (int64_t done = 0; done < limit;) {
        tare_batch batch = {.struct_size = sizeof batch};
        bool is_end = false;
        TARE_TRY(tare_data_next(data, &batch, &is_end, r->err));
        if (is_end) break;
        TARE_TRY(
            tare__calibrate_check_inputs(r->x->p->model, batch.inputs, batch.input_count, r->err));
        TARE_TRY(run_batch(r, data, &batch, limit - done, thread_count));
        done += batch.size > 0 ? batch.size : 1;
        if (end != 0 && tare__job_now_ns() - begin > (end > begin ? end - begin : 0) / 2) break;
    }
    return TARE_OK;
}

tare_status tare__layer_inputs_run(layer_inputs *x, tare_data *data, bool wants_gram,
                                   int64_t sample_limit, int thread_count) {
    run_state r = {.x = x, .err = x->p->err};
    x->wants_gram = wants_gram;
    r.is_done = tare__alloc_zeroed(x->stats_count + 1, sizeof *r.is_done);
    tare_status status = r.is_done != NULL ? TARE_OK : tare__out_of_memory(r.err);
    if (status == TARE_OK) status = tare__float_kernels_create(NULL, &r.kernels, r.err);
    if (status == TARE_OK)
        status = run_all(&r, data, sample_limit > 0 ? sample_limit : (int64_t)DEFAULT_SAMPLES,
                         thread_count);
    tare__float_kernels_destroy(r.kernels);
    tare__free(r.is_done);
    return status;
}

void tare__layer_inputs_release(layer_inputs *x) {
    for (size_t i = 0; i < x->stats_count; i++) {
        tare__free(x->stats[i].min);
        tare__free(x->stats[i].max);
        tare__free(x->stats[i].absolutes);
        tare__free(x->stats[i].squares);
        tare__free(x->stats[i].gram);
    }
    tare__free(x->stats);
    tare__free(x->layers);
}

// --- weights ---

static tare_status observe(const layer_inputs *x, const tare_observer_spec *spec,
                           const tare_tensor *weight, bool by_error, const qparams **out) {
    const observer_classes *classes = &x->p->model->context->observers;
    tare_observer_spec *made = NULL;
    module *observer = NULL;
    bool is_calibrated = false;
    if (by_error) TARE_TRY(tare__spec_by_error(classes, spec, &made, x->p->err));
    tare_status status =
        tare__observer_spec_instantiate(classes, made != NULL ? made : spec, &observer, x->p->err);
    tare_observer_spec_release(made);
    TARE_TRY(status);
    status = tare__observer_update(observer, weight, x->p->err);
    if (status == TARE_OK)
        status = tare__observer_qparams(observer, out, &is_calibrated, x->p->err);
    tare__module_release(observer);
    return status;
}

tare_status tare__layer_qparams(const layer_inputs *x, const observed_layer *l,
                                const tare_tensor *weight, bool by_error, const qparams **out) {
    tare_observer_spec *of_node = NULL;
    const tare_observer_spec *spec = l->weight_spec;
    if (spec == NULL) {
        const module *m = tare__called_module(x->p->model, l->weight_observer);
        TARE_TRY(tare__observer_spec_of(m, &of_node, x->p->err));
        spec = of_node;
    }
    const tare_status status = observe(x, spec, weight, by_error, out);
    tare_observer_spec_release(of_node);
    return status;
}

int64_t tare__qparams_index(const tare_tensor *weight, const qparams *q, int64_t element) {
    if (q->count <= 1) return 0;
    if (tare__qscheme_is_per_group(q->scheme)) return element / (weight->count / q->count);
    const int axis = q->axis < 0 ? q->axis + weight->ndim : q->axis;
    return element / tare__inner_count(weight, axis) % weight->shape[axis];
}

void tare__round_weight(const tare_tensor *weight, const qparams *q, double *out) {
    for (int64_t i = 0; i < weight->count; i++) {
        const int64_t at = tare__qparams_index(weight, q, i);
        double quantized = rint((double)tare__f32(weight)[i] / q->scale[at]) + q->zero_point[at];
        if (quantized < (double)q->quant_min) quantized = (double)q->quant_min;
        if (quantized > (double)q->quant_max) quantized = (double)q->quant_max;
        out[i] = (quantized - q->zero_point[at]) * q->scale[at];
    }
}
