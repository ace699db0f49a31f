// SPDX-License-Identifier: Apache-2.0
// Writes the nodes of a program. getitem nodes are not written; they name the results of operators.
#include <inttypes.h>
#include <string.h>

#include "core/json/write.h"
#include "io/native/debug_handle.h"
#include "io/pt2/write/program.h"
#include "ops/classes/classes.h"
#include "ops/op.h"
#include "ops/signatures.h"

static const char getitem[] = "operator.getitem";

bool tare__pt2_is_guard(const program_writer *w, const node *n) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__module_find(w->root, n->target) : NULL;
    return m != NULL && strcmp(m->class->name, "torch.export.GuardsFn") == 0;
}

bool tare__pt2_is_mutation(const node *n) {
    static const char copy[] = "torch.ops.aten.copy_.default";
    const node *into = tare__node_arg(n, 0);
    if (n->op != NODE_CALL_FUNCTION || strcmp(n->target, copy) != 0 || n->user_count > 0 ||
        n->arg_count != 2 || n->kwarg_count > 0 || tare__node_arg(n, 1) == NULL || into == NULL ||
        (into->op != NODE_GET_ATTR && into->op != NODE_PLACEHOLDER))
        return false;
    // Nodes after it could read the new value.
    return n->next != NULL && (n->next->op == NODE_OUTPUT || tare__pt2_is_mutation(n->next));
}

// --- metadata ---

static void write_entry(const json_t *entry, char separator, text *out) {
    if (json_is_string(entry)) tare__text_append(out, json_string_value(entry));
    for (size_t i = 0; i < json_array_size(entry); i++) {
        const char *field = json_string_value(json_array_get(entry, i));
        if (i > 0) tare__text_char(out, separator);
        tare__text_append(out, field != NULL ? field : "");
    }
}

// [["a", "b"], ["c", "d"]] -> "a,b;c,d"
static void write_entries(const json_t *list, text *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i > 0) tare__text_char(out, ';');
        write_entry(json_array_get(list, i), ',', out);
    }
}

static void write_chars(const char *key, const text *chars, text *out) {
    if (chars->length > 0) {
        if (out->chars[out->length - 1] != '{') tare__text_append(out, ", ");
        tare__text_printf(out, "\"%s\": ", key);
        tare__text_json_string(out, tare__text_chars(chars));
    }
    out->failed = out->failed || chars->failed;
}

static void write_field(const char *key, const json_t *field, text *out) {
    text chars = {0};
    if (strcmp(key, "nn_module_stack") == 0 || strcmp(key, "source_fn_stack") == 0)
        write_entries(field, &chars);
    else if (strcmp(key, "torch_fn") == 0 || json_is_string(field))
        write_entry(field, ';', &chars);
    else
        tare__json_write(field, &chars);
    write_chars(key, &chars, out);
    tare__text_release(&chars);
}

// Writes the exporter's `custom` with the node's current debug handle.
static tare_status write_custom(const json_t *meta, const node *n, text *out, tare_error *err) {
    text chars = {0};
    const tare_status status =
        tare__debug_handle_write(json_object_get(meta, "custom"), n->debug_handle, &chars, err);
    if (!out->failed) write_chars("custom", &chars, out);
    tare__text_release(&chars);
    return status;
}

static tare_status write_metadata(const json_t *meta, const node *n, text *out, tare_error *err) {
    static const char *const keys[] = {"stack_trace", "nn_module_stack", "source_fn_stack",
                                       "torch_fn",    "custom",          "from_node"};
    tare__text_append(out, ", \"metadata\": {");
    if (out->failed) return tare__text_status(out, err);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *field = json_object_get(meta, keys[i]);
        if (strcmp(keys[i], "custom") == 0)
            TARE_TRY(write_custom(meta, n, out, err));
        else if (field != NULL && !out->failed)
            write_field(keys[i], field, out);
    }
    tare__text_char(out, '}');
    return TARE_OK;
}

// --- arguments ---

static void begin_argument(text *out, const char *name, size_t length) {
    if (out->length > 0 && out->chars[out->length - 1] != '[') tare__text_append(out, ", ");
    tare__text_append(out, "{\"name\": \"");
    tare__text_append_n(out, name, length);
    tare__text_append(out, "\", \"arg\": ");
}

static const value *keyword_of(const node *n, const signature_param *p) {
    for (size_t i = 0; i < n->kwarg_count; i++)
        if (strlen(n->kwargs[i].name) == p->length &&
            memcmp(n->kwargs[i].name, p->name, p->length) == 0)
            return &n->kwargs[i].value;
    return NULL;
}

// Writes arguments in the order of the signature, without those that were not given.
static tare_status write_arguments(const program_writer *w, const node *n, const signature *taken,
                                   text *out) {
    const pt2_scribe scribe = {w->given, out, w->err};
    size_t written = 0;
    signature_param p;
    for (size_t i = 0; tare__signature_param(taken, i, &p); i++) {
        const value *named = keyword_of(n, &p);
        const bool is_positional = named == NULL && !p.is_keyword_only && i < n->arg_count;
        if (named == NULL && !is_positional) continue;
        begin_argument(out, p.name, p.length);
        TARE_TRY(
            tare__pt2_write_argument(&scribe, n, named != NULL ? named : &n->args[i], p.list_of));
        tare__text_printf(out, ", \"kind\": %d}", is_positional ? 1 : 2);
        written++;
    }
    if (written == n->arg_count + n->kwarg_count) return TARE_OK;
    return tare__fail(w->err, TARE_UNSUPPORTED,
                      "node '%s': '%s' takes (%.*s), but this call has other arguments", n->name,
                      n->target, (int)taken->length, taken->params);
}

// Python's operators on sizes have only positional arguments.
static tare_status write_operands(const program_writer *w, const node *n, text *out) {
    const pt2_scribe scribe = {w->given, out, w->err};
    static const char names[] = "abcdefgh";
    if (n->kwarg_count > 0 || n->arg_count > strlen(names))
        return tare__fail(w->err, TARE_UNSUPPORTED, "node '%s': unexpected arguments of '%s'",
                          n->name, n->target);
    for (size_t i = 0; i < n->arg_count; i++) {
        begin_argument(out, &names[i], 1);
        TARE_TRY(tare__pt2_write_argument(&scribe, n, &n->args[i], 0));
        tare__text_append(out, ", \"kind\": 1}");
    }
    return TARE_OK;
}

// --- graphs as arguments ---

static tare_status write_branch(void *user, const node *reader, text *out) {
    const program_writer *w = user;
    const module *root = tare__module_find(w->root, reader->target);
    program_writer inner = {.is_branch = true, .root = root, .g = root->graph, .err = w->err};
    const tare_status status = tare__pt2_write_fields(&inner);
    if (status == TARE_OK) {
        tare__text_append(out, "{\"as_graph\": {\"name\": ");
        tare__text_json_string(out, reader->target);
        tare__text_append(out, ", \"graph\": ");
        tare__pt2_write_graph(&inner, out);
        tare__text_append(out, "}}");
    }
    tare__pt2_release_fields(&inner);
    return status == TARE_OK ? TARE_OK : tare__at(w->err, status, "%s", reader->target);
}

// Writes the arguments of a higher-order operator, which has no signature.
static tare_status write_flow_arguments(const program_writer *w, const node *n, text *out) {
    const pt2_scribe scribe = {w->given, out, w->err, write_branch, (void *)w};
    for (size_t i = 0; i < n->arg_count; i++) {
        begin_argument(out, "", 0);
        TARE_TRY(tare__pt2_write_argument(&scribe, n, &n->args[i], 0));
        tare__text_append(out, ", \"kind\": 1}");
    }
    for (size_t i = 0; i < n->kwarg_count; i++) {
        begin_argument(out, n->kwargs[i].name, strlen(n->kwargs[i].name));
        TARE_TRY(tare__pt2_write_argument(&scribe, n, &n->kwargs[i].value, 0));
        tare__text_append(out, ", \"kind\": 2}");
    }
    return TARE_OK;
}

// --- results ---

static bool is_item(const node *n) {
    return n->op == NODE_CALL_FUNCTION && strcmp(n->target, getitem) == 0 &&
           tare__node_arg(n, 0) != NULL && n->arg_count == 2 && n->args[1].kind == VALUE_INT;
}

// An item is named after the first getitem node that reads it.
static tare_status name_item(program_writer *w, const node *n, size_t item, pt2_given *out) {
    out->name = NULL;
    for (size_t i = 0; i < n->user_count; i++) {
        const node *user = n->users[i];
        if (is_item(user) && user->args[1].as.integer == (int64_t)item) {
            if (out->name == NULL) out->name = user->name;
            w->given[user->id] = *out;
        }
    }
    if (out->name == NULL)
        out->name = tare__arena_printf(&w->memory, "%s_unused_%zu", n->name, item);
    return out->name != NULL ? TARE_OK : tare__out_of_memory(w->err);
}

static tare_status write_items(program_writer *w, const node *n, size_t count, bool is_list,
                               text *out) {
    for (size_t i = 0; i < count; i++) {
        pt2_given item = {.kind = tare__pt2_sizes_kind(w->sizes, n, (int64_t)i, PT2_TENSOR)};
        if (item.kind != PT2_TENSOR)
            return tare__fail(w->err, TARE_UNSUPPORTED, "node '%s': result %zu is not a tensor",
                              n->name, i);
        TARE_TRY(name_item(w, n, i, &item));
        TARE_TRY(tare__pt2_note_value(w, n, (int64_t)i, item));
        if (i > 0) tare__text_append(out, ", ");
        if (!is_list) {
            tare__pt2_write_named(out, item);
            continue;
        }
        tare__text_append(out, "{\"name\": ");
        tare__text_json_string(out, item.name);
        tare__text_char(out, '}');
    }
    return TARE_OK;
}

static tare_status write_single(program_writer *w, const node *n, pt2_kind expected, text *out) {
    pt2_given *g = &w->given[n->id];
    *g = (pt2_given){n->name, tare__pt2_sizes_kind(w->sizes, n, -1, expected)};
    if (g->kind == PT2_SEVERAL || g->kind == PT2_NOTHING)
        return tare__fail(w->err, TARE_UNSUPPORTED,
                          "node '%s': '%s' gives one tensor in torch; with these arguments it "
                          "gives %s",
                          n->name, n->target, g->kind == PT2_SEVERAL ? "several" : "none");
    TARE_TRY(tare__pt2_note_value(w, n, -1, *g));
    tare__pt2_write_named(out, *g);
    return TARE_OK;
}

static tare_status write_results(program_writer *w, const node *n, const char *results, text *out) {
    if (*results == '\0') return TARE_OK;
    if (strcmp(results, "T[]") == 0) {
        const size_t count = tare__pt2_sizes_count(w->sizes, n);
        tare__text_append(out, "{\"as_tensors\": [");
        TARE_TRY(write_items(w, n, count, true, out));
        tare__text_append(out, "]}");
        return TARE_OK;
    }
    if (strchr(results, ' ') != NULL)
        return write_items(w, n, (strlen(results) + 1) / 2, false, out);
    return write_single(w, n,
                        *results == 'T'   ? PT2_TENSOR
                        : *results == 'f' ? PT2_FLOAT
                        : *results == 'b' ? PT2_BOOL
                                          : PT2_INT,
                        out);
}

// --- nodes ---

static bool is_flow(const char *target) {
    return tare__starts_with(target, "torch.ops.higher_order.") &&
           tare__op_function(target) != NULL;
}

static bool is_symbolic_function(const char *target) {
    return tare__starts_with(target, "operator.") || tare__starts_with(target, "math.") ||
           tare__starts_with(target, "torch.sym_");
}

static const char advice[] =
    "programs hold exported models, float or as quantize's stage `reference` leaves them";

static tare_status refuse(const program_writer *w, const node *n) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__module_find(w->root, n->target) : NULL;
    if (m == NULL) {
        tare__fail(w->err, TARE_UNSUPPORTED, "node '%s' calls %s'%s', whose signature is not known",
                   n->name, n->op == NODE_CALL_METHOD ? "the method " : "", n->target);
        return tare__hint(w->err, TARE_UNSUPPORTED, "%s", advice);
    }
    tare__fail(w->err, TARE_UNSUPPORTED,
               "node '%s' calls a %s: programs call operators, not modules", n->name,
               m->class->name);
    return tare__hint(w->err, TARE_UNSUPPORTED, "%s",
                      m->class->role == ROLE_OBSERVER ? "convert the prepared model first"
                                                      : advice);
}

static bool is_known(const char *target) {
    signature ignored;
    return tare__signature_of(target, &ignored) || is_symbolic_function(target) || is_flow(target);
}

tare_status tare__pt2_check_calls(const program_writer *w) {
    for (const node *n = w->g->first; n != NULL; n = n->next)
        if (tare__node_is_call(n) && !tare__pt2_is_guard(w, n) &&
            (n->op != NODE_CALL_FUNCTION || !is_known(n->target)))
            return refuse(w, n);
    return TARE_OK;
}

static tare_status write_call(program_writer *w, const node *n, text *out) {
    signature taken;
    if (tare__signature_of(n->target, &taken)) {
        TARE_TRY(write_arguments(w, n, &taken, out));
        tare__text_append(out, "], \"outputs\": [");
        return write_results(w, n, taken.results, out);
    }
    if (!is_flow(n->target)) {
        TARE_TRY(write_operands(w, n, out));
        tare__text_append(out, "], \"outputs\": [");
        return write_single(w, n, PT2_INT, out);
    }
    TARE_TRY(write_flow_arguments(w, n, out));
    tare__text_append(out, "], \"outputs\": [");
    if (tare__pt2_sizes_kind(w->sizes, n, -1, PT2_SEVERAL) == PT2_TENSOR)
        return write_single(w, n, PT2_TENSOR, out);
    return write_items(w, n, tare__pt2_sizes_count(w->sizes, n), false, out);
}

static const char *single_result(const program_writer *w, const node *n) {
    if (!is_flow(n->target)) return "null";
    return w->given[n->id].name != NULL ? "true" : "false";
}

static tare_status write_node(program_writer *w, const node *n) {
    text *out = &w->nodes;
    tare__pt2_separate(out);
    // Python's module of operators is called _operator there.
    tare__text_printf(out, "{\"target\": \"%s%s\", \"inputs\": [",
                      tare__starts_with(n->target, "operator.") ? "_" : "", n->target);
    TARE_TRY(write_call(w, n, out));
    tare__text_char(out, ']');
    TARE_TRY(write_metadata(tare__pt2_sizes_meta(w->sizes, n), n, out, w->err));
    tare__text_printf(out,
                      ", \"is_hop_single_tensor_return\": %s, \"name\": ", single_result(w, n));
    tare__text_json_string(out, n->name);
    tare__text_char(out, '}');
    return tare__text_status(out, w->err);
}

tare_status tare__pt2_write_nodes(program_writer *w) {
    for (const node *n = w->g->first; n != NULL; n = n->next) {
        if (!tare__node_is_call(n) || tare__pt2_is_guard(w, n) || tare__pt2_is_mutation(n))
            continue;
        if (is_item(n) && w->given[n->id].name != NULL) continue;
        if (strcmp(n->target, getitem) == 0)
            return tare__fail(w->err, TARE_UNSUPPORTED,
                              "node '%s' takes an item of a value that programs cannot index",
                              n->name);
        TARE_TRY(write_node(w, n));
    }
    return TARE_OK;
}
