// SPDX-License-Identifier: Apache-2.0
// What exporters take apart, as patterns: activations, norms, attention.
#include <math.h>

#include "io/onnx/raise/match.h"

// --- checks ---

static bool same_shape(const tare_tensor *a, const tare_tensor *b) {
    return a != NULL && b != NULL && a->dtype == b->dtype && tare__same_shape(a, b);
}

static const tare_tensor *root_meta(const idiom_match *m) {
    const value *meta = &tare__onnx_info(m->in, m->root)->meta;
    return meta->kind == VALUE_TENSOR ? meta->as.tensor : NULL;
}

// No constant of more than one element made it larger.
static tare_status keeps_shape(idiom_match *m, bool *holds) {
    *holds = same_shape(tare__match_meta(m, "x"), root_meta(m));
    return TARE_OK;
}

// The dimensions that d names are the last ones; `shape` becomes their sizes.
static tare_status bind_last_dims(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x");
    const value d = tare__match_value(m, "d");
    const bool is_list = d.kind == VALUE_LIST || d.kind == VALUE_TUPLE;
    const uint32_t count = is_list ? d.count : 1;
    bool named[TARE_MAX_DIMS] = {false};
    *holds = same_shape(x, root_meta(m)) && count >= 1 && (int)count <= x->ndim;
    for (uint32_t i = 0; *holds && i < count; i++) {
        const value *item = is_list ? &d.as.items[i] : &d;
        const int64_t at = item->kind == VALUE_INT && item->as.integer < 0
                               ? item->as.integer + x->ndim
                               : item->as.integer;
        *holds = item->kind == VALUE_INT && at >= 0 && at < x->ndim;
        if (*holds) named[at] = true;
    }
    for (uint32_t i = 0; *holds && i < count; i++) *holds = named[x->ndim - 1 - (int)i];
    if (!*holds) return TARE_OK;
    const value shape = tare__value_sequence(m->memory, VALUE_TUPLE, count);
    if (shape.as.items == NULL) return tare__out_of_memory(m->in->err);
    for (uint32_t i = 0; i < count; i++)
        shape.as.items[i] = tare__int(x->shape[x->ndim - (int)count + (int)i]);
    return tare__match_bind(m, "shape", shape);
}

// `name` has exactly the normalized shape that the call beneath has.
static tare_status fits_normalized(idiom_match *m, bool *holds) {
    const tare_tensor *w = tare__match_constant(m, "w");
    const value d = tare__match_value(m, "d");
    *holds = w != NULL && d.kind == VALUE_TUPLE && w->dtype == TARE_FLOAT32 &&
             w->ndim == (int)d.count && same_shape(tare__match_meta(m, "x"), root_meta(m));
    for (uint32_t i = 0; *holds && i < d.count; i++)
        *holds = d.as.items[i].kind == VALUE_INT && d.as.items[i].as.integer == w->shape[i];
    return TARE_OK;
}

// A constant [C][1][1] as [C].
static tare_status bind_flat(idiom_match *m, const char *from, const char *to, int64_t count,
                             bool *holds) {
    const tare_tensor *t = tare__match_constant(m, from), *x = tare__match_meta(m, "x");
    tare_tensor *flat = NULL;
    node *n = NULL;
    *holds = *holds && t != NULL && t->dtype == TARE_FLOAT32 && t->count == count && x != NULL &&
             t->ndim >= x->ndim - 1 && t->shape[t->ndim - (x->ndim - 1)] == count;
    if (!*holds) return TARE_OK;
    TARE_TRY(tare__tensor_reshape(t, 1, &count, &flat, m->in->err));
    TARE_TRY(tare__onnx_add_constant(m->in, flat, tare__onnx_constant_of(m->in, t)->name));
    TARE_TRY(tare__onnx_constant_node(m->in, flat, tare__onnx_info(m->in, m->root)->scope, &n));
    tare__graph_move_before(n, m->in->draft->first);
    return tare__match_bind(m, to, tare__node_value(n));
}

static bool is_filled_with(const tare_tensor *t, double number) {
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        if (tare__tensor_get(t, i) != number) return false;
    return t != NULL;
}

// Every group of channels as one channel of an instance norm, whose own scale and shift do nothing.
static tare_status is_group_norm(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x"), *ones = tare__match_constant(m, "wones");
    *holds = same_shape(x, root_meta(m)) && x->ndim >= 3 && ones != NULL && ones->count > 0 &&
             x->shape[1] % ones->count == 0 && is_filled_with(ones, 1) &&
             is_filled_with(tare__match_constant(m, "wzeros"), 0);
    return *holds ? tare__match_bind(m, "groups", tare__int(ones->count)) : TARE_OK;
}

static tare_status has_channel_weight(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x");
    *holds = same_shape(x, root_meta(m)) && x->ndim >= 2;
    return *holds ? bind_flat(m, "w", "weight", x->shape[1], holds) : TARE_OK;
}

static tare_status has_channel_bias(idiom_match *m, bool *holds) {
    const tare_tensor *x = tare__match_meta(m, "x");
    *holds = same_shape(x, root_meta(m)) && x->ndim >= 2;
    return *holds ? bind_flat(m, "wb", "bias", x->shape[1], holds) : TARE_OK;
}

static double number_named(const idiom_match *m, const char *name) {
    double number = NAN;
    const value v = tare__match_value(m, name);
    const tare_tensor *t = tare__match_constant(m, name);
    if (t != NULL) return t->count == 1 ? tare__tensor_get(t, 0) : NAN;
    tare__value_number(&v, &number);
    return number;
}

// Of torch's own attention the exporters scale query and key by the root of the scale. What scales
// once is the user's own, and stays as it is.
static tare_status is_attention(idiom_match *m, bool *holds) {
    const tare_tensor *q = tare__match_meta(m, "q"), *v = tare__match_meta(m, "v");
    const tare_tensor *k = tare__match_meta(m, "kt"), *mask = tare__match_meta(m, "mask");
    const double a = number_named(m, "ca"), b = number_named(m, "cb");
    *holds = q != NULL && k != NULL && v != NULL && q->ndim >= 3 && k->ndim == q->ndim &&
             v->ndim == q->ndim && q->dtype == TARE_FLOAT32 && fabs(a - b) <= 1e-4 * fabs(b) &&
             a > 0 && (mask == NULL || mask->dtype == TARE_FLOAT32);
    for (int d = 0; *holds && d < q->ndim - 2; d++)
        *holds = q->shape[d] == k->shape[d] && q->shape[d] == v->shape[d];
    if (!*holds) return TARE_OK;
    const double usual = 1 / sqrt((double)q->shape[q->ndim - 1]);
    const bool is_usual = fabs(a * b - usual) <= 1e-4 * usual;
    return tare__match_bind(
        m, "scale", is_usual ? tare__none() : tare__float(tare__double_of_float((float)(a * b))));
}

// --- the table ---

#define GELU       "torch.nn.functional.gelu(x)"
#define GELU_TANH  "torch.nn.functional.gelu(x, approximate = 'tanh')"
#define LAYER_NORM "torch.nn.functional.layer_norm(x, shape, None, None, c)"
#define CENTERED   "mean = x.mean(d, keepdim = True); y = x - mean; "
#define SPREAD     "v = s.mean(d, keepdim = True); e = v + c; "
#define RMS_NORM   "torch.nn.functional.rms_norm(x, shape, None, c)"
#define SCALED     "a = q * ca; b = kt * cb; p = torch.matmul(a, b); "
#define ATTENTION                                                                                  \
    "key = torch.transpose(kt, -2, -1); torch.nn.functional.scaled_dot_product_attention(q, key, " \
    "v, "

// clang-format off
static const idiom rows[] = {
    // Activations.
    {"erf", "x", "a = x / 1.4142135623730951; b = torch.erf(a); s = b + 1; y = x * s; y * 0.5", GELU, false, keeps_shape},
    {"erf", "x", "a = x / 1.4142135623730951; b = torch.erf(a); s = b + 1; h = x * 0.5; h * s", GELU, false, keeps_shape},
    {"erf", "x", "a = x / 1.4142135623730951; b = torch.erf(a); s = b + 1; h = s * 0.5; x * h", GELU, false, keeps_shape},
    {"tanh", "x", "a = torch.pow(x, 3); b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; h = x * 0.5; h * o", GELU_TANH, false, keeps_shape},
    {"tanh", "x", "a = torch.pow(x, 3); b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; y = x * o; y * 0.5", GELU_TANH, false, keeps_shape},
    {"tanh", "x", "a = torch.pow(x, 3); b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; h = o * 0.5; x * h", GELU_TANH, false, keeps_shape},
    {"tanh", "x", "q = x * x; a = q * x; b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; h = x * 0.5; h * o", GELU_TANH, false, keeps_shape},
    {"tanh", "x", "q = x * x; a = q * x; b = a * 0.044715; s = x + b; t = s * 0.7978845608028654; u = torch.tanh(t); "
          "o = u + 1; y = x * o; y * 0.5", GELU_TANH, false, keeps_shape},
    {"sigmoid", "x", "s = torch.sigmoid(x); x * s", "torch.nn.functional.silu(x)", true, keeps_shape},
    {"tanh", "x", "s = torch.nn.functional.softplus(x); t = torch.tanh(s); x * t", "torch.nn.functional.mish(x)", true, keeps_shape},
    {"exp", "x", "e = torch.exp(x); s = e + 1; torch.log(s)", "torch.nn.functional.softplus(x)", true, keeps_shape},
    {"where", "x", "g = x > 20; s = torch.nn.functional.softplus(x); torch.where(g, x, s)", "torch.nn.functional.softplus(x)", true, keeps_shape},
    {"hardsigmoid", "x", "h = torch.nn.functional.hardsigmoid(x); x * h", "torch.nn.functional.hardswish(x)", true, keeps_shape},
    {"relu6", "x", "a = x + 3; r = torch.nn.functional.relu6(a); y = x * r; y / 6", "torch.nn.functional.hardswish(x)", true, keeps_shape},
    {"relu6", "x", "a = x + 3; r = torch.nn.functional.relu6(a); h = r / 6; x * h", "torch.nn.functional.hardswish(x)", true, keeps_shape},
    {"relu6", "x", "a = x + 3; r = torch.nn.functional.relu6(a); r / 6", "torch.nn.functional.hardsigmoid(x)", true, keeps_shape},

    // Layer norm, then its scale and its shift.
    {"sqrt", "x, c, d", CENTERED "s = torch.pow(y, 2); " SPREAD "r = torch.sqrt(e); y / r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", CENTERED "s = y * y; " SPREAD "r = torch.sqrt(e); y / r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", CENTERED "s = torch.pow(y, 2); " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); y * r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", CENTERED "s = y * y; " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); y * r", LAYER_NORM, false, bind_last_dims},
    {"sqrt", "x, w, c, d", "n = torch.nn.functional.layer_norm(x, d, None, None, c); n * w",
     "torch.nn.functional.layer_norm(x, d, w, None, c)", true, fits_normalized},
    {"sqrt", "x, wa, w, c, d", "n = torch.nn.functional.layer_norm(x, d, wa, None, c); n + w",
     "torch.nn.functional.layer_norm(x, d, wa, w, c)", true, fits_normalized},

    // RMS norm.
    {"sqrt", "x, c, d", "s = torch.pow(x, 2); " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); x * r", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", "s = x * x; " SPREAD "q = torch.sqrt(e); r = torch.reciprocal(q); x * r", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", "s = torch.pow(x, 2); " SPREAD "q = torch.sqrt(e); x / q", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, c, d", "s = x * x; " SPREAD "q = torch.sqrt(e); x / q", RMS_NORM, false, bind_last_dims},
    {"sqrt", "x, w, c, d", "n = torch.nn.functional.rms_norm(x, d, None, c); n * w",
     "torch.nn.functional.rms_norm(x, d, w, c)", false, fits_normalized},

    // Group norm, as an instance norm of groups.
    {"instance_norm", "x, wones, wzeros, c, cm, d, dd", "g = x.reshape(d); n = torch.nn.functional.instance_norm(g, None, None, wones, wzeros, True, cm, c); n.reshape(dd)",
     "torch.nn.functional.group_norm(x, groups, None, None, c)", false, is_group_norm},
    {"instance_norm", "x, w, d, c", "n = torch.nn.functional.group_norm(x, d, None, None, c); n * w",
     "torch.nn.functional.group_norm(x, d, weight, None, c)", true, has_channel_weight},
    {"instance_norm", "x, w, wb, d, c", "n = torch.nn.functional.group_norm(x, d, w, None, c); n + wb",
     "torch.nn.functional.group_norm(x, d, w, bias, c)", true, has_channel_bias},

    // Attention, without and with a mask.
    {"softmax", "q, kt, v, ca, cb", SCALED "s = torch.nn.functional.softmax(p, dim = -1); torch.matmul(s, v)",
     ATTENTION "None, 0.0, False, scale = scale)", false, is_attention},
    {"softmax", "q, kt, v, mask, ca, cb", SCALED "o = p + mask; s = torch.nn.functional.softmax(o, dim = -1); torch.matmul(s, v)",
     ATTENTION "mask, 0.0, False, scale = scale)", false, is_attention},
    {"softmax", "q, kt, v, wm, ca, cb", SCALED "o = p + wm; s = torch.nn.functional.softmax(o, dim = -1); torch.matmul(s, v)",
     ATTENTION "wm, 0.0, False, scale = scale)", false, is_attention},
};
// clang-format on

tare_status tare__raise_idioms(onnx_import *in) {
    idiom_set set;
    tare_status status = tare__idioms_open(rows, sizeof rows / sizeof *rows, in, &set);
    for (node *n = in->draft->first, *next; n != NULL && status == TARE_OK; n = next) {
        bool applied = false;
        if (n->user_count > 0) status = tare__idioms_apply(&set, in, n, &applied);
        next = n->next; // a call that took n's place comes next: it may be part of a larger idiom
    }
    tare__idioms_release(&set);
    return status;
}
