// SPDX-License-Identifier: Apache-2.0
// torch.export's way from torch's functions to aten operators, as rows: the same arguments, in
// aten's order, without what only says «in place».
#include "pt2e/capture.h"

#include <string.h>

#include "core/text.h"
#include "ops/op.h"

typedef struct capture_row {
    const char *functions; // '|' between
    const char *aten;      // without "torch.ops.aten."
    const char *in_place; // the operator with inplace=True; NULL: the function has no such argument
    const char *params;   // the function's, '|' between
    // aten's arguments by the function's names, with a default that must be spelt ("eps=1e-05"), or
    // just a value. NULL: as the function's.
    const char *order;
} capture_row;

#define F     "torch.nn.functional."
#define CONV  "input|weight|bias|stride|padding|dilation|groups"
#define TCONV "input|weight|bias|stride|padding|output_padding|groups|dilation"
// clang-format off
static const capture_row rows[] = {
    {F "conv1d|torch.conv1d", "conv1d.default", NULL, CONV, NULL},
    {F "conv2d|torch.conv2d", "conv2d.default", NULL, CONV, NULL},
    {F "conv3d|torch.conv3d", "conv3d.default", NULL, CONV, NULL},
    {F "conv_transpose1d|torch.conv_transpose1d", "conv_transpose1d.default", NULL, TCONV, NULL},
    {F "conv_transpose2d|torch.conv_transpose2d", "conv_transpose2d.input", NULL, TCONV, NULL},
    {F "conv_transpose3d|torch.conv_transpose3d", "conv_transpose3d.input", NULL, TCONV, NULL},
    {F "linear|torch._C._nn.linear", "linear.default", NULL, "input|weight|bias", NULL},
    {F "batch_norm", "batch_norm.default", NULL, "input|running_mean|running_var|weight|bias|training|momentum|eps",
     "input|weight=None|bias=None|running_mean|running_var|training=False|momentum=0.1|eps=1e-05|True"},
    {F "layer_norm", "layer_norm.default", NULL, "input|normalized_shape|weight|bias|eps", NULL},
    {F "relu|torch.relu", "relu.default", "relu_.default", "input|inplace", "input"},
    {F "relu_|torch.relu_", "relu_.default", NULL, "input", NULL},
    {F "hardtanh", "hardtanh.default", "hardtanh_.default", "input|min_val|max_val|inplace", "input|min_val|max_val"},
    {F "hardswish", "hardswish.default", "hardswish_.default", "input|inplace", "input"},
    {F "hardsigmoid", "hardsigmoid.default", "hardsigmoid_.default", "input|inplace", "input"},
    {F "silu", "silu.default", "silu_.default", "input|inplace", "input"},
    {F "leaky_relu", "leaky_relu.default", "leaky_relu_.default", "input|negative_slope|inplace", "input|negative_slope"},
    {F "elu", "elu.default", "elu_.default", "input|alpha|inplace", "input|alpha"},
    {F "gelu|torch._C._nn.gelu", "gelu.default", NULL, "input", NULL},
    {F "sigmoid|torch.sigmoid", "sigmoid.default", NULL, "input", NULL},
    {F "tanh|torch.tanh", "tanh.default", NULL, "input", NULL},
    {"torch.add|operator.add", "add.Tensor", NULL, "input|other", NULL},
    {"operator.iadd", "add_.Tensor", NULL, "input|other", NULL},
    {"torch.sub|operator.sub", "sub.Tensor", NULL, "input|other", NULL},
    {"torch.mul|operator.mul", "mul.Tensor", NULL, "input|other", NULL},
    {"operator.imul", "mul_.Tensor", NULL, "input|other", NULL},
    {"torch.div|operator.truediv", "div.Tensor", NULL, "input|other", NULL},
    {"torch.matmul|operator.matmul", "matmul.default", NULL, "input|other", NULL},
    {"torch.cat", "cat.default", NULL, "tensors|dim", NULL},
    {"torch.flatten", "flatten.using_ints", NULL, "input|start_dim|end_dim", NULL},
    {"torch.mean", "mean.dim", NULL, "input|dim|keepdim", NULL},
    {F "softmax|torch.softmax", "softmax.int", NULL, "input|dim", NULL},
    {F "max_pool2d|torch.max_pool2d", "max_pool2d.default", NULL, "input|kernel_size|stride|padding|dilation|ceil_mode", NULL},
    {F "avg_pool2d|torch._C._nn.avg_pool2d", "avg_pool2d.default", NULL, "input|kernel_size|stride|padding|ceil_mode|count_include_pad|divisor_override", NULL},
    {F "adaptive_avg_pool2d", "adaptive_avg_pool2d.default", NULL, "input|output_size", NULL},
    {F "embedding", "embedding.default", NULL, "input|weight|padding_idx", "weight|input|padding_idx"},
    {F "dropout", "dropout.default", "dropout_.default", "input|p|training|inplace", "input|p=0.5|training=True"},
};
// clang-format on

// The index-th of "a|b=1|c"; its length without a default, and the default. NULL past the end.
static const char *item_at(const char *list, size_t index, size_t *length, const char **fallback) {
    for (; index > 0 && *list != '\0'; index--) {
        list += strcspn(list, "|");
        if (*list == '|') list++;
    }
    if (*list == '\0') return NULL;
    const size_t whole = strcspn(list, "|");
    const char *equals = memchr(list, '=', whole);
    *length = equals != NULL ? (size_t)(equals - list) : whole;
    *fallback = equals != NULL ? equals + 1 : NULL;
    return list;
}

static bool lists(const char *list, const char *name, size_t *index) {
    size_t length = 0;
    const char *fallback = NULL, *item = NULL;
    for (*index = 0; (item = item_at(list, *index, &length, &fallback)) != NULL; (*index)++)
        if (length == strlen(name) && memcmp(item, name, length) == 0) return true;
    return false;
}

static const capture_row *row_of(const node *n) {
    size_t ignored = 0;
    if (n->op != NODE_CALL_FUNCTION) return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (lists(rows[i].functions, n->target, &ignored)) return &rows[i];
    return NULL;
}

static bool read_literal(const char *chars, size_t length, value *out) {
    double number = 0;
    if (length == 4 && memcmp(chars, "None", 4) == 0)
        *out = tare__none();
    else if (length == 4 && memcmp(chars, "True", 4) == 0)
        *out = tare__bool(true);
    else if (length == 5 && memcmp(chars, "False", 5) == 0)
        *out = tare__bool(false);
    else if (tare__parse_double(chars, length, &number))
        *out = tare__float(number);
    else
        return false;
    return true;
}

enum { MOST_ARGUMENTS = 12 };
typedef struct bound_call {
    const value *given[MOST_ARGUMENTS]; // by the function's parameters; NULL: left out
    value out[MOST_ARGUMENTS];
    size_t count;
} bound_call;

static tare_status bind(const node *n, const capture_row *row, bound_call *b, tare_error *err) {
    size_t length = 0, index = 0;
    const char *fallback = NULL;
    for (size_t i = 0; i < n->arg_count; i++) {
        if (i >= MOST_ARGUMENTS || item_at(row->params, i, &length, &fallback) == NULL)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "node '%s': %s takes at most %zu "
                              "arguments in a pattern",
                              n->name, n->target, i);
        b->given[i] = &n->args[i];
    }
    for (size_t i = 0; i < n->kwarg_count; i++) {
        if (!lists(row->params, n->kwargs[i].name, &index))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "node '%s': %s has no argument '%s' in "
                              "a pattern",
                              n->name, n->target, n->kwargs[i].name);
        b->given[index] = &n->kwargs[i].value;
    }
    return TARE_OK;
}

// The index-th argument of the aten call; false: left out.
static bool order_argument(const capture_row *row, const bound_call *b, size_t index, value *out) {
    const char *order = row->order != NULL ? row->order : row->params;
    size_t length = 0, at = 0;
    const char *fallback = NULL;
    char name[32] = "";
    const char *item = item_at(order, index, &length, &fallback);
    if (length < sizeof name) memcpy(name, item, length);
    if (!lists(row->params, name, &at)) return read_literal(item, length, out);
    if (b->given[at] != NULL) *out = *b->given[at];
    return b->given[at] != NULL ||
           (fallback != NULL && read_literal(fallback, strcspn(fallback, "|"), out));
}

static bool wants_in_place(const capture_row *row, const bound_call *b) {
    size_t index = 0;
    return row->in_place != NULL && lists(row->params, "inplace", &index) &&
           b->given[index] != NULL && b->given[index]->kind == VALUE_BOOL &&
           b->given[index]->as.boolean;
}

static tare_status capture_call(node *n, const capture_row *row, tare_error *err) {
    const char *order = row->order != NULL ? row->order : row->params, *fallback = NULL;
    bound_call b = {.count = 0};
    size_t length = 0;
    TARE_TRY(bind(n, row, &b, err));
    bool is_complete = true;
    for (size_t i = 0; item_at(order, i, &length, &fallback) != NULL; i++) {
        value v;
        if (!order_argument(row, &b, i, &v)) {
            is_complete = false;
            continue;
        }
        if (!is_complete)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "node '%s': in a pattern %s needs the arguments before '%.*s'",
                              n->name, n->target, (int)length,
                              item_at(order, i, &length, &fallback));
        b.out[b.count++] = v;
    }
    n->target = tare__arena_printf(&n->owner->memory, "torch.ops.aten.%s",
                                   wants_in_place(row, &b) ? row->in_place : row->aten);
    if (n->target == NULL) return tare__out_of_memory(err);
    return tare__node_set_args(n, b.out, b.count, NULL, 0, err);
}

tare_status tare__capture(graph *g, tare_error *err) {
    for (node *n = g->first; n != NULL; n = n->next) {
        const capture_row *row = row_of(n);
        if (row != NULL) TARE_TRY(capture_call(n, row, err));
    }
    return TARE_OK;
}
