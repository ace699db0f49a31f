// SPDX-License-Identifier: Apache-2.0
// Prints graphs: the code that torch generates for them, and torch's listing of nodes.
#include "ops/text/print.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "ops/text/python.h"

// The two ways torch writes arguments: as Python source, and as in a listing of nodes, where nodes
// carry a '%' and strings no quotes.
typedef enum style { STYLE_CODE, STYLE_LISTING } style;

static void print_styled(const value *v, style s, text *out);

static void print_items(const value *v, style s, text *out) {
    for (uint32_t i = 0; i < v->count; i++) {
        if (i) tare__text_append(out, ", ");
        print_styled(&v->as.items[i], s, out);
    }
}

static void print_dict(const value *v, style s, text *out) {
    tare__text_char(out, '{');
    for (uint32_t i = 0; i + 1 < v->count; i += 2) {
        if (i) tare__text_append(out, ", ");
        print_styled(&v->as.items[i], s, out);
        tare__text_append(out, ": ");
        print_styled(&v->as.items[i + 1], s, out);
    }
    tare__text_char(out, '}');
}

// "cuda:1" -> device(type='cuda', index=1)
static void print_device(const char *device, text *out) {
    const char *colon = strchr(device, ':');
    const size_t length = colon ? (size_t)(colon - device) : strlen(device);
    tare__text_printf(out, "device(type='%.*s'", (int)length, device);
    if (colon) tare__text_printf(out, ", index=%s", colon + 1);
    tare__text_char(out, ')');
}

static void print_scalar(const value *v, text *out) {
    tare__text_append(out, "tensor(");
    tare__print_value(&v->as.items[0], out);
    tare__text_append(out, ", dtype=");
    tare__print_value(&v->as.items[1], out);
    tare__text_char(out, ')');
}

static void print_bracketed(const value *v, style s, const char *open, const char *close,
                            text *out) {
    tare__text_append(out, open);
    print_items(v, s, out);
    tare__text_append(out, close);
}

static void print_styled(const value *v, style s, text *out) {
    switch (v->kind) {
    case VALUE_NONE:
        tare__text_append(out, "None");
        break;
    case VALUE_BOOL:
        tare__text_append(out, v->as.boolean ? "True" : "False");
        break;
    case VALUE_INT:
        tare__text_printf(out, "%lld", (long long)v->as.integer);
        break;
    case VALUE_FLOAT:
        tare__text_double(out, v->as.real);
        break;
    case VALUE_STRING:
        (s == STYLE_LISTING ? tare__text_append : tare__text_quoted)(out, v->as.text);
        break;
    case VALUE_NODE:
        if (s == STYLE_LISTING) tare__text_char(out, '%');
        tare__text_append(out, v->as.node->name);
        break;
    case VALUE_LIST:
        print_bracketed(v, s, "[", "]", out);
        break;
    case VALUE_TUPLE:
        print_bracketed(v, s, "(", v->count == 1 ? ",)" : ")", out);
        break;
    case VALUE_DICT:
        print_dict(v, s, out);
        break;
    case VALUE_SLICE:
        print_bracketed(v, STYLE_CODE, "slice(", ")", out);
        break;
    case VALUE_ELLIPSIS:
        tare__text_append(out, "Ellipsis");
        break;
    case VALUE_DTYPE:
        tare__text_append(out, tare_dtype_name(v->as.dtype));
        break;
    case VALUE_QSCHEME:
        tare__text_append(out, tare_qscheme_name(v->as.qscheme));
        break;
    case VALUE_DEVICE:
        print_device(v->as.text, out);
        break;
    case VALUE_LAYOUT:
    case VALUE_SYMBOL:
    case VALUE_TYPE:
        tare__text_append(out, v->as.text);
        break;
    case VALUE_SCALAR:
        print_scalar(v, out);
        break;
    case VALUE_TENSOR:
        tare__text_append(out, "tensor(..)");
        break;
    case VALUE_MODULE:
        tare__text_append(out, "packed(..)");
        break;
    }
}

void tare__print_value(const value *v, text *out) {
    print_styled(v, STYLE_CODE, out);
}

// base.a.b, or getattr(base.a, "0") for names that are no identifiers.
static void print_path(const char *base, size_t base_length, const char *path, text *out) {
    size_t calls = 0;
    for (const char *c = path; c; c = strchr(c, '.')) {
        if (*c == '.') c++;
        calls += !tare__is_identifier_n(c, strcspn(c, "."));
    }
    for (size_t i = 0; i < calls; i++) tare__text_append(out, "getattr(");
    tare__text_append_n(out, base, base_length);
    for (const char *c = path; c; c = strchr(c, '.')) {
        if (*c == '.') c++;
        const int length = (int)strcspn(c, ".");
        const bool is_name = tare__is_identifier_n(c, (size_t)length);
        tare__text_printf(out, is_name ? ".%.*s" : ", \"%.*s\")", length, c);
    }
}

static void print_arguments(const node *n, size_t first, text *out) {
    tare__text_char(out, '(');
    for (size_t i = first; i < n->arg_count; i++) {
        if (i > first) tare__text_append(out, ", ");
        tare__print_value(&n->args[i], out);
    }
    for (size_t i = 0; i < n->kwarg_count; i++) {
        if (i || n->arg_count > first) tare__text_append(out, ", ");
        tare__text_printf(out, "%s = ", n->kwargs[i].name);
        tare__print_value(&n->kwargs[i].value, out);
    }
    tare__text_char(out, ')');
}

static void print_operands(const node *n, const python_operator *o, text *out) {
    if (o->form == PYTHON_UNARY) tare__text_append(out, o->symbol);
    tare__print_value(&n->args[0], out);
    if (o->form == PYTHON_UNARY) return;
    const bool is_item = o->form == PYTHON_SUBSCRIPT || o->form == PYTHON_SET_ITEM;
    tare__text_printf(out, is_item ? "[" : " %s ", o->symbol);
    tare__print_value(&n->args[1], out);
    if (is_item) tare__text_char(out, ']');
    if (o->form != PYTHON_SET_ITEM) return;
    tare__text_append(out, " = ");
    tare__print_value(&n->args[2], out);
}

static bool is_torch_function(const char *target) {
    return tare__starts_with(target, "torch.");
}

// Torch's functions have their qualified names. The names of others become identifiers; `operator.`
// becomes `_operator_`, after its C module.
static void print_function_name(const char *target, text *out) {
    if (is_torch_function(target)) {
        tare__text_append(out, target);
        return;
    }
    if (tare__starts_with(target, "builtins.")) target += strlen("builtins.");
    if (tare__starts_with(target, "operator.")) tare__text_char(out, '_');
    for (const char *c = target; *c; c++) tare__text_char(out, *c == '.' ? '_' : *c);
}

static bool is_getattr(const node *n) {
    return strcmp(n->target, "getattr") == 0 || strcmp(n->target, "builtins.getattr") == 0;
}

// As parsed: other values have no members (`a.b.c` would be one name).
static bool is_attribute_access(const node *n) {
    return is_getattr(n) && n->arg_count == 2 && n->kwarg_count == 0 &&
           n->args[0].kind == VALUE_NODE && n->args[1].kind == VALUE_STRING &&
           tare__is_identifier(n->args[1].as.text);
}

static void print_function_call(const node *n, const char *left, text *out) {
    const python_operator *o = tare__python_operator(n->target);
    if (o && n->arg_count == tare__python_operand_count(o->form) && n->kwarg_count == 0) {
        const bool in_place = o->form == PYTHON_IN_PLACE || o->form == PYTHON_SET_ITEM;
        if (!in_place) tare__text_append(out, left);
        print_operands(n, o, out);
        if (!in_place) return;
        tare__text_printf(out, ";  %s", left);
        tare__print_value(&n->args[0], out);
        return;
    }
    tare__text_append(out, left);
    if (is_attribute_access(n)) {
        tare__print_value(&n->args[0], out);
        tare__text_printf(out, ".%s", n->args[1].as.text);
        return;
    }
    print_function_name(n->target, out);
    print_arguments(n, 0, out);
}

static void print_method_call(const node *n, text *out) {
    text self = {0};
    tare__print_value(&n->args[0], &self);
    print_path(tare__text_chars(&self), self.length, n->target, out);
    out->failed = out->failed || self.failed;
    tare__text_release(&self);
    print_arguments(n, 1, out);
}

static void print_statement(const node *n, const graph *g, text *out) {
    char *left = NULL;
    text head = {0};
    tare__text_append(&head, n->name);
    // A placeholder's annotation is in the parameter list.
    if (n->annotation && n->op != NODE_PLACEHOLDER)
        tare__text_printf(&head, " : %s", n->annotation);
    tare__text_append(&head, " = ");
    left = tare__text_take(&head);
    if (!left) {
        out->failed = true;
        return;
    }
    tare__text_append(out, "    ");
    if (n->op == NODE_CALL_FUNCTION) {
        print_function_call(n, left, out);
    } else if (n->op == NODE_OUTPUT) {
        tare__text_append(out, g->pytree_signature ? "return pytree.tree_unflatten(" : "return ");
        tare__print_value(&n->args[0], out);
        if (g->pytree_signature) tare__text_append(out, ", self._out_spec)");
    } else {
        tare__text_append(out, left);
        if (n->op == NODE_PLACEHOLDER) tare__text_append(out, n->target + strspn(n->target, "*"));
        if (n->op == NODE_CALL_METHOD) print_method_call(n, out);
        if (n->op == NODE_CALL_MODULE || n->op == NODE_GET_ATTR)
            print_path("self", 4, n->target, out);
        if (n->op == NODE_CALL_MODULE) print_arguments(n, 0, out);
    }
    tare__free(left);
}

// Prints `;  a = b = None` after the line of the last user of a and b.
typedef struct cleaning {
    const node *user;
    const node *const *last_users; // by id of the node used
    text *out;
    bool any;
} cleaning;

static void clean(cleaning *c, const node *n) {
    tare__text_append(c->out, c->any ? "" : ";  ");
    tare__text_printf(c->out, "%s = ", n->name);
    c->any = true;
}

static void clean_if_last(void *user, node *input) {
    cleaning *c = user;
    if (c->last_users[input->id] == c->user) clean(c, input);
}

static void print_cleaning(const node *n, const node *const *last_users, text *out) {
    cleaning c = {.user = n, .last_users = last_users, .out = out};
    tare__node_each_input(n, clean_if_last, &c);
    if (n->user_count == 0) clean(&c, n);
    if (c.any) tare__text_append(out, "None");
}

// Functions of Python's math module do not accept traced values, so torch's tracer wraps them.
// Generated code begins with a wrap statement for each.
static tare_status print_wraps(const graph *g, text *out, tare_error *err) {
    map seen = {0};
    for (node *n = g->first; n; n = n->next) {
        if (n->op != NODE_CALL_FUNCTION || !tare__starts_with(n->target, "math.")) continue;
        if (tare__map_has(&seen, n->target)) continue;
        if (!tare__map_set(&seen, n->target, n)) {
            tare__map_release(&seen);
            return tare__out_of_memory(err);
        }
        tare__text_append(out, "torch.fx._symbolic_trace.wrap(\"");
        print_function_name(n->target, out);
        tare__text_append(out, "\")\n");
    }
    if (seen.count > 0) tare__text_char(out, '\n');
    tare__map_release(&seen);
    return TARE_OK;
}

static void print_signature(const graph *g, text *out) {
    tare__text_append(out, "def forward(self");
    for (const node *n = g->first; n; n = n->next) {
        if (n->op != NODE_PLACEHOLDER) continue;
        tare__text_printf(out, ", %s", n->target);
        if (n->annotation) tare__text_printf(out, " : %s", n->annotation);
        if (n->arg_count == 0) continue;
        tare__text_append(out, " = ");
        tare__print_value(&n->args[0], out);
    }
    // The return annotation is the type of the output.
    if (g->last && g->last->op == NODE_OUTPUT && g->last->annotation)
        tare__text_printf(out, ") -> %s:", g->last->annotation);
    else
        tare__text_append(out, "):");
}

static bool is_silent(const node *n) {
    return n->op == NODE_PLACEHOLDER && strcmp(n->name, n->target + strspn(n->target, "*")) == 0;
}

typedef struct last_users {
    const node **of; // by id
    const node *user;
} last_users;

static void note_user(void *user, node *input) {
    const last_users *l = user;
    l->of[input->id] = l->user;
}

tare_status tare__print_code(const graph *g, text *out, tare_error *err) {
    if (!g->pytree_signature) TARE_TRY(print_wraps(g, out, err));
    last_users last = {.of = tare__alloc_zeroed(g->next_id, sizeof(node *))};
    if (!last.of) return tare__out_of_memory(err);
    for (last.user = g->first; last.user; last.user = last.user->next)
        tare__node_each_input(last.user, note_user, &last);
    if (g->pytree_signature)
        tare__text_append(out, g->pytree_signature);
    else
        print_signature(g, out);
    tare__text_char(out, '\n');
    if (g->pytree_signature && g->pytree_flatten && *g->pytree_flatten)
        tare__text_printf(out, "    %s\n", g->pytree_flatten);
    for (const node *n = g->first; n; n = n->next) {
        if (is_silent(n)) continue;
        print_statement(n, g, out);
        const bool is_call = n->op != NODE_PLACEHOLDER && n->op != NODE_OUTPUT;
        if (is_call) print_cleaning(n, last.of, out);
        tare__text_char(out, '\n');
    }
    tare__free((void *)last.of);
    return tare__text_status(out, err);
}

static void print_listed_arguments(const node *n, text *out) {
    const value args = {.kind = VALUE_TUPLE, .count = (uint32_t)n->arg_count, .as.items = n->args};
    tare__text_append(out, "(args = ");
    print_styled(&args, STYLE_LISTING, out);
    tare__text_append(out, ", kwargs = {");
    for (size_t i = 0; i < n->kwarg_count; i++) {
        tare__text_printf(out, i ? ", %s: " : "%s: ", n->kwargs[i].name);
        print_styled(&n->kwargs[i].value, STYLE_LISTING, out);
    }
    tare__text_append(out, "})");
}

static void print_listed(const node *n, text *out) {
    if (n->op == NODE_OUTPUT) {
        tare__text_append(out, "return ");
        tare__print_value(&n->args[0], out);
        return;
    }
    tare__text_printf(out, "%%%s : %s%s[num_users=%zu] = %s[target=%s%s]", n->name,
                      n->annotation ? n->annotation : "", n->annotation ? " " : "", n->user_count,
                      tare__node_op_name(n->op),
                      strchr(n->target, '.')        ? ""
                      : n->op == NODE_CALL_FUNCTION ? "builtins."
                                                    : "",
                      n->target);
    if (n->op == NODE_PLACEHOLDER && n->arg_count > 0) {
        tare__text_append(out, "(default=");
        tare__print_value(&n->args[0], out);
        tare__text_char(out, ')');
    } else if (n->op != NODE_PLACEHOLDER && n->op != NODE_GET_ATTR) {
        print_listed_arguments(n, out);
    }
}

tare_status tare__print_graph(const graph *g, text *out, tare_error *err) {
    tare__text_append(out, "graph():\n");
    for (const node *n = g->first; n; n = n->next) {
        tare__text_append(out, "    ");
        print_listed(n, out);
        tare__text_char(out, '\n');
    }
    return tare__text_status(out, err);
}
