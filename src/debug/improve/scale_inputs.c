// SPDX-License-Identifier: Apache-2.0
// Scales of channels move from what linear layers read into their weights:
//   y = W x = (W diag(s)) (diag(1/s) x)
// SmoothQuant (G. Xiao et al., 2022) takes s[c] = max|x[c]|^a / max|W[.][c]|^(1-a), so that
// channels of large values do not set the range of all. AWQ (J. Lin et al., 2023) takes
// s[c] = mean|x[c]|^a, so that weights of large inputs are rounded more finely. For each value that
// layers read, the exponent of least expected error is searched, one of them none at all.
// diag(1/s) goes into the norm or the layer in front where nobody else reads it; else a
// multiplication stands in front of the layers, as in NNCF, and what else reads the value keeps it.
#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "debug/improve/layer_inputs.h"
#include "debug/improve/weight_observers.h"
#include "flow/calibrate/observer_list.h"
#include "flow/insert.h"
#include "ops/op.h"
#include "tare/improve.h"

#define LEAST_GAIN 0.9 // of the expected error; a smaller gain is not worth a multiplication

// Layers that read the same node.
typedef struct scale_group {
    node *read; // an observer, or the value
    size_t *layers;
    size_t count;
    const input_stats *stats;
    bool is_static; // the input is statically quantized
    double levels;  // of its quantization
} scale_group;

typedef struct scaling {
    pass base;
    layer_inputs inputs;
    tare_scale_method method;
    weight_change weights;
    double *scratch; // for the largest weight
    size_t number;   // of observers
    size_t tensor_number;
    size_t count;
    tare_error *err;
} scaling;

// --- groups ---

static bool is_linear(const observed_layer *l) {
    return l->layer.tensor->ndim == 2;
}

static void describe_read(const scaling *s, scale_group *g) {
    const module *m = tare__called_module(s->base.model, g->read);
    if (m == NULL || !tare__is_observer_node(s->base.model, g->read)) return;
    const tare_observer_info *info = tare__observer_info(m);
    g->is_static = info->has_qparams && !info->is_dynamic && !info->has_fixed_qparams;
    g->levels = (double)(info->quant_max - info->quant_min);
}

static tare_status find_group(scaling *s, size_t first, scale_group *g) {
    const layer_inputs *x = &s->inputs;
    *g = (scale_group){.read = tare__node_arg(x->layers[first].layer.node, 0),
                       .stats = &x->stats[x->layers[first].stats]};
    g->layers = tare__arena_array(&s->base.scratch, x->count, sizeof *g->layers);
    if (g->layers == NULL) return tare__out_of_memory(s->err);
    for (size_t i = first; i < x->count; i++)
        if (is_linear(&x->layers[i]) && tare__node_arg(x->layers[i].layer.node, 0) == g->read &&
            x->layers[i].layer.tensor->shape[1] == g->stats->channels)
            g->layers[g->count++] = i;
    describe_read(s, g);
    return TARE_OK;
}

// --- the expected error ---

static double magnitude(const input_stats *x, int64_t c) {
    return fmax(fabs((double)x->min[c]), fabs((double)x->max[c]));
}

static double weight_peak(const scaling *s, const scale_group *g, int64_t c) {
    double peak = 0;
    for (size_t i = 0; i < g->count; i++) {
        const tare_tensor *w = s->inputs.layers[g->layers[i]].layer.tensor;
        for (int64_t row = 0; row < w->shape[0]; row++)
            peak = fmax(peak, fabs((double)tare__f32(w)[row * w->shape[1] + c]));
    }
    return peak;
}

// Normalizes scales to be around 1, so that no float overflows.
static void center(float *scales, int64_t count) {
    double sum = 0;
    for (int64_t c = 0; c < count; c++) sum += tare__log((double)scales[c]);
    const double middle = tare__exp(sum / (double)count);
    for (int64_t c = 0; c < count; c++) {
        scales[c] = (float)fmin(fmax((double)scales[c] / middle, 1e-4), 1e4);
    }
}

static void fill_scales(const scaling *s, const scale_group *g, double exponent,
                        const double *peaks, float *scales) {
    const input_stats *x = g->stats;
    for (int64_t c = 0; c < x->channels; c++) {
        const double size = s->method == TARE_SCALE_SMOOTH
                                ? magnitude(x, c)
                                : x->absolutes[c] / (double)(x->count > 0 ? x->count : 1);
        const double against =
            s->method == TARE_SCALE_SMOOTH ? tare__pow(peaks[c], 1 - exponent) : 1;
        const double scale = size > 0 && peaks[c] > 0 ? tare__pow(size, exponent) / against : 1;
        scales[c] = (float)(isfinite(scale) && scale > 1e-30 ? scale : 1);
    }
    center(scales, x->channels);
}

// The error of rounding the input: the squared step divided by 12 for each value, through the
// weights.
static double read_noise(const scaling *s, const scale_group *g, const float *scales) {
    const input_stats *x = g->stats;
    double low = 0, high = 0, power = 0;
    if (!g->is_static) return 0;
    for (int64_t c = 0; c < x->channels; c++) {
        low = fmin(low, (double)x->min[c] / (double)scales[c]);
        high = fmax(high, (double)x->max[c] / (double)scales[c]);
    }
    for (size_t i = 0; i < g->count; i++) {
        const tare_tensor *w = s->inputs.layers[g->layers[i]].layer.tensor;
        for (int64_t k = 0; k < w->count; k++) {
            const double scaled = (double)tare__f32(w)[k] * (double)scales[k % x->channels];
            power += scaled * scaled;
        }
    }
    const double step = (high - low) / g->levels;
    return power * step * step / 12;
}

static tare_status scaled_weight(const scaling *s, const tare_tensor *w, const float *scales,
                                 tare_tensor **out) {
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, w->ndim, w->shape, out, s->err));
    for (int64_t k = 0; k < w->count; k++)
        tare__f32(*out)[k] = tare__f32(w)[k] * scales[k % w->shape[1]];
    return TARE_OK;
}

// The error of rounding the weights, with inputs of the observed mean squares.
static tare_status weight_noise(const scaling *s, const scale_group *g, const float *scales,
                                double *sum) {
    const input_stats *x = g->stats;
    for (size_t i = 0; i < g->count; i++) {
        const observed_layer *l = &s->inputs.layers[g->layers[i]];
        tare_tensor *scaled = NULL;
        const qparams *q = NULL;
        TARE_TRY(scaled_weight(s, l->layer.tensor, scales, &scaled));
        const tare_status status = tare__layer_qparams(&s->inputs, l, scaled, false, &q);
        if (status == TARE_OK) tare__round_weight(scaled, q, s->scratch);
        for (int64_t k = 0; k < scaled->count && status == TARE_OK; k++) {
            const int64_t c = k % x->channels;
            const double rest = ((double)tare__f32(scaled)[k] - s->scratch[k]) / (double)scales[c];
            *sum += rest * rest * x->squares[c] / (double)(x->count > 0 ? x->count : 1);
        }
        tare__qparams_release(q);
        tare_tensor_release(scaled);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status error_of(const scaling *s, const scale_group *g, const float *scales,
                            double *out) {
    *out = read_noise(s, g, scales);
    return weight_noise(s, g, scales, out);
}

// *exponent is 0 if no scaling gains.
static tare_status search(const scaling *s, const scale_group *g, float *best, double *exponent,
                          double *remaining) {
    const int64_t channels = g->stats->channels;
    double *peaks = tare__alloc_zeroed((size_t)channels + 1, sizeof *peaks);
    float *scales = tare__alloc_zeroed((size_t)channels + 1, sizeof *scales);
    double error = 0, least = 0;
    tare_status status = peaks == NULL || scales == NULL ? tare__out_of_memory(s->err) : TARE_OK;
    for (int64_t c = 0; c < channels && status == TARE_OK; c++) {
        peaks[c] = weight_peak(s, g, c);
        scales[c] = 1;
    }
    if (status == TARE_OK) status = error_of(s, g, scales, &least);
    const double plain = least;
    *exponent = 0;
    for (int i = 1; i < 10 && status == TARE_OK; i++) {
        fill_scales(s, g, 0.1 * i, peaks, scales);
        status = error_of(s, g, scales, &error);
        if (status != TARE_OK || !(error < least)) continue;
        least = error;
        *exponent = 0.1 * i;
        memcpy(best, scales, (size_t)channels * sizeof *best);
    }
    if (!(least < LEAST_GAIN * plain)) *exponent = 0;
    *remaining = plain > 0 ? least / plain : 1;
    tare__free(peaks);
    tare__free(scales);
    return status;
}

// --- where the scale goes ---

static tare_status divided(const scaling *s, const tare_tensor *from, const float *scales,
                           tare_tensor **out) {
    const int64_t inner = from->count / from->shape[0];
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, from->ndim, from->shape, out, s->err));
    for (int64_t i = 0; i < from->count; i++)
        tare__f32(*out)[i] = tare__f32(from)[i] / scales[i / inner];
    return TARE_OK;
}

// True if only these layers read the value, directly or through one observer.
static bool is_theirs(const scaling *s, const scale_group *g, const node *source) {
    if (g->read->user_count != g->count) return false;
    return g->read == source || (source->user_count == 1 && tare__node_arg(g->read, 0) == source &&
                                 tare__is_observer_node(s->base.model, g->read));
}

// The tensors of a norm whose result is multiplied by its weight: of `module`, or by path.
typedef struct norm_tensors {
    module *module;
    const char *weight_path, *bias_path;
    const tare_tensor *weight, *bias; // bias NULL: none
} norm_tensors;

static bool is_only_reader(const scaling *s, const node *read) {
    size_t count = 0;
    if (read->user_count != 1) return false;
    for (const node *n = s->base.model->root->graph->first; n != NULL; n = n->next)
        count += n->op == NODE_GET_ATTR && strcmp(n->target, read->target) == 0;
    return count == 1;
}

static bool read_path(const scaling *s, const node *n, const char *name, const char **path,
                      const tare_tensor **out) {
    const op_info *op = tare__function_row(n);
    const size_t at = tare__op_param_index(op, name);
    const value *v = tare__node_kwarg(n, name);
    if (v == NULL && at < n->arg_count) v = &n->args[at];
    *out = NULL;
    if (v == NULL || v->kind == VALUE_NONE) return true;
    if (v->kind != VALUE_NODE || v->as.node->op != NODE_GET_ATTR) return false;
    if (!is_only_reader(s, v->as.node)) return false;
    *path = v->as.node->target;
    *out = tare__module_find_tensor(s->base.model->root, *path);
    return *out != NULL;
}

static bool has_param(const op_info *op, const char *name) {
    return tare__op_param_index(op, name) < tare__op_param_count(op);
}

static bool find_norm(const scaling *s, const node *n, norm_tensors *out) {
    *out = (norm_tensors){.module = tare__called_module(s->base.model, n)};
    const op_info *op =
        out->module != NULL ? tare__class_row(out->module->class) : tare__function_row(n);
    // A norm over the last dimension: its weight and bias are those of the linear layers' input
    // channels.
    if (!tare__op_has(op, OP_NORMALIZES) || !has_param(op, "normalized_shape")) return false;
    if (out->module != NULL) {
        size_t calls = 0;
        for (const node *m = s->base.model->root->graph->first; m != NULL; m = m->next)
            calls += tare__called_module(s->base.model, m) == out->module;
        out->weight = tare__module_tensor(out->module, "weight");
        out->bias = tare__module_tensor(out->module, "bias");
        return calls == 1 && out->module->class->role == ROLE_FLOAT && out->weight != NULL;
    }
    return read_path(s, n, "weight", &out->weight_path, &out->weight) && out->weight != NULL &&
           (!has_param(op, "bias") || read_path(s, n, "bias", &out->bias_path, &out->bias));
}

static tare_status put(const scaling *s, module *m, const char *name, const char *path,
                       const tare_tensor *from, const float *scales) {
    tare_tensor *made = NULL;
    if (from == NULL) return TARE_OK;
    TARE_TRY(divided(s, from, scales, &made));
    const tare_status status =
        m != NULL ? tare__module_set_tensor(m, name, made, true, s->err)
                  : tare__module_replace_tensor(s->base.model->root, path, made, s->err);
    tare_tensor_release(made);
    return status;
}

// *done is false if the value is not computed by a norm, or has other readers.
static tare_status fold(const scaling *s, const scale_group *g, const node *source,
                        const float *scales, bool *done) {
    norm_tensors t;
    const int64_t channels = g->stats->channels;
    *done = false;
    if (!is_theirs(s, g, source) || !find_norm(s, source, &t)) return TARE_OK;
    if (t.weight->count != channels || t.weight->ndim != 1 || t.weight->dtype != TARE_FLOAT32 ||
        (t.bias != NULL && (t.bias->count != channels || t.bias->dtype != TARE_FLOAT32)))
        return TARE_OK;
    TARE_TRY(put(s, t.module, "weight", t.weight_path, t.weight, scales));
    TARE_TRY(put(s, t.module, "bias", t.bias_path, t.bias, scales));
    *done = true;
    return TARE_OK;
}

// Adds 1/s as a tensor of the root, read before the first layer.
static tare_status read_factors(scaling *s, const scale_group *g, const float *scales, node *before,
                                node **out) {
    module *root = s->base.model->root;
    tare_tensor *t = NULL;
    const char *name =
        tare__module_free_name(root, &s->base.scratch, "input_scale_", &s->tensor_number);
    if (name == NULL) return tare__out_of_memory(s->err);
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &g->stats->channels, &t, s->err));
    for (int64_t c = 0; c < g->stats->channels; c++) tare__f32(t)[c] = 1 / scales[c];
    const tare_status status = tare__module_set_tensor(root, name, t, false, s->err);
    tare_tensor_release(t);
    TARE_TRY(status);
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    return tare__graph_insert(root->graph, &spec, before, out, s->err);
}

static tare_status multiply(const scaling *s, node *source, node *factors, node *before,
                            node **out) {
    const bool is_exported = tare__is_overload(before->target);
    const value args[] = {tare__node_value(source), tare__node_value(factors)};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = is_exported ? "torch.ops.aten.mul.Tensor" : "torch.mul",
                            .candidate = "scaled_input",
                            .args = args,
                            .arg_count = 2,
                            .like = source};
    TARE_TRY(tare__graph_insert(s->base.model->root->graph, &spec, before, out, s->err));
    (*out)->origin = NULL; // corresponds to no value of the float model
    return TARE_OK;
}

// Adds a new observer like the one that the layers read; without one, they read the product
// directly.
static tare_status observe(scaling *s, const scale_group *g, node *product, node *before,
                           node **out) {
    const module *old = tare__called_module(s->base.model, g->read);
    tare_observer_spec *spec = NULL;
    module *made = NULL;
    *out = product;
    if (!tare__is_observer_node(s->base.model, g->read)) return TARE_OK;
    TARE_TRY(tare__observer_spec_of(old, &spec, s->err));
    tare_status status =
        tare__observer_spec_instantiate(&s->base.model->context->observers, spec, &made, s->err);
    tare_observer_spec_release(spec);
    TARE_TRY(status);
    status = tare__call_new_module(&s->base, made, "activation_post_process_", &s->number, product,
                                   before, out);
    tare__module_release(made);
    return status;
}

// The first of the layers in the order of the graph.
static node *first_of(const scaling *s, const scale_group *g) {
    return s->inputs.layers[g->layers[0]].layer.node;
}

static tare_status insert(scaling *s, const scale_group *g, node *source, const float *scales) {
    node *before = first_of(s, g), *factors = NULL, *product = NULL, *read = NULL;
    TARE_TRY(read_factors(s, g, scales, before, &factors));
    TARE_TRY(multiply(s, source, factors, before, &product));
    TARE_TRY(observe(s, g, product, before, &read));
    node *old = g->read;
    for (size_t i = 0; i < g->count; i++)
        TARE_TRY(
            tare__node_replace_input(s->inputs.layers[g->layers[i]].layer.node, old, read, s->err));
    if (old != source && old->user_count == 0)
        TARE_TRY(tare__graph_erase(s->base.model->root->graph, old, s->err));
    return TARE_OK;
}

static tare_status scale_weights(scaling *s, const scale_group *g, const float *scales,
                                 double exponent, double remaining, bool is_folded) {
    for (size_t i = 0; i < g->count; i++) {
        observed_layer *l = &s->inputs.layers[g->layers[i]];
        tare_tensor *scaled = NULL;
        TARE_TRY(scaled_weight(s, l->layer.tensor, scales, &scaled));
        const tare_status status = tare__layer_set_weight(&s->base, &l->layer, scaled);
        tare_tensor_release(scaled);
        TARE_TRY(status);
        TARE_TRY(
            TARE_DECIDE(&s->base, l->layer.node, "scaled", s->weights.rule,
                        "scales of %lld input channels move into its weight (exponent %.1f), %s; "
                        "the expected error is %.0f %% of the former one",
                        (long long)g->stats->channels, exponent,
                        is_folded ? "from the norm in front" : "from a new multiplication in front",
                        100 * remaining));
    }
    return TARE_OK;
}

// --- the pass ---

static tare_status scale_group_of(scaling *s, const scale_group *g) {
    float *scales = tare__alloc_zeroed((size_t)g->stats->channels + 1, sizeof *scales);
    double exponent = 0, remaining = 1;
    bool is_folded = false;
    if (scales == NULL) return tare__out_of_memory(s->err);
    node *source = tare__behind_observers(s->base.model, g->read);
    tare_status status = search(s, g, scales, &exponent, &remaining);
    if (status == TARE_OK && exponent > 0 && source != NULL) {
        status = fold(s, g, source, scales, &is_folded);
        if (status == TARE_OK) status = scale_weights(s, g, scales, exponent, remaining, is_folded);
        if (status == TARE_OK && !is_folded) status = insert(s, g, source, scales);
        s->count += g->count;
    }
    tare__free(scales);
    return status;
}

static bool is_first_of_group(const scaling *s, size_t index) {
    const node *read = tare__node_arg(s->inputs.layers[index].layer.node, 0);
    for (size_t i = 0; i < index; i++)
        if (is_linear(&s->inputs.layers[i]) &&
            tare__node_arg(s->inputs.layers[i].layer.node, 0) == read)
            return false;
    return true;
}

static tare_status find_groups(scaling *s, scale_group *groups, size_t *count) {
    for (size_t i = 0; i < s->inputs.count; i++) {
        if (!is_linear(&s->inputs.layers[i]) || !is_first_of_group(s, i)) continue;
        TARE_TRY(find_group(s, i, &groups[*count]));
        if (groups[*count].count > 0 && groups[*count].stats->channels > 0) (*count)++;
    }
    return TARE_OK;
}

static tare_status run(scaling *s, tare_data *data, const tare_scale_options *options) {
    size_t count = 0;
    int64_t largest = 0;
    TARE_TRY(tare__layer_inputs_find(&s->base, &s->inputs));
    tare__layer_inputs_set_limit(&s->inputs, options->seconds);
    if (s->inputs.count == 0) return TARE_OK;
    TARE_TRY(tare__weight_change_begin(&s->weights));
    TARE_TRY(tare__layer_inputs_run(&s->inputs, data, false, options->sample_limit,
                                    options->thread_count));
    for (size_t i = 0; i < s->inputs.count; i++)
        if (s->inputs.layers[i].layer.tensor->count > largest)
            largest = s->inputs.layers[i].layer.tensor->count;
    s->scratch = tare__alloc_zeroed((size_t)largest + 1, sizeof *s->scratch);
    scale_group *groups = tare__arena_array(&s->base.scratch, s->inputs.count, sizeof *groups);
    if (s->scratch == NULL || groups == NULL) return tare__out_of_memory(s->err);
    TARE_TRY(find_groups(s, groups, &count)); // before reads change
    for (size_t i = 0; i < count && !tare__layer_inputs_is_over(&s->inputs); i++)
        TARE_TRY(scale_group_of(s, &groups[i]));
    return tare__observers_forget(s->base.model, s->err);
}

tare_status tare_scale_inputs(const tare_model *prepared, tare_data *data,
                              const tare_scale_options *options, size_t *count, tare_model **out,
                              tare_error *err) {
    tare_scale_options o = {0};
    if (options != NULL) tare__struct_copy(&o, sizeof o, options);
    if (data == NULL || o.thread_count < 0 || o.sample_limit < 0 ||
        (o.method != TARE_SCALE_SMOOTH && o.method != TARE_SCALE_AWQ))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "scale inputs: expected data, samples, threads and a method");
    scaling s = {.method = o.method,
                 .weights = {.rule = o.method == TARE_SCALE_SMOOTH ? "smoothing" : "awq"},
                 .err = err};
    TARE_TRY(tare__improve_begin(&s.base, prepared, out, err));
    s.weights.p = &s.base;
    const tare_status status = run(&s, data, &o);
    if (status == TARE_OK && count != NULL) *count = s.count;
    tare__layer_inputs_release(&s.inputs);
    tare__free(s.scratch);
    return tare__pass_end(&s.base, status, out);
}
