// SPDX-License-Identifier: Apache-2.0
// Biases of integer layers. ONNX Runtime fuses DequantizeLinear
// - Conv or Gemm - QuantizeLinear to one integer operator only if the bias is dequantized, too:
// from int32, with the product of both scales. Layers with a float result keep a float bias.
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "io/onnx/write/state.h"

// --- biases ---

static const out_node *maker_of(const onnx_writer *w, const char *name) {
    for (size_t i = 0; i < w->node_count; i++)
        if (strcmp(w->nodes[i].outputs[0], name) == 0) return &w->nodes[i];
    return NULL;
}

static const out_node *only_reader(const onnx_writer *w, const char *name) {
    const out_node *found = NULL;
    for (size_t i = 0; i < w->node_count; i++)
        for (size_t k = 0; k < w->nodes[i].input_count; k++) {
            if (strcmp(w->nodes[i].inputs[k], name) != 0) continue;
            if (found != NULL) return NULL;
            found = &w->nodes[i];
        }
    return found;
}

// The constant scales with which a value was dequantized; NULL if it was not.
static const tare_tensor *scale_of(const onnx_writer *w, const char *name) {
    const out_node *n = maker_of(w, name);
    if (n == NULL || strcmp(n->op_type, "DequantizeLinear") != 0) return NULL;
    const out_tensor *scale = tare__out_find_tensor(w, n->inputs[1]);
    return scale != NULL ? scale->t : NULL;
}

// The scale with which a value is quantized, possibly after a ReLU; NULL if it stays float.
static const tare_tensor *scale_behind(const onnx_writer *w, const char *name) {
    const out_node *reader = only_reader(w, name);
    if (reader != NULL &&
        (strcmp(reader->op_type, "Relu") == 0 || strcmp(reader->op_type, "Clip") == 0))
        reader = only_reader(w, reader->outputs[0]);
    if (reader == NULL || strcmp(reader->op_type, "QuantizeLinear") != 0) return NULL;
    const out_tensor *scale = tare__out_find_tensor(w, reader->inputs[1]);
    return scale != NULL ? scale->t : NULL;
}

typedef struct bias_job {
    const out_tensor *bias;            // float32 [channels]
    const tare_tensor *x, *weight, *y; // scales
} bias_job;

static bool find_job(const onnx_writer *w, const out_node *n, bias_job *out) {
    const bool is_layer = strcmp(n->op_type, "Conv") == 0 || strcmp(n->op_type, "Gemm") == 0;
    if (!is_layer || n->input_count < 3) return false;
    *out = (bias_job){tare__out_find_tensor(w, n->inputs[2]), scale_of(w, n->inputs[0]),
                      scale_of(w, n->inputs[1]), scale_behind(w, n->outputs[0])};
    return out->bias != NULL && out->bias->t->dtype == TARE_FLOAT32 && out->bias->t->data != NULL &&
           out->bias->t->ndim == 1 && out->x != NULL && out->x->count == 1 && out->weight != NULL &&
           (out->weight->count == 1 || out->weight->count == out->bias->t->count) && out->y != NULL;
}

// Computes the integers and their float32 scales. False if one does not fit, or differs from the
// bias by more than a quarter of the result's scale.
static bool quantize(const bias_job *job, tare_tensor *quantized, tare_tensor *scales) {
    const double most = 0.25 * tare__tensor_get(job->y, 0);
    for (int64_t c = 0; c < quantized->count; c++) {
        const int64_t channel = scales->count == 1 ? 0 : c;
        const float scale =
            (float)tare__tensor_get(job->x, 0) * (float)tare__tensor_get(job->weight, channel);
        const double bias = tare__tensor_get(job->bias->t, c);
        const double code = rint(bias / (double)scale);
        if (!(fabs(code) <= INT32_MAX) || !(fabs(code * (double)scale - bias) <= most))
            return false;
        tare__tensor_set_int(quantized, c, (int64_t)code);
        tare__tensor_set(scales, channel, (double)scale);
    }
    return true;
}

// Moves the last node before node `at`.
static void move_last(onnx_writer *w, size_t at) {
    const out_node last = w->nodes[w->node_count - 1];
    memmove(&w->nodes[at + 1], &w->nodes[at], (w->node_count - 1 - at) * sizeof last);
    w->nodes[at] = last;
}

static void use_integers(onnx_out *o, size_t at, const bias_job *job, const tare_tensor *quantized,
                         const tare_tensor *scales) {
    const char *name = job->bias->name; // a copy: the array of tensors grows
    const char *path = tare__out_path(o->w, job->bias->t);
    const char *integers = tare__arena_printf(&o->w->memory, "%s_quantized", name);
    const char *scale = tare__arena_printf(&o->w->memory, "%s_scale", name);
    if (integers == NULL || scale == NULL) {
        tare__out_try(o, tare__out_of_memory(o->call.err));
        return;
    }
    integers = tare__out_constant(o, quantized, integers);
    scale = tare__out_constant(o, scales, scale);
    const bool is_per_channel = scales->count > 1;
    const char *made = OUT(o, "DequantizeLinear", integers, scale);
    if (is_per_channel) tare__out_attr_int(o, "axis", 0);
    if (tare__out_failed(o)) return;
    move_last(o->w, at);
    o->w->nodes[at + 1].inputs[2] = made;
    if (path != NULL) tare__out_source(o, path, integers, scale, NULL, is_per_channel ? 0 : -1);
}

// Inserts an operator without effect after the dequantized first input of node `at`, so that the
// runtime does not fuse it.
static void guard(onnx_out *o, size_t at) {
    const char *least = tare__out_number(o, TARE_FLOAT32, -(double)FLT_MAX);
    const char *same = OUT(o, "Max", o->w->nodes[at].inputs[0], least);
    if (tare__out_failed(o)) return;
    move_last(o->w, at);
    o->w->nodes[at + 1].inputs[0] = same;
}

// ONNX Runtime quantizes such biases by itself; integers that do not fit overflow.
static void keep_float(onnx_out *o, size_t at) {
    guard(o, at);
    tare__out_note(o, "its bias stays float: with the scale of the products it exceeds 32 bits, or "
                      "is too coarse for the result");
}

static tare_status write_bias(onnx_writer *w, size_t at, const bias_job *job) {
    const out_record record = {.node = w->nodes[at].from};
    onnx_out o = {.w = w, .record = &record, .call = {.err = w->err}};
    tare_tensor *quantized = NULL, *scales = NULL;
    const int64_t count = job->weight->count;
    const int ndim = job->weight->count == 1 ? 0 : 1;
    TARE_TRY(tare_tensor_create(TARE_INT32, 1, job->bias->t->shape, &quantized, w->err));
    tare_status status = tare_tensor_create(TARE_FLOAT32, ndim, &count, &scales, w->err);
    if (status == TARE_OK && quantize(job, quantized, scales))
        use_integers(&o, at, job, quantized, scales);
    else if (status == TARE_OK)
        keep_float(&o, at);
    tare_tensor_release(quantized);
    tare_tensor_release(scales);
    return status == TARE_OK ? o.status : status;
}

// --- results of at most 1 that wrap around ---

// True if 1 is above the range to which the result is quantized.
static bool overflows(const onnx_writer *w, const out_node *n) {
    if (!n->wraps || scale_of(w, n->inputs[0]) == NULL) return false;
    const out_node *reader = only_reader(w, n->outputs[0]);
    if (reader == NULL || strcmp(reader->op_type, "QuantizeLinear") != 0) return false;
    const out_tensor *scale = tare__out_find_tensor(w, reader->inputs[1]);
    const out_tensor *zero =
        reader->input_count > 2 ? tare__out_find_tensor(w, reader->inputs[2]) : NULL;
    if (scale == NULL || zero == NULL) return false;
    const double most = (double)tare__dtype(zero->t->dtype)->max - tare__tensor_get(zero->t, 0);
    return most * tare__tensor_get(scale->t, 0) < 1;
}

// --- the pass ---

static tare_status fit(onnx_writer *w, size_t at) {
    bias_job job;
    const out_record record = {.node = w->nodes[at].from};
    onnx_out o = {.w = w, .record = &record, .call = {.err = w->err}};
    if (find_job(w, &w->nodes[at], &job)) return write_bias(w, at, &job);
    if (overflows(w, &w->nodes[at])) guard(&o, at);
    return o.status;
}

tare_status tare__onnx_fit_runtime(onnx_writer *w) {
    for (size_t i = 0; i < w->node_count; i++) {
        const size_t before = w->node_count;
        TARE_TRY(fit(w, i));
        i += w->node_count - before; // skips the nodes that were inserted before it
    }
    return TARE_OK;
}
