// SPDX-License-Identifier: Apache-2.0
// Integer operators against recorded ones: quantized values equal, float results bit-equal.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/json/json.h"
#include "ops/classes/classes.h"
#include "ops/interpret.h"
#include "ops/op.h"
#include "ops/quantized/engine_rules.h"
#include "ops/text/print.h"
#include "replay/numerics.h"

typedef struct operator_case {
    const numerics_cases *cases;
    json_at at;
    const char *op;
    tare_engine engine;
    tare_tensor *a, *b; // inputs; b NULL for operators with one
    tare_tensor *y;     // recorded
    module *root;       // the operator as a graph of one call
} operator_case;

// How each operator was called. $ stands for the recorded output's scale and zero point.
static const struct {
    const char *op, *call;
} calls[] = {
    {"add", "torch.ops.quantized.add(a, b, $)"},
    {"add_relu", "torch.ops.quantized.add_relu(a, b, $)"},
    {"mul", "torch.ops.quantized.mul(a, b, $)"},
    {"mul_relu", "torch.ops.quantized.mul_relu(a, b, $)"},
    {"sigmoid", "torch.sigmoid(a)"},
    {"tanh", "torch.tanh(a)"},
    {"relu6", "torch.nn.functional.relu6(a)"},
    {"hardtanh", "torch.nn.functional.hardtanh(a, -1, 1)"},
    {"clamp", "torch.clamp(a, -0.5, 0.7)"},
    {"max_pool2d", "torch.nn.functional.max_pool2d(a, 2)"},
    {"avg_pool2d", "torch._C._nn.avg_pool2d(a, 3, 1, 1)"},
    {"adaptive_avg_pool2d", "torch.nn.functional.adaptive_avg_pool2d(a, (2, 3))"},
    {"mean", "a.mean([2, 3])"},
    {"interpolate_nearest",
     "torch.nn.functional.interpolate(a, scale_factor = 2.0, mode = 'nearest')"},
    {"interpolate_bilinear", "torch.nn.functional.interpolate(a, scale_factor = 2.0, mode = "
                             "'bilinear', align_corners = False)"},
    {"hardsigmoid", "torch.nn.functional.hardsigmoid(a)"},
    {"hardswish", "torch.ops.quantized.hardswish(a, $)"},
    {"leaky_relu", "torch.ops.quantized.leaky_relu(a, 0.1, False, $)"},
    {"elu", "torch.ops.quantized.elu(a, $, 1.0)"},
    {"softmax", "torch.ops.quantized.softmax(a, 1, $)"},
    {"layer_norm", "torch.ops.quantized.layer_norm(a, [6], None, None, 1e-05, $)"},
    {"batch_norm2d", "torch.ops.quantized.batch_norm2d(a, ones, zeros, zeros, ones, "
                     "1e-05, $)"},
    {"cat", "torch.ops.quantized.cat([a, a], 1, $)"},
    {"linear", "self.layer(a)"},
    {"conv2d", "self.layer(a)"},
    {"linear_dynamic", "self.layer(a)"},
};

// --- recorded tensors ---

static const tare_tensor *recorded_tensor(const operator_case *c, const char *name,
                                          const char *suffix) {
    char key[96];
    snprintf(key, sizeof key, "%s%s", name, suffix);
    return numerics_tensor(c->cases, c->at.value, key);
}

// The tensor `name` with its integers if there are any; *out stays NULL if it is absent.
static tare_status recorded(const operator_case *c, const char *name, tare_dtype dtype,
                            tare_tensor **out, tare_error *err) {
    const tare_tensor *quantized = recorded_tensor(c, name, ".int_repr"),
                      *scale = recorded_tensor(c, name, ".scale");
    const tare_tensor *zero_point = recorded_tensor(c, name, ".zero_point");
    double scales[256], zeros[256];
    if (quantized == NULL || scale == NULL || zero_point == NULL) {
        const tare_tensor *plain = recorded_tensor(c, name, "");
        return plain != NULL ? tare__tensor_copy(plain, out, err) : TARE_OK;
    }
    if (scale->count > 256 || zero_point->count != scale->count)
        return tare__fail(err, TARE_MALFORMED_FILE, "%s has %" PRId64 " scales", name,
                          scale->count);
    for (int64_t i = 0; i < scale->count; i++) {
        scales[i] = tare__tensor_get(scale, i);
        zeros[i] = tare__tensor_get(zero_point, i);
    }
    const tare_qscheme scheme = scale->count > 1 ? TARE_PER_CHANNEL_AFFINE : TARE_PER_TENSOR_AFFINE;
    const qparams *q = tare__qparams_create(scheme, dtype, 0, scale->count, scales, zeros);
    if (q == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__tensor_requalify(quantized, q, out, err);
    tare__qparams_release(q);
    return status;
}

// --- the called module of linear and convolution ---

static bool flag(const operator_case *c, const char *key) {
    return json_is_true(json_object_get(c->at.value, key));
}

static tare_status set_int(const operator_case *c, module *m, const char *key, tare_error *err) {
    const value number = tare__int(json_integer_value(json_object_get(c->at.value, key)));
    return tare__module_set_config(m, key, &number, err);
}

static tare_status set_number(module *m, const char *name, double number, bool is_scale,
                              tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(is_scale ? tare__tensor_scalar_float((float)number, &t, err)
                      : tare__tensor_scalar_int((int64_t)number, &t, err));
    const tare_status status = tare__module_set_tensor(m, name, t, false, err);
    tare_tensor_release(t);
    return status;
}

static tare_status set_recorded(const operator_case *c, module *m, const char *name,
                                const char *from, tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(recorded(c, from, TARE_QINT8, &t, err));
    const tare_status status = tare__module_set_tensor(m, name, t, false, err);
    tare_tensor_release(t);
    return status;
}

static tare_status fill_layer(const operator_case *c, module *m, tare_error *err) {
    const bool is_conv = strcmp(c->op, "conv2d") == 0;
    TARE_TRY(set_recorded(c, m, "weight", "w", err));
    TARE_TRY(set_recorded(c, m, "bias", "b", err));
    if (is_conv) {
        TARE_TRY(set_int(c, m, "groups", err));
        TARE_TRY(set_int(c, m, "stride", err));
        TARE_TRY(set_int(c, m, "padding", err));
        TARE_TRY(set_int(c, m, "dilation", err));
    }
    if (c->y->q != NULL) {
        TARE_TRY(set_number(m, "scale", c->y->q->scale[0], true, err));
        TARE_TRY(set_number(m, "zero_point", c->y->q->zero_point[0], false, err));
    }
    const engine_query query = {.is_conv = is_conv, .groups = tare__module_int(m, "groups", 1)};
    const value rule = tare__string(tare__requant_rule_name(tare__engine_rule(c->engine, &query)));
    return tare__module_set_config(m, "rule", &rule, err);
}

static tare_status add_layer(const operator_case *c, tare_error *err) {
    static const class_table *const tables[] = {OPS_CLASS_TABLES};
    const bool is_conv = strcmp(c->op, "conv2d") == 0, is_linear = strcmp(c->op, "linear") == 0;
    const module_role role = strcmp(c->op, "linear_dynamic") == 0 ? ROLE_DYNAMIC : ROLE_QUANTIZED;
    if (!is_conv && !is_linear && role != ROLE_DYNAMIC) return TARE_OK;
    const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};
    const module_class *class =
        tare__class_triple(&classes, is_conv ? "conv" : "linear", is_conv ? 2 : 0, role,
                           flag(c, "relu") ? FUSED_RELU : FUSED_NONE);
    if (class == NULL) return tare__fail(err, TARE_NOT_FOUND, "no class for %s", c->op);
    module *m = NULL;
    TARE_TRY(tare__module_create(class, &m, err));
    tare_status status = fill_layer(c, m, err);
    if (status == TARE_OK && class->check != NULL) status = class->check(m, err);
    if (status == TARE_OK) status = tare__module_set_child(c->root, "layer", m, err);
    tare__module_release(m);
    return status;
}

// Neutral statistics and parameters of the recorded batch norm.
static tare_status add_constants(const operator_case *c, tare_error *err) {
    const int64_t channels = c->a->ndim > 1 ? c->a->shape[1] : 1;
    for (int k = 0; k < 2; k++) {
        tare_tensor *t = NULL;
        TARE_TRY(tare_tensor_create(TARE_FLOAT32, 1, &channels, &t, err));
        for (int64_t i = 0; i < channels; i++) tare__f32(t)[i] = (float)k;
        const tare_status status =
            tare__module_set_tensor(c->root, k == 0 ? "zeros" : "ones", t, false, err);
        tare_tensor_release(t);
        TARE_TRY(status);
    }
    return TARE_OK;
}

// --- the call as a graph ---

static tare_status write_quantized(const operator_case *c, text *code, tare_error *err) {
    const char *call = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].op, c->op) == 0) call = calls[i].call;
    if (call == NULL) return tare__fail(err, TARE_NOT_FOUND, "no call for %s", c->op);
    tare__text_printf(code, "def forward(self, a%s):\n", c->b != NULL ? ", b" : "");
    if (strstr(call, "zeros") != NULL)
        tare__text_append(code, "    zeros = self.zeros\n    ones = self.ones\n");
    tare__text_append(code, "    y = ");
    for (; *call != '\0'; call++) {
        if (*call != '$') {
            tare__text_char(code, *call);
            continue;
        }
        tare__text_double(code, c->y->q->scale[0]);
        tare__text_printf(code, ", %d", (int)c->y->q->zero_point[0]);
    }
    tare__text_append(code, "\n    return y\n");
    return tare__text_status(code, err);
}

static tare_status build(operator_case *c, tare_error *err) {
    text code = {0};
    TARE_TRY(tare__module_create(&tare__class_graph_module, &c->root, err));
    TARE_TRY(add_constants(c, err));
    TARE_TRY(add_layer(c, err));
    tare_status status = write_quantized(c, &code, err);
    if (status == TARE_OK)
        status = tare__parse_code(code.chars, code.length, c->root, &c->root->graph, err);
    tare__text_release(&code);
    return status;
}

// --- comparison ---

static tare_status compare(const tare_tensor *found, const tare_tensor *expected, tare_error *err) {
    if (found->count != expected->count || found->dtype != expected->dtype)
        return tare__fail(err, TARE_INTERNAL,
                          "expected %" PRId64 " elements of %s, found %" PRId64 " of %s",
                          expected->count, tare_dtype_name(expected->dtype), found->count,
                          tare_dtype_name(found->dtype));
    if (found->q != NULL && ((float)found->q->scale[0] != (float)expected->q->scale[0] ||
                             found->q->zero_point[0] != expected->q->zero_point[0]))
        return tare__fail(err, TARE_INTERNAL,
                          "expected scale %g and zero point %g, found %g and %g",
                          expected->q->scale[0], expected->q->zero_point[0], found->q->scale[0],
                          found->q->zero_point[0]);
    int64_t different = 0, first = -1;
    for (int64_t i = 0; i < found->count; i++) {
        if (tare__tensor_get(found, i) == tare__tensor_get(expected, i)) continue;
        if (different++ == 0) first = i;
    }
    if (different == 0) return TARE_OK;
    return tare__fail(err, TARE_INTERNAL,
                      "%" PRId64 " of %" PRId64 " differ, first [%" PRId64
                      "]: expected %.9g, found %.9g",
                      different, found->count, first, tare__tensor_get(expected, first),
                      tare__tensor_get(found, first));
}

static tare_status run(operator_case *c, tare_error *err) {
    const engine_query query = {.is_conv = false, .groups = 1};
    const requant_rule rule = tare__engine_rule(c->engine, &query);
    const interpreter it = {.root = c->root, .linear_rule = rule, .conv_rule = rule};
    const value inputs[] = {{.kind = VALUE_TENSOR, .as.tensor = c->a},
                            {.kind = VALUE_TENSOR, .as.tensor = c->b}};
    arena memory = {0};
    value result = tare__none();
    tare_status status = tare__interpret(&it, inputs, c->b != NULL ? 2 : 1, &memory, &result, err);
    if (status == TARE_OK && result.kind != VALUE_TENSOR)
        status = tare__fail(err, TARE_INTERNAL, "the result is no tensor");
    if (status == TARE_OK) status = compare(result.as.tensor, c->y, err);
    tare__value_release_tensors(&result);
    tare__arena_release(&memory);
    return status;
}

// --- cases ---

static tare_status read_case(operator_case *c, tare_error *err) {
    const json_at op = tare__json_get(&c->at, "op"), engine = tare__json_get(&c->at, "engine");
    const char *engine_name = NULL;
    TARE_TRY(tare__json_string(&op, &c->op, err));
    TARE_TRY(tare__json_string(&engine, &engine_name, err));
    c->engine = tare_engine_from_name(engine_name);
    const bool two = recorded_tensor(c, "a", "") != NULL;
    TARE_TRY(recorded(c, two ? "a" : "x", TARE_QUINT8, &c->a, err));
    if (two) TARE_TRY(recorded(c, "b", TARE_QUINT8, &c->b, err));
    TARE_TRY(recorded(c, "y", TARE_QUINT8, &c->y, err));
    if (c->a != NULL && c->y != NULL) return TARE_OK;
    return tare__fail(err, TARE_MALFORMED_FILE, "its tensors are missing");
}

static tare_status run_steps(operator_case *c, tare_error *err) {
    TARE_TRY(read_case(c, err));
    TARE_TRY(build(c, err));
    return run(c, err);
}

// "conv2d fbgemm"
static void run_case(const numerics_cases *cases, const json_t *one, text *label, text *difference,
                     tare_error *err) {
    operator_case c = {.cases = cases, .at = tare__json_root((json_t *)one)};
    if (run_steps(&c, err) != TARE_OK) tare__text_append(difference, tare_error_message(err));
    tare__text_printf(label, "%s %s", c.op != NULL ? c.op : "?", tare_engine_name(c.engine));
    tare__module_release(c.root);
    tare_tensor_release(c.a);
    tare_tensor_release(c.b);
    tare_tensor_release(c.y);
}

const numerics_kind numerics_operators = {"operators", run_case};
