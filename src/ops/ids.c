// SPDX-License-Identifier: Apache-2.0
// Conversions between ids, rows and nodes. The enum is in the order of the ids as strings.
#include <stdio.h>
#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"

static const char *const row_ids[TARE_OP_COUNT] = {
#define ID(id, name) [TARE_OP_##name] = id,
#include "ops/ids.def"
#undef ID
};

const op_info *tare__op_row(op_id id) {
    return id != TARE_OP_NONE ? tare__op_by_id(row_ids[id], 0) : NULL;
}

op_id tare__op_id(const op_info *op) {
    int low = TARE_OP_NONE + 1, high = TARE_OP_COUNT;
    while (op != NULL && low < high) {
        const int middle = (low + high) / 2, order = strcmp(op->id, row_ids[middle]);
        if (order == 0) return (op_id)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return TARE_OP_NONE;
}

const op_info *tare__function_row(const node *n) {
    return n != NULL && n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target) : NULL;
}

const op_info *tare__node_row(const node *n) {
    return n != NULL && n->op == NODE_CALL_METHOD ? tare__op_method(n->target)
                                                  : tare__function_row(n);
}

op_id tare__function_op(const node *n) {
    return tare__op_id(tare__function_row(n));
}

op_id tare__node_op(const node *n) {
    return tare__op_id(tare__node_row(n));
}

bool tare__calls_method(const node *n, op_id id) {
    return n != NULL && n->op == NODE_CALL_METHOD && tare__node_op(n) == id;
}

const op_info *tare__class_row(const module_class *class) {
    return class->op != NULL ? tare__op_by_id(class->op, class->dims) : NULL;
}

op_id tare__class_op(const module_class *class) {
    return tare__op_id(tare__class_row(class));
}

bool tare__op_is_any(op_id id, const op_id *ids, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

bool tare__passes_on(const op_info *op) {
    return tare__op_has(op, OP_MOVES_DATA) || tare__op_id(op) == TARE_OP_DROPOUT;
}

bool tare__moves_quantized(const op_info *op) {
    return tare__op_has(op, OP_MOVES_DATA) && tare__op_has(op, OP_KEEPS_QPARAMS);
}

const op_info *tare__op_form(const op_info *op, op_form form) {
    static const struct {
        const char *before, *after;
    } spellings[] = {
        [FORM_QUANTIZED] = {"quantized.", ""},
        [FORM_QUANTIZED_RELU] = {"quantized.", "_relu"},
        [FORM_FLOAT_RESULT] = {"quantized.", "_float"},
        [FORM_DYNAMIC] = {"quantized.", "_dynamic"},
        [FORM_DYNAMIC_RELU] = {"quantized.", "_relu_dynamic"},
        [FORM_DYNAMIC_HALF] = {"quantized.", "_dynamic_fp16"},
        [FORM_DYNAMIC_HALF_RELU] = {"quantized.", "_relu_dynamic_fp16"},
        [FORM_DECOMPOSED_DYNAMIC] = {"quantized.", "_decomposed_dynamic"},
        [FORM_DECOMPOSED_DYNAMIC_RELU] = {"quantized.", "_relu_decomposed_dynamic"},
        [FORM_ADD] = {"quantized.", "_add"},
        [FORM_ADD_RELU] = {"quantized.", "_add_relu"},
        [FORM_BY_RULE] = {"tare.", ""},
    };
    char id[64];
    const int length =
        snprintf(id, sizeof id, "%s%s%s", spellings[form].before, op->id, spellings[form].after);
    return length > 0 && (size_t)length < sizeof id ? tare__op_by_id(id, 0) : NULL;
}

static op_name first_of(const char *names) {
    op_name out = {0};
    (void)snprintf(out.text, sizeof out.text, "%.*s", (int)strcspn(names, "|( "), names);
    return out;
}

op_name tare__op_function_name(const op_info *op) {
    return first_of(op->functions != NULL ? op->functions : op->overloads);
}

op_name tare__op_method_name(const op_info *op) {
    return first_of(op->methods);
}

bool tare__uses_first_name(const node *n) {
    const op_info *op = tare__function_row(n);
    return op != NULL && strcmp(tare__op_function_name(op).text, n->target) == 0;
}

// True if `name` is the full name of this overload, "torch.ops.NAMESPACE.NAME.OVERLOAD".
static bool is_overload(const char *name, size_t length, op_overload o) {
    const size_t end = strlen(o.name);
    if (!tare__is_overload(name) || length < end + 2) return false;
    const char *dot = name + length - end - 1;
    return *dot == '.' && (dot[-1] == '_') == o.is_in_place && strncmp(dot + 1, o.name, end) == 0;
}

static op_name find_overload(const char *names, char separator, op_overload o) {
    for (const char *at = names; at != NULL; at = strchr(at, separator)) {
        at += *at == separator ? 1 : 0;
        if (is_overload(at, strcspn(at, "|( "), o)) return first_of(at);
    }
    return (op_name){0};
}

op_name tare__overload_name(op_overload o) {
    const op_info *op = tare__op_row(o.op);
    const op_name found = find_overload(op->functions, '|', o);
    return found.text[0] != '\0' ? found : find_overload(op->overloads, ' ', o);
}

bool tare__calls_overload(const node *n, op_id id, const char *name) {
    return tare__function_op(n) == id &&
           strcmp(tare__overload_name((op_overload){id, false, name}).text, n->target) == 0;
}

bool tare__calls_one_of(const node *n, const op_overload *list) {
    const op_id id = tare__function_op(n);
    for (; id != TARE_OP_NONE && list->op != TARE_OP_NONE; list++)
        if (list->op == id && strcmp(tare__overload_name(*list).text, n->target) == 0) return true;
    return false;
}
