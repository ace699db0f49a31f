// SPDX-License-Identifier: Apache-2.0
// Predefined patterns. Each is a sequence of steps; each step has one or more forms. The forms of
// the pattern are all combinations.
#include "quantizers/patterns/ready_patterns.h"

#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "tare/subgraph.h"

/// A step. Its forms assign to its name; '%' stands for the result of the previous step. An empty
/// form omits the step.
enum { MOST_FORMS = 12, MOST_STEPS = 8 };
typedef struct ready_step {
    const char *name;
    const char *forms[MOST_FORMS]; // code lines, NULL-terminated
} ready_step;

typedef struct ready_row {
    const char *name, *what;
    const char *params; // parameters that match anything
    const ready_step *steps[MOST_STEPS];
} ready_row;

#define ATEN "torch.ops.aten."
#define F    "torch.nn.functional."

// clang-format off
// --- layers ---

#define CONV_PARAMS "x, weight, bias, stride, padding, dilation, groups"
#define CONV(d) {"layer", {"layer = " ATEN "conv" d ".default(" CONV_PARAMS ")", "layer = " ATEN "conv" d ".padding(" CONV_PARAMS ")"}}
static const ready_step conv1d = CONV("1d"), conv2d = CONV("2d"), conv3d = CONV("3d");
#define TRANSPOSE_PARAMS "x, weight, bias, stride, padding, output_padding, groups, dilation"
#define TRANSPOSE(d) {"layer", {"layer = " ATEN "conv_transpose" d "(" TRANSPOSE_PARAMS ")"}}
static const ready_step transpose1d = TRANSPOSE("1d.default"), transpose2d = TRANSPOSE("2d.input"), transpose3d = TRANSPOSE("3d.input");
static const ready_step linear = {"layer", {"layer = " ATEN "linear.default(x, weight, bias)"}};
#define CONV_ALL "x, weight, bias, stride, padding, dilation, groups, output_padding"

typedef struct layer_row {
    const char *name, *what;
    const ready_step *layers[4];
} layer_row;
// A name that begins with another one must come first.
static const layer_row layers[] = {
    {"conv1d", "a convolution in one dimension", {&conv1d}},
    {"conv2d", "a convolution in two dimensions", {&conv2d}},
    {"conv3d", "a convolution in three dimensions", {&conv3d}},
    {"conv_transpose1d", "a transposed convolution in one dimension", {&transpose1d}},
    {"conv_transpose2d", "a transposed convolution in two dimensions", {&transpose2d}},
    {"conv_transpose3d", "a transposed convolution in three dimensions", {&transpose3d}},
    {"conv_transpose", "a transposed convolution", {&transpose1d, &transpose2d, &transpose3d}},
    {"conv", "a convolution", {&conv1d, &conv2d, &conv3d}},
    {"linear", "a linear layer", {&linear}},
};

#define NORM_PARAMS ", gamma, beta, mean, variance, training, momentum, eps, cudnn"
static const ready_step norm = {"norm", {"norm = " ATEN "batch_norm.default(%" NORM_PARAMS ")"}};
static const ready_step added = {"add", {"add = " ATEN "add.Tensor(%, other)", "add = " ATEN "add.Tensor(other, %)",
                                         "add = " ATEN "add_.Tensor(%, other)", "add = " ATEN "add_.Tensor(other, %)"}};

// --- activations ---

#define ACT(form) "activation = " form
#define BOTH(name, more) ACT(ATEN name ".default(%" more ")"), ACT(ATEN name "_.default(%" more ")")
static const ready_step relu = {"activation", {BOTH("relu", "")}};
static const ready_step relu6 = {"activation", {BOTH("relu6", ""), BOTH("hardtanh", ", 0.0, 6.0"), BOTH("clamp", ", 0, 6"), BOTH("clamp", ", 0.0, 6.0")}};
static const ready_step hardtanh = {"activation", {BOTH("hardtanh", ", low, high")}};
static const ready_step hardswish = {"activation", {BOTH("hardswish", ""),
    "shifted = % + 3\n" "clipped = " F "relu6(shifted)\n" "product = % * clipped\n" ACT("product / 6"),
    "shifted = % + 3\n" "clipped = " F "hardtanh(shifted, 0.0, 6.0)\n" "product = % * clipped\n" ACT("product / 6"),
    "gate = " F "hardsigmoid(%)\n" ACT("% * gate")}};
static const ready_step hardsigmoid = {"activation", {BOTH("hardsigmoid", "")}};
static const ready_step silu = {"activation", {BOTH("silu", ""), "gate = torch.sigmoid(%)\n" ACT("% * gate"), "gate = torch.sigmoid(%)\n" ACT("gate * %")}};
static const ready_step mish = {"activation", {BOTH("mish", "")}};
#define ERF(first, inner) first "\n" inner "\n" "erf = torch.erf(scaled)\n" "sum_ = erf + 1.0\n" ACT("half * sum_")
static const ready_step gelu = {"activation", {ACT(ATEN "gelu.default(%)"), ACT(ATEN "gelu.default(%, approximate='tanh')"),
    ERF("half = % * 0.5", "scaled = % / 1.4142135623730951"), ERF("half = % * 0.5", "scaled = % * 0.7071067811865475"),
    ERF("half = % * 0.5", "scaled = % * 0.7071067811865476"),
    "scaled = % / 1.4142135623730951\n" "erf = torch.erf(scaled)\n" "sum_ = erf + 1.0\n" "product = % * sum_\n" ACT("product * 0.5")}};
static const ready_step leaky_relu = {"activation", {BOTH("leaky_relu", ", slope")}};
static const ready_step elu = {"activation", {BOTH("elu", ", alpha")}};
static const ready_step sigmoid = {"activation", {BOTH("sigmoid", "")}};
static const ready_step tangent = {"activation", {BOTH("tanh", "")}};
#define ACT_PARAMS "low, high, slope, alpha"

typedef struct act_row {
    const char *name;
    const ready_step *step;
} act_row;
static const act_row acts[] = {
    {"relu", &relu}, {"relu6", &relu6}, {"hardtanh", &hardtanh}, {"hardswish", &hardswish}, {"hardsigmoid", &hardsigmoid},
    {"silu", &silu}, {"mish", &mish}, {"gelu", &gelu}, {"leaky_relu", &leaky_relu}, {"elu", &elu}, {"sigmoid", &sigmoid}, {"tanh", &tangent},
};

// --- other steps ---

static const ready_step start = {"x", {""}};
static const ready_step any_layer = {"layer", {"layer = " ATEN "conv1d.default(" CONV_PARAMS ")", "layer = " ATEN "conv2d.default(" CONV_PARAMS ")",
    "layer = " ATEN "conv2d.padding(" CONV_PARAMS ")", "layer = " ATEN "conv3d.default(" CONV_PARAMS ")", "layer = " ATEN "linear.default(x, weight, bias)"}};
static const ready_step maybe_norm = {"norm", {"", "norm = " ATEN "batch_norm.default(%" NORM_PARAMS ")"}};

static const ready_step scores = {"scores", {"scores = torch.matmul(query, key)", "scores = torch.bmm(query, key)"}};
static const ready_step scaled = {"scaled", {"", "scaled = % / scale", "scaled = % * scale"}};
static const ready_step masked = {"masked", {"", "masked = % + mask", "masked = " ATEN "masked_fill.Scalar(%, mask, fill)"}};
static const ready_step softmaxed = {"softmax", {"softmax = " ATEN "softmax.int(%, dim)"}};
static const ready_step dropped = {"dropout", {"", "dropout = " ATEN "dropout.default(%, rate, training)"}};
static const ready_step weighted = {"product", {"product = torch.matmul(%, value)", "product = torch.bmm(%, value)"}};
#define SDPA ATEN "scaled_dot_product_attention.default(query, key, value, mask, rate, causal"
static const ready_step fused_attention = {"product", {"product = " SDPA ", scale = scale)"}};

static const ready_step layer_norm = {"norm", {"norm = " ATEN "layer_norm.default(x, shape, weight, bias, eps, cudnn)",
#define CENTRED "mean = " ATEN "mean.dim(x, dims, True)\n" "centred = x - mean\n"
#define VARIANCE "variance = " ATEN "var.dim(x, dims, False, True)\n"
#define SQUARES "squares = " ATEN "pow.Tensor_Scalar(centred, 2)\n" "variance = " ATEN "mean.dim(squares, dims, True)\n"
#define ROOT "shifted = variance + eps\n" "root = torch.sqrt(shifted)\n" "normed = centred / root\n"
#define INVERSE "shifted = variance + eps\n" "root = torch.rsqrt(shifted)\n" "normed = centred * root\n"
#define AFFINE "gained = normed * weight\n" "norm = gained + bias"
#define AFFINE_FIRST "gained = weight * normed\n" "norm = gained + bias"
    CENTRED VARIANCE ROOT AFFINE, CENTRED VARIANCE ROOT AFFINE_FIRST, CENTRED VARIANCE INVERSE AFFINE, CENTRED VARIANCE INVERSE AFFINE_FIRST,
    CENTRED SQUARES ROOT AFFINE, CENTRED SQUARES ROOT AFFINE_FIRST, CENTRED SQUARES INVERSE AFFINE, CENTRED SQUARES INVERSE AFFINE_FIRST}};
#define POWER "squares = " ATEN "pow.Tensor_Scalar(x, 2)\n" "power = " ATEN "mean.dim(squares, dims, True)\n" "shifted = power + eps\n" \
              "root = torch.rsqrt(shifted)\n" "normed = x * root\n"
static const ready_step rms_norm = {"norm", {"norm = " ATEN "rms_norm.default(x, shape, weight, eps)", POWER "norm = normed * weight", POWER "norm = weight * normed"}};
static const ready_step group_norm = {"norm", {"norm = " ATEN "group_norm.default(x, groups, weight, bias, eps, cudnn)"}};
static const ready_step batch_norm = {"norm", {"norm = " ATEN "batch_norm.default(x" NORM_PARAMS ")"}};
static const ready_step embedding = {"embedding", {"embedding = " ATEN "embedding.default(weight, indices, padding, scaled, sparse)"}};

// One direction has two weights per layer, or four tensors with biases.
#define W2 "a0, a1"
#define W4 W2 ", a2, a3"
#define W8 W4 ", a4, a5, a6, a7"
#define W12 W8 ", a8, a9, a10, a11"
#define W16 W12 ", a12, a13, a14, a15"
#define W24 W16 ", a16, a17, a18, a19, a20, a21, a22, a23"
#define RECURRENT(call, weights) "layer = " ATEN call ", [" weights "], biases, layers, dropout, training, bidirectional, batch_first)"
#define ALL_WEIGHTS(call) {RECURRENT(call, W2), RECURRENT(call, W4), RECURRENT(call, W8), RECURRENT(call, W12), RECURRENT(call, W16), RECURRENT(call, W24)}
static const ready_step lstm = {"layer", ALL_WEIGHTS("lstm.input(x, [hidden, cell]")};
static const ready_step gru = {"layer", ALL_WEIGHTS("gru.input(x, hidden")};
#define RECURRENT_PARAMS "x, hidden, cell, " W24 ", biases, layers, dropout, training, bidirectional, batch_first"

static const ready_step pooled = {"pool", {"pool = " ATEN "adaptive_avg_pool2d.default(x, size)", "pool = " ATEN "mean.dim(x, dims, True)"}};
#define SQUEEZE(name, from) ATEN "conv2d.default(" from ", " name "_weight, " name "_bias, " name "_stride, " name "_padding, " name "_dilation, " name "_groups)"
static const ready_step reduced = {"reduce", {"reduce = " SQUEEZE("reduce", "%")}};
static const ready_step bent = {"activation", {BOTH("relu", ""), BOTH("silu", "")}};
static const ready_step expanded = {"expand", {"expand = " SQUEEZE("expand", "%")}};
static const ready_step gated = {"gate", {"gate = torch.sigmoid(%)", "gate = " F "hardsigmoid(%)"}};
static const ready_step multiplied = {"product", {"product = x * %", "product = % * x"}};
#define SQUEEZE_PARAMS(name) name "_weight, " name "_bias, " name "_stride, " name "_padding, " name "_dilation, " name "_groups"

#define BINARY(name) {name, {name " = " ATEN name ".Tensor(left, right)", name " = " ATEN name "_.Tensor(left, right)"}}
static const ready_step add = BINARY("add"), mul = BINARY("mul");
static const ready_step matmul = {"product", {"product = torch.matmul(left, right)", "product = torch.bmm(left, right)"}};
static const ready_step softmax = {"softmax", {"softmax = " ATEN "softmax.int(x, dim)"}};
#define CAT(inputs) "cat = " ATEN "cat.default([" inputs "], dim)"
static const ready_step cat = {"cat", {CAT(W2), CAT(W2 ", a2"), CAT(W4), CAT(W4 ", a4"), CAT(W4 ", a4, a5"), CAT(W4 ", a4, a5, a6"), CAT(W8)}};
#define POOL_PARAMS "x, size, stride, padding, dilation, ceil_mode, count_padding, divisor"
static const ready_step max_pool = {"pool", {"pool = " ATEN "max_pool2d.default(x, size, stride, padding, dilation, ceil_mode)",
                                             "pool = " ATEN "max_pool1d.default(x, size, stride, padding, dilation, ceil_mode)"}};
static const ready_step avg_pool = {"pool", {"pool = " ATEN "avg_pool2d.default(x, size, stride, padding, ceil_mode, count_padding, divisor)",
                                             "pool = " ATEN "avg_pool1d.default(x, size, stride, padding, ceil_mode, count_padding)"}};
static const ready_step global_pool = {"pool", {"pool = " ATEN "adaptive_avg_pool2d.default(x, size)", "pool = " ATEN "adaptive_avg_pool1d.default(x, size)",
                                                "pool = " ATEN "mean.dim(x, dims, keep)"}};

static const ready_row rows[] = {
    {"residual_add", "a sum of a layer's result (or its batch norm's) and something else", CONV_ALL NORM_PARAMS ", other", {&any_layer, &maybe_norm, &added}},
    {"residual_add_relu", "the same with a ReLU", CONV_ALL NORM_PARAMS ", other", {&any_layer, &maybe_norm, &added, &relu}},
    {"attention", "a product of queries and keys, softmax, and a product with values", "query, key, value, scale, mask, fill, dim, rate, training",
     {&scores, &scaled, &masked, &softmaxed, &dropped, &weighted}},
    {"fused_attention", "torch's scaled_dot_product_attention", "query, key, value, mask, rate, causal, scale", {&fused_attention}},
    {"squeeze_excite", "channels weighted by what a pool, two convolutions and a gate say", "x, size, dims, " SQUEEZE_PARAMS("reduce") ", " SQUEEZE_PARAMS("expand"),
     {&pooled, &reduced, &bent, &expanded, &gated, &multiplied}},
    {"layer_norm", "layer_norm, also written out", "x, shape, weight, bias, eps, cudnn, dims", {&layer_norm}},
    {"rms_norm", "rms_norm, also written out", "x, shape, weight, eps, dims", {&rms_norm}},
    {"group_norm", "group_norm", "x, groups, weight, bias, eps, cudnn", {&group_norm}},
    {"batch_norm", "batch_norm", "x" NORM_PARAMS, {&batch_norm}},
    {"embedding", "a look-up in a table", "weight, indices, padding, scaled, sparse", {&embedding}},
    {"lstm", "an LSTM of up to six layers and directions", RECURRENT_PARAMS, {&lstm}},
    {"gru", "a GRU of up to six layers and directions", RECURRENT_PARAMS, {&gru}},
    {"matmul", "a product of matrices", "left, right", {&matmul}},
    {"add", "a sum", "left, right", {&add}},
    {"add_relu", "a sum with a ReLU", "left, right", {&add, &relu}},
    {"mul", "a product", "left, right", {&mul}},
    {"mul_relu", "a product with a ReLU", "left, right", {&mul, &relu}},
    {"softmax", "softmax", "x, dim", {&softmax}},
    {"cat", "up to eight tensors joined", W8 ", dim", {&cat}},
    {"max_pool", "max pooling in one or two dimensions", POOL_PARAMS, {&max_pool}},
    {"avg_pool", "average pooling in one or two dimensions", POOL_PARAMS, {&avg_pool}},
    {"global_pool", "adaptive average pooling, or a mean", "x, size, dims, keep", {&global_pool}},
#define ALONE(act, step) {act, act ", also in place and written out", "x, " ACT_PARAMS, {&start, &step}}
    ALONE("relu", relu), ALONE("relu6", relu6), ALONE("hardtanh", hardtanh), ALONE("hardswish", hardswish), ALONE("hardsigmoid", hardsigmoid), ALONE("silu", silu),
    ALONE("mish", mish), ALONE("gelu", gelu), ALONE("leaky_relu", leaky_relu), ALONE("elu", elu), ALONE("sigmoid", sigmoid), ALONE("tanh", tangent),
};
// clang-format on
#define COUNT(list) (sizeof(list) / sizeof *(list))

// --- code ---

typedef struct composition {
    const ready_row *row;
    size_t choice[MOST_STEPS]; // the form of each step
} composition;

static size_t form_count(const ready_step *step) {
    size_t count = 0;
    while (count < MOST_FORMS && step->forms[count] != NULL) count++;
    return count;
}

// Writes the lines of a form; `last`, the previous result, replaces '%'.
static void write_lines(text *code, const char *form, const char *last) {
    tare__text_append(code, "    ");
    for (; *form != '\0'; form++) {
        if (*form == '%')
            tare__text_append(code, last);
        else
            tare__text_char(code, *form);
        if (*form == '\n') tare__text_append(code, "    ");
    }
    tare__text_char(code, '\n');
}

static void write_names(text *code, const char *params) {
    for (const char *at = params; *at != '\0';) {
        const int length = (int)strcspn(at, ",");
        if (length == 1 && *at == 'x') // "input" is a Python builtin
            tare__text_append(code, "'input': x, ");
        else
            tare__text_printf(code, "'%.*s': %.*s, ", length, at, length, at);
        at += length;
        at += strspn(at, ", ");
    }
}

static void write_quantized(const composition *c, text *code) {
    const char *last = "x";
    tare__text_printf(code, "def forward(self, %s):\n", c->row->params);
    for (size_t i = 0; i < MOST_STEPS && c->row->steps[i] != NULL; i++) {
        const ready_step *step = c->row->steps[i];
        const char *form = step->forms[c->choice[i]];
        if (*form == '\0') continue;
        write_lines(code, form, last);
        last = step->name;
    }
    tare__text_printf(code, "    return (%s, {", last);
    write_names(code, c->row->params);
    for (size_t i = 0; i < MOST_STEPS && c->row->steps[i] != NULL; i++)
        if (*c->row->steps[i]->forms[c->choice[i]] != '\0')
            tare__text_printf(code, "'%s': %s, ", c->row->steps[i]->name, c->row->steps[i]->name);
    tare__text_printf(code, "'output': %s})\n", last);
}

// Advances to the next combination; false after the last one.
static bool advance(composition *c) {
    for (size_t i = 0; i < MOST_STEPS && c->row->steps[i] != NULL; i++) {
        if (++c->choice[i] < form_count(c->row->steps[i])) return true;
        c->choice[i] = 0;
    }
    return false;
}

static tare_status add_forms(const ready_row *row, subgraph_forms *out, tare_error *err) {
    const subgraph_options options = {.shares_parameters = true};
    composition c = {.row = row};
    do {
        text code = {0};
        write_quantized(&c, &code);
        tare_status status = tare__text_status(&code, err);
        if (status == TARE_OK)
            status = tare__subgraph_forms_add(out, code.chars, code.length, &options, NULL, 0, err);
        tare__text_release(&code);
        TARE_TRY(status);
    } while (advance(&c));
    return TARE_OK;
}

// --- names ---

static const act_row *find_act(const char *name) {
    for (size_t i = 0; i < COUNT(acts); i++)
        if (strcmp(acts[i].name, name) == 0) return &acts[i];
    return NULL;
}

static bool take(const char **name, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(*name, word, length) != 0) return false;
    if ((*name)[length] != '\0' && (*name)[length] != '_') return false;
    *name += length;
    return true;
}

/// The parts of a name LAYER[_bn][_add][_ACTIVATION].
typedef struct layer_name {
    const layer_row *layer;
    bool has_norm, has_add;
    const act_row *act; // NULL: none
} layer_name;

static bool read_layer_name(const char *name, layer_name *out) {
    *out = (layer_name){0};
    for (size_t i = 0; i < COUNT(layers) && out->layer == NULL; i++)
        if (take(&name, layers[i].name)) out->layer = &layers[i];
    if (out->layer == NULL) return false;
    out->has_norm = take(&name, "_bn");
    out->has_add = take(&name, "_add");
    if (*name == '_') out->act = find_act(name + 1);
    return *name == '\0' || out->act != NULL;
}

static tare_status add_layer_forms(const layer_name *name, subgraph_forms *out, tare_error *err) {
    for (size_t i = 0; i < 4 && name->layer->layers[i] != NULL; i++) {
        ready_row row = {.params = CONV_ALL NORM_PARAMS ", other, " ACT_PARAMS};
        size_t count = 0;
        row.steps[count++] = name->layer->layers[i];
        if (name->has_norm) row.steps[count++] = &norm;
        if (name->has_add) row.steps[count++] = &added;
        if (name->act != NULL) row.steps[count++] = name->act->step;
        TARE_TRY(add_forms(&row, out, err));
    }
    return TARE_OK;
}

static const char *name_at(const void *unused, size_t i) {
    static const char *const composed[] = {"conv_bn",     "conv_relu", "conv_bn_relu",
                                           "linear_relu", "conv_add",  "conv_bn_add_relu"};
    (void)unused;
    if (i < COUNT(rows)) return rows[i].name;
    i -= COUNT(rows);
    if (i < COUNT(layers)) return layers[i].name;
    i -= COUNT(layers);
    return i < COUNT(composed) ? composed[i] : NULL;
}

tare_status tare__ready_pattern_forms(const char *name, subgraph_forms *out, tare_error *err) {
    layer_name composed;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return add_forms(&rows[i], out, err);
    if (read_layer_name(name, &composed)) return add_layer_forms(&composed, out, err);
    return tare__suggest(err, tare__fail(err, TARE_NOT_FOUND, "no ready-made pattern '%s'", name),
                         name, name_at, NULL);
}

bool tare_subgraph_ready_at(size_t index, tare_ready_pattern *out) {
    *out = (tare_ready_pattern){.struct_size = sizeof *out};
    if (index < COUNT(rows)) {
        out->name = rows[index].name;
        out->what = rows[index].what;
        return true;
    }
    index -= COUNT(rows);
    if (index >= COUNT(layers)) return false;
    out->name = layers[index].name;
    out->what = layers[index].what;
    out->is_layer = true;
    return true;
}
