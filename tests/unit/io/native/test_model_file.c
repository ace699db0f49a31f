// SPDX-License-Identifier: Apache-2.0
// Models in tare's own format come back whole; broken and damaged files are refused at their place.
#include "support/test.h"

#include "core/json/json.h"
#include "io/native/model_file.h"
#include "support/temp.h"

// --- a class with a state: it counts ---

static tare_status clone_counter(const void *state, void **out, tare_error *err) {
    int64_t *copy = tare__alloc(sizeof *copy);
    if (!copy) return tare__out_of_memory(err);
    *copy = *(const int64_t *)state;
    *out = copy;
    return TARE_OK;
}

static const module_class counter_class = {.name = "test.Counter",
                                           .print_name = "Counter",
                                           .role = ROLE_OBSERVER,
                                           .clone_state = clone_counter,
                                           .destroy_state = tare__free};

static tare_status save_counter(const module *m, map *tensors, tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__tensor_scalar_int(*(const int64_t *)m->state, &t, err));
    if (tare__map_set(tensors, "count", t)) return TARE_OK;
    tare_tensor_release(t);
    return tare__out_of_memory(err);
}

static tare_status load_counter(module *m, const map *tensors, tare_error *err) {
    const tare_tensor *t = tare__map_get(tensors, "count");
    if (!t || t->dtype != TARE_INT64 || t->count != 1)
        return tare__fail(err, TARE_MALFORMED_FILE, "a counter has a count");
    return clone_counter(t->data, &m->state, err);
}

static const model_state_io counter_io = {save_counter, load_counter};

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static module_class *user_classes[] = {(module_class *)&counter_class};
static const registry classes = {.tables = tables,
                                 .table_count = sizeof tables / sizeof *tables,
                                 .user = user_classes,
                                 .user_count = 1};

// --- models as JSON ---

#define HEAD                                                                                       \
    "\"format\": \"tare-graph\", \"version\": 1, \"class_name\": \"Net\", \"training\": false"
#define FC                                                                                         \
    "{\"path\": \"fc\", \"type\": \"torch.nn.Linear\", \"training\": true, \"config\": "           \
    "{\"in_features\": 3, \"out_features\": 2}, \"repr\": \"any\"}"
#define NAMES "\"parameters\": [\"fc.weight\", \"fc.bias\"], \"buffers\": [\"scale\"]"
#define X                                                                                          \
    "{\"name\": \"x\", \"op\": \"placeholder\", \"target\": \"x\", \"args\": [], \"kwargs\": {}}"
#define CALL                                                                                       \
    "{\"name\": \"fc\", \"op\": \"call_module\", \"target\": \"fc\", \"args\": "                   \
    "[{\"node\": \"x\"}], \"kwargs\": {}}"
#define OUT                                                                                        \
    "{\"name\": \"output\", \"op\": \"output\", \"target\": \"output\", \"args\": "                \
    "[{\"node\": \"fc\"}], \"kwargs\": {}}"
#define NODES "\"nodes\": [" X ", " CALL ", " OUT "]"
#define WHOLE "{" HEAD ", \"modules\": [" FC "], " NAMES ", " NODES ", \"codegen\": \"plain\"}"

static tare_tensor *new_tensor(tare_dtype dtype, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(dtype, ndim, shape, &t, NULL));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set(t, i, (double)(i + 1));
    return t;
}

static void add(safetensors *file, const char *name, tare_tensor *t) {
    assert_true(tare__map_set(&file->tensors, name, t));
}

// A file with this graph and the tensors of WHOLE.
static safetensors new_file(const char *model) {
    safetensors file = {0};
    file.header = json_pack("{s:{s:s}}", "__metadata__", "tare.graph", model);
    add(&file, "fc.weight", new_tensor(TARE_FLOAT32, 2, (int64_t[]){2, 3}));
    add(&file, "fc.bias", new_tensor(TARE_FLOAT32, 1, (int64_t[]){2}));
    add(&file, "scale", new_tensor(TARE_FLOAT32, 0, NULL));
    return file;
}

static module *read_file(safetensors *file, json_t **extra) {
    module *root = NULL;
    tare_error *err = tare_error_create();
    if (tare__model_from_file(file, &classes, &counter_io, &root, extra, err) != TARE_OK)
        fail_msg("%s: %s", tare_error_where(err), tare_error_message(err));
    tare_error_destroy(err);
    tare__safetensors_release(file);
    return root;
}

static void expect_file_refused(safetensors file, const char *where, const char *words) {
    module *root = NULL;
    tare_error *err = tare_error_create();
    const tare_status status =
        tare__model_from_file(&file, &classes, &counter_io, &root, NULL, err);
    assert_int_not_equal(status, TARE_OK);
    assert_int_not_equal(status, TARE_INTERNAL);
    assert_null(root);
    if (!strstr(tare_error_where(err), where) || !strstr(tare_error_message(err), words))
        fail_msg("'%s: %s' does not say '%s: %s'", tare_error_where(err), tare_error_message(err),
                 where, words);
    tare_error_destroy(err);
    tare__safetensors_release(&file);
}

static void expect_refused(const char *model, const char *where, const char *words) {
    expect_file_refused(new_file(model), where, words);
}

// WHOLE with the first `old` replaced.
static void expect_change_refused(const char *old, const char *with, const char *where,
                                  const char *words) {
    const char *at = strstr(WHOLE, old);
    assert_non_null(at);
    char model[8192];
    snprintf(model, sizeof model, "%.*s%s%s", (int)(at - (const char *)WHOLE), WHOLE, with,
             at + strlen(old));
    expect_refused(model, where, words);
}

static void modules_tensors_and_graph_are_read(void **state) {
    (void)state;
    safetensors file = new_file(WHOLE);
    module *root = read_file(&file, NULL);
    assert_ptr_equal(root->class, &tare__class_graph_module);
    assert_string_equal(tare__module_config(root, "class_name")->as.text, "Net");
    assert_false(root->training);
    module *fc = tare__module_find(root, "fc");
    assert_string_equal(fc->class->name, "torch.nn.Linear");
    assert_true(fc->training);
    assert_int_equal(tare__module_int(fc, "in_features", 0), 3);
    assert_int_equal(tare__module_tensor(fc, "weight")->shape[1], 3);
    assert_true(fc->tensors[0].is_parameter);
    assert_false(root->tensors[0].is_parameter);
    assert_int_equal(root->graph->node_count, 3);
    const node *call = tare__graph_find(root->graph, "fc");
    assert_int_equal(call->op, NODE_CALL_MODULE);
    assert_string_equal(tare__node_arg(call, 0)->name, "x");
    assert_int_equal(call->user_count, 1);
    tare__module_release(root);
}

static void every_kind_of_argument_comes_back(void **state) {
    (void)state;
    const char *args =
        "[null, true, 3, 3.0, 0.1, \"mean\", {\"float\": \"-inf\"}, [1, {\"tuple\": []}], "
        "{\"dict\": [[\"k\", {\"node\": \"x\"}]]}, {\"slice\": [null, 2, null]}, "
        "{\"ellipsis\": true}, {\"dtype\": \"torch.quint8\"}, "
        "{\"qscheme\": \"torch.per_tensor_affine\"}, {\"layout\": \"torch.strided\"}, "
        "{\"device\": \"cpu\"}, {\"scalar\": 1.0, \"dtype\": \"torch.float32\"}, "
        "{\"sym\": \"s0\"}, {\"type\": \"torch.nn.Linear\"}]";
    char model[4096];
    snprintf(
        model, sizeof model,
        "{" HEAD ", \"modules\": [" FC "], " NAMES ", \"nodes\": [" X
        ", {\"name\": \"f\", \"op\": \"call_method\", \"target\": \"f\", \"args\": %s, "
        "\"kwargs\": {\"k\": %s}, \"meta\": {\"val\": {\"shape\": [1, null], \"dtype\": "
        "\"torch.float32\"}, \"nn_module_stack\": [[\"a\", \"b.c\", \"test.M\"]]}}, "
        "{\"name\": \"output\", \"op\": \"output\", \"target\": \"output\", \"args\": [{\"node\": "
        "\"f\"}], \"kwargs\": {}, \"type\": \"int\"}], \"codegen\": {\"pytree\": {\"signature\": "
        "\"def f():\", \"flatten\": \"x, = y\"}}}",
        args, args);
    safetensors file = new_file(model);
    module *root = read_file(&file, NULL);
    const node *f = tare__graph_find(root->graph, "f");
    assert_int_equal(f->args[2].kind, VALUE_INT);
    assert_int_equal(f->args[3].kind, VALUE_FLOAT);
    assert_string_equal(f->scope_path, "b.c");
    assert_string_equal(f->scope_type, "test.M");
    assert_string_equal(root->graph->pytree_flatten, "x, = y");
    text json = {0};
    CHECK_OK(tare__model_to_json(root, NULL, NULL, &json, NULL));
    json_t *written = NULL, *given = NULL;
    CHECK_OK(tare__json_parse(json.chars, json.length, &written, NULL));
    CHECK_OK(tare__json_parse(model, strlen(model), &given, NULL));
    assert_true(json_equal(json_object_get(written, "nodes"), json_object_get(given, "nodes")));
    assert_true(json_equal(json_object_get(written, "codegen"), json_object_get(given, "codegen")));
    json_decref(written);
    json_decref(given);
    tare__text_release(&json);
    tare__module_release(root);
}

static void broken_models_are_refused_with_their_place(void **state) {
    (void)state;
    expect_refused("[", "tare.graph: line 1", "JSON");
    expect_refused("[]", "$", "expected an object");
    expect_change_refused("tare-graph", "onnx", "$", "'onnx' version 1");
    expect_change_refused("\"version\": 1", "\"version\": 2", "$", "version 2");
    expect_change_refused("\"codegen\"", "\"codgen\"", "$", "unknown key 'codgen'");
    expect_change_refused("\"plain\"", "\"fancy\"", "$.codegen", "unknown codegen");
    expect_change_refused("torch.nn.Linear", "torch.nn.Liner", "$.modules[0].type",
                          "unknown class 'torch.nn.Liner'");
    expect_change_refused("\"path\": \"fc\"", "\"path\": \"a.fc\"", "$.modules[0]",
                          "the parent of module 'a.fc', 'a', is not listed");
    expect_change_refused("\"path\": \"fc\"", "\"path\": \"\"", "$.modules[0]", "not a path");
    expect_change_refused("\"repr\"", "\"report\"", "$.modules[0]", "unknown key");
    expect_change_refused("\"any\"", "1", "$.modules[0].repr", "expected a string");
    expect_change_refused("\"in_features\": 3", "\"in_features\": {\"node\": \"x\"}",
                          "$.modules[0].config.in_features", "cannot stand here");
    expect_change_refused(FC, FC ", " FC, "$.modules[1]", "listed twice");
    expect_change_refused("\"fc.weight\"", "\"fc.wait\"", "$.parameters[0]", "no tensor 'fc.wait'");
    expect_change_refused("\"fc.weight\"", "\"fd.weight\"", "$.parameters[0]",
                          "belongs to no module");
    expect_change_refused("\"fc.weight\"", "\"fc.\"", "$.parameters[0]", "belongs to no module");
    expect_change_refused("\"scale\"", "\"fc.bias\"", "$.buffers[0]", "listed twice");
    expect_change_refused("[\"scale\"]", "[]", "tare.graph", "'scale' belongs to no module");
    expect_change_refused("call_module", "call", "$.nodes[1].op", "unknown op 'call'");
    expect_change_refused("\"target\": \"fc\"", "\"target\": \"fd\"", "$.nodes[1].target",
                          "calls module 'fd'");
    expect_change_refused("call_module\", \"target\": \"fc", "get_attr\", \"target\": \"fc.w",
                          "$.nodes[1].target", "reads 'fc.w'");
    expect_change_refused("{\"node\": \"x\"}", "{\"node\": \"y\"}", "$.nodes[1].args[0]",
                          "'y' is not defined before");
    expect_change_refused("{\"node\": \"x\"}", "{\"knot\": \"x\"}", "$.nodes[1].args[0]",
                          "of an unknown form");
    expect_change_refused("{\"node\": \"x\"}", "{\"node\": \"x\", \"a\": 1}", "$.nodes[1].args[0]",
                          "next to 'node'");
    expect_change_refused("\"name\": \"fc\"", "\"name\": \"x\"", "$.nodes[1]", "taken or reserved");
    expect_change_refused(OUT, OUT ", " OUT, "$.nodes", "");
    expect_change_refused(", " OUT, "", "$.nodes", "");
    expect_change_refused("\"codegen\"", "\"aliases\": {\"a\": \"fc.bias\"}, \"codegen\"",
                          "$.aliases", "neither a parameter nor a buffer");
    expect_change_refused("\"codegen\"", "\"aliases\": {\"fc.weight\": \"no\"}, \"codegen\"",
                          "$.aliases", "no tensor 'no'");
    expect_change_refused("\"codegen\"", "\"quantized\": {\"scale\": 1}, \"codegen\"",
                          "$.quantized.scale", "expected an object");
    expect_change_refused("\"codegen\"", "\"quantized\": {\"other\": {}}, \"codegen\"",
                          "$.quantized.other", "no parameter or buffer");
    expect_change_refused("\"repr\"", "\"state\": [\"a\"], \"repr\"", "$.modules[0].state",
                          "cannot have a state");
    expect_change_refused("\"repr\"", "\"graph\": {}, \"repr\"", "$.modules[0].graph",
                          "cannot have a graph");
    for (int i = 0; i < 9; i++) { // one broken form of each kind of argument
        static const char *const forms[] = {
            "{\"float\": \"one\"}",  "{\"slice\": [1]}",
            "{\"ellipsis\": false}", "{\"dtype\": \"f\"}",
            "{\"qscheme\": \"q\"}",  "{\"scalar\": \"1\", \"dtype\": \"int\"}",
            "{\"dict\": [[1]]}",     "{\"scalar\": 1}",
            "{\"device\": 1}"};
        expect_change_refused("{\"node\": \"x\"}", forms[i], "$.nodes[1].args[0]", "");
    }
}

// WHOLE with these aliases.
static void expect_aliases_refused(const char *aliases, const char *where, const char *words) {
    char with[512];
    snprintf(with, sizeof with, "\"aliases\": {%s}, \"codegen\"", aliases);
    expect_change_refused("\"codegen\"", with, where, words);
}

static void an_alias_names_a_tensor_that_is_no_alias(void **state) {
    (void)state;
    expect_aliases_refused("\"fc.bias\": \"fc.bias\"", "$.aliases[\"fc.bias\"]",
                           "'fc.bias' is an alias of itself");
    expect_aliases_refused("\"fc.bias\": \"scale\", \"scale\": \"fc.bias\"",
                           "$.aliases[\"fc.bias\"]",
                           "'fc.bias' is an alias of 'scale', which is an alias of 'fc.bias'");
    expect_aliases_refused("\"fc.bias\": \"scale\", \"scale\": \"fc.weight\"",
                           "$.aliases[\"fc.bias\"]",
                           "'fc.bias' is an alias of 'scale', which is an alias of 'fc.weight'");
    expect_aliases_refused("\"fc.bias\": 1", "$.aliases[\"fc.bias\"]", "expected a string");
}

static void an_alias_has_no_tensor_of_its_own(void **state) {
    (void)state;
    expect_aliases_refused("\"fc.bias\": \"scale\"", "$.aliases[\"fc.bias\"]",
                           "'fc.bias' is an alias of 'scale', but the file has a tensor 'fc.bias'");
    safetensors file = new_file("{" HEAD ", \"modules\": [" FC "], " NAMES ", " NODES
                                ", \"codegen\": \"plain\", \"aliases\": {\"scale\": \"fc.bias\"}}");
    tare_tensor_release(tare__safetensors_get(&file, "scale"));
    tare__map_remove(&file.tensors, "scale");
    add(&file, "scale.int_repr", new_tensor(TARE_INT8, 0, NULL));
    expect_file_refused(
        file, "$.aliases.scale",
        "'scale' is an alias of 'fc.bias', but the file has a tensor 'scale.int_repr'");
}

// It would be read, though no module has it.
static void an_alias_is_of_a_parameter_or_buffer(void **state) {
    (void)state;
    safetensors file = new_file("{" HEAD ", \"modules\": [" FC "], " NAMES ", " NODES
                                ", \"codegen\": \"plain\", \"aliases\": {\"scale\": \"other\"}}");
    tare_tensor_release(tare__safetensors_get(&file, "scale"));
    tare__map_remove(&file.tensors, "scale");
    add(&file, "other", new_tensor(TARE_FLOAT32, 0, NULL));
    expect_file_refused(file, "$.aliases.scale",
                        "'scale' is an alias of 'other', which is neither a parameter nor a "
                        "buffer");
}

static void a_file_without_graph_says_so(void **state) {
    (void)state;
    safetensors file = {.header = json_object()};
    expect_file_refused(file, "", "no graph");
}

static void near_class_names_are_suggested(void **state) {
    (void)state;
    safetensors file =
        new_file("{" HEAD ", \"modules\": [{\"path\": \"a\", \"type\": \"torch.nn.Linaer\", "
                 "\"training\": true, \"config\": {}}], " NAMES ", " NODES "}");
    module *root = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(tare__model_from_file(&file, &classes, NULL, &root, NULL, err),
                     TARE_MALFORMED_FILE);
    assert_non_null(strstr(tare_error_hint(err), "torch.nn.Linear"));
    tare_error_destroy(err);
    tare__safetensors_release(&file);
}

// --- what only our own files have ---

static void bind(module *parent, const char *name, module *child) {
    CHECK_OK(tare__module_set_child(parent, name, child, NULL));
    tare__module_release(child);
}

static module *new_module(const module_class *class) {
    module *m = NULL;
    CHECK_OK(tare__module_create(class, &m, NULL));
    return m;
}

static tare_tensor *new_quantized(tare_qscheme scheme, tare_dtype dtype, double zero_point) {
    const double scale[] = {0.1, 0.25, 3e-5}, zero_points[] = {zero_point, 0, zero_point};
    const bool is_per_channel = tare__qscheme_is_per_channel(scheme);
    qparams *q = tare__qparams_create(scheme, dtype, is_per_channel ? 1 : 0, is_per_channel ? 3 : 1,
                                      scale, zero_points);
    tare_tensor *t = NULL;
    assert_non_null(q);
    CHECK_OK(tare__tensor_quantized(2, (int64_t[]){2, 3}, q, &t, NULL));
    for (int64_t i = 0; i < 6; i++) tare__tensor_set(t, i, (double)(i * 9));
    tare__qparams_release(q);
    return t;
}

static void give(module *m, const char *name, tare_tensor *t) {
    CHECK_OK(tare__module_set_tensor(m, name, t, false, NULL));
    tare_tensor_release(t);
}

// A graph in a graph, a shared counter, quantized tensors, a tensor under two names.
static module *new_rich_model(void) {
    safetensors file = new_file(WHOLE);
    module *root = read_file(&file, NULL), *inner = NULL;
    CHECK_OK(tare__module_clone(root, &inner, NULL));
    bind(root, "inner", inner);
    module *counter = new_module(&counter_class);
    CHECK_OK(clone_counter(&(int64_t){41}, &counter->state, NULL));
    CHECK_OK(tare__module_set_child(root, "again", counter, NULL));
    bind(root, "counter", counter);
    give(root, "per_tensor", new_quantized(TARE_PER_TENSOR_AFFINE, TARE_QUINT8, 7));
    give(root, "per_channel", new_quantized(TARE_PER_CHANNEL_SYMMETRIC, TARE_QINT8, 0));
    tare_tensor *floats = new_quantized(TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS, TARE_QUINT4X2, 0.5);
    CHECK_OK(tare__module_set_tensor(inner, "same", floats, true, NULL));
    give(root, "floats", floats);
    return root;
}

static text to_json(const module *root) {
    text json = {0};
    CHECK_OK(tare__model_to_json(root, &counter_io, NULL, &json, NULL));
    return json;
}

static void rich_models_come_back(void **state) {
    (void)state;
    const char *path = temp_path("rich.safetensors");
    module *root = new_rich_model(), *back = NULL;
    json_t *extra = json_pack("{s:[i,f,n]}", "decisions", 1, 0.1), *extra_back = NULL;
    CHECK_OK(tare__model_file_write(path, root, &counter_io, extra, NULL));
    CHECK_OK(tare__model_file_read(path, &classes, &counter_io, &back, &extra_back, NULL));
    text was = to_json(root), is = to_json(back);
    assert_string_equal(was.chars, is.chars);
    assert_true(json_equal(extra, extra_back));
    const module *counter = tare__module_child(back, "counter");
    assert_ptr_equal(counter, tare__module_child(back, "again"));
    assert_int_equal(*(const int64_t *)counter->state, 41);
    assert_non_null(tare__module_child(back, "inner")->graph);
    static const char *const names[] = {"per_tensor", "per_channel", "floats"};
    for (size_t i = 0; i < 3; i++) {
        const tare_tensor *a = tare__module_tensor(root, names[i]);
        const tare_tensor *b = tare__module_tensor(back, names[i]);
        assert_true(tare__qparams_equal(a->q, b->q));
        assert_memory_equal(a->data, b->data, tare__tensor_bytes(a));
    }
    assert_ptr_equal(tare__module_tensor(back, "floats"),
                     tare__module_find_tensor(back, "inner.same"));
    tare__text_release(&was);
    tare__text_release(&is);
    json_decref(extra);
    json_decref(extra_back);
    tare__module_release(root);
    tare__module_release(back);
}

static void states_need_somebody_who_knows_them(void **state) {
    (void)state;
    const char *path = temp_path("state.safetensors");
    module *root = new_rich_model(), *back = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(tare__model_file_write(path, root, NULL, NULL, err), TARE_INVALID_ARGUMENT);
    CHECK_OK(tare__model_file_write(path, root, &counter_io, NULL, NULL));
    assert_int_equal(tare__model_file_read(path, &classes, NULL, &back, NULL, err),
                     TARE_MALFORMED_FILE);
    assert_non_null(strstr(tare_error_message(err), "state"));
    assert_non_null(strstr(tare_error_where(err), path));
    tare_error_destroy(err);
    tare__module_release(root);
}

#define MODULE(path, type)                                                                         \
    "{\"path\": \"" path "\", \"type\": \"" type "\", \"training\": true, \"config\": {}}"
#define SAME(path, first) "{\"path\": \"" path "\", \"same_as\": \"" first "\"}"
#define IDENTITY          "torch.nn.Identity"
#define SHARING(modules)  "{" HEAD ", \"modules\": [" FC ", " modules "], " NAMES ", " NODES "}"

static void sharing_makes_neither_circles_nor_mountains(void **state) {
    (void)state;
    expect_refused(SHARING(MODULE("a", "torch.nn.Module") ", " SAME("a.b", "a")), "$.modules[2]",
                   "contains too many modules");
    expect_refused(SHARING(SAME("a", "b")), "$.modules[1]", "not listed before");
    expect_refused(SHARING(SAME("a", "")), "$.modules[1]", "not listed before");
    expect_refused(
        SHARING(MODULE("a", "torch.nn.Module") ", " MODULE("a.b", "torch.nn.Module") ", " MODULE(
            "a.b.c", IDENTITY) ", " SAME("d", "a")),
        "$.modules[4]", "contains too many modules");
    expect_refused(
        SHARING(MODULE("a", "torch.nn.Module") ", " SAME("b", "a") ", " MODULE("b.c", IDENTITY)),
        "$.modules[3]", "is a shared module");
    // The parent is the first module's own child.
    expect_refused(SHARING(MODULE("a", "torch.nn.Module") ", " MODULE(
                       "a.b", "torch.nn.Module") ", " SAME("a.b.c", "a")),
                   "$.modules[3]", "contains too many modules");
}

static void paths_are_not_endless(void **state) {
    (void)state;
    char model[32768] = "{" HEAD ", \"modules\": [", path[256] = "";
    for (int i = 0; i < 65; i++) {
        char entry[512];
        strcat(path, i ? ".a" : "a");
        snprintf(entry, sizeof entry,
                 "%s{\"path\": \"%s\", \"type\": \"torch.nn.Module\", \"training\": true, "
                 "\"config\": {}}",
                 i ? ", " : "", path);
        strcat(model, entry);
    }
    strcat(model, "], " NAMES ", " NODES "}");
    expect_refused(model, "$.modules[64]", "not a path of at most 64 names");
}

static void quantized_parts_must_fit(void **state) {
    (void)state;
#define QUANTIZED(description)                                                                     \
    "{" HEAD ", \"modules\": [" FC "], " NAMES ", \"quantized\": {\"scale\": " description         \
    "}, " NODES "}"
    static const struct {
        const char *model, *words;
    } rows[] = {
        {QUANTIZED("{\"dtype\": \"torch.float\", \"qscheme\": \"torch.per_tensor_affine\"}"),
         "not a quantized dtype"},
        {QUANTIZED("{\"dtype\": \"torch.qint8\", \"qscheme\": \"q\"}"), "unknown qscheme"},
        {QUANTIZED("{\"dtype\": \"torch.quint8\", \"qscheme\": \"torch.per_tensor_affine\"}"),
         "of torch.int8, expected torch.uint8"},
        {QUANTIZED("{\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_channel_affine\", "
                   "\"axis\": 2}"),
         "axis 2"},
        {QUANTIZED("{\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_channel_affine\", "
                   "\"axis\": 0}"),
         "needs 4 scales"},
        {QUANTIZED(
             "{\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_affine\", \"axis\": 1}"),
         "no axis"},
        {QUANTIZED("{\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_affine\", "
                   "\"quant_min\": -200}"),
         "not a range"},
        {QUANTIZED("{\"dtype\": \"torch.qint8\", \"qscheme\": "
                   "\"torch.per_channel_affine_float_qparams\"}"),
         "expected torch.float64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        safetensors file = new_file(rows[i].model);
        add(&file, "scale.int_repr", new_tensor(TARE_INT8, 1, (int64_t[]){4}));
        add(&file, "scale.scale", new_tensor(TARE_FLOAT64, 1, (int64_t[]){1}));
        add(&file, "scale.zero_point", new_tensor(TARE_INT64, 1, (int64_t[]){1}));
        expect_file_refused(file, "$.quantized.scale", rows[i].words);
    }
    const char *plain =
        QUANTIZED("{\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_affine\"}");
    expect_refused(plain, "$.quantized.scale", "no tensor 'scale.int_repr'");
    safetensors file = new_file(plain);
    add(&file, "scale.int_repr", new_tensor(TARE_INT8, 1, (int64_t[]){4}));
    add(&file, "scale.scale", new_tensor(TARE_FLOAT64, 1, (int64_t[]){1}));
    add(&file, "scale.zero_point", new_tensor(TARE_INT64, 1, (int64_t[]){1}));
    tare__tensor_set(tare__safetensors_get(&file, "scale.scale"), 0, -1);
    expect_file_refused(file, "$.quantized.scale", "is not a scale");
    file = new_file(plain);
    add(&file, "scale.int_repr", new_tensor(TARE_INT8, 1, (int64_t[]){4}));
    add(&file, "scale.scale", new_tensor(TARE_FLOAT64, 1, (int64_t[]){1}));
    add(&file, "scale.zero_point", new_tensor(TARE_INT64, 1, (int64_t[]){1}));
    tare__tensor_set(tare__safetensors_get(&file, "scale.zero_point"), 0, 128);
    expect_file_refused(file, "$.quantized.scale", "zero point 128");
}

// Any bit of the header or the graph flipped: an error or a model, never more.
static void damaged_files_do_no_harm(void **state) {
    (void)state;
    const char *path = temp_path("damaged.safetensors");
    module *root = new_rich_model();
    CHECK_OK(tare__model_file_write(path, root, &counter_io, NULL, NULL));
    tare__module_release(root);
    size_t size = 0;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t i = 0; i < size; i++) {
        const unsigned char was = bytes[i];
        bytes[i] ^= (unsigned char)(1u << i % 8);
        storage *store = tare__storage_adopt(bytes, size, NULL, NULL);
        safetensors file = {0};
        module *back = NULL;
        tare_status status = tare__safetensors_parse(store, bytes, size, &file, NULL);
        if (status == TARE_OK)
            status = tare__model_from_file(&file, &classes, &counter_io, &back, NULL, NULL);
        assert_int_not_equal(status, TARE_INTERNAL);
        tare__module_release(back);
        tare__safetensors_release(&file);
        tare__storage_release(store);
        bytes[i] = was;
    }
    free(bytes);
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    const char *path = temp_path("memory.safetensors");
    module *root = new_rich_model(), *back = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status,
                           status = tare__model_file_write(path, root, &counter_io, NULL, NULL), )
    EVERY_ALLOCATION_FAILS(
        status, status = tare__model_file_read(path, &classes, &counter_io, &back, NULL, NULL),
        tare__module_release(back))
    tare__module_release(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_tensors_and_graph_are_read),
        cmocka_unit_test(every_kind_of_argument_comes_back),
        cmocka_unit_test(broken_models_are_refused_with_their_place),
        cmocka_unit_test(an_alias_names_a_tensor_that_is_no_alias),
        cmocka_unit_test(an_alias_has_no_tensor_of_its_own),
        cmocka_unit_test(an_alias_is_of_a_parameter_or_buffer),
        cmocka_unit_test(a_file_without_graph_says_so),
        cmocka_unit_test(near_class_names_are_suggested),
        cmocka_unit_test(rich_models_come_back),
        cmocka_unit_test(states_need_somebody_who_knows_them),
        cmocka_unit_test(sharing_makes_neither_circles_nor_mountains),
        cmocka_unit_test(paths_are_not_endless),
        cmocka_unit_test(quantized_parts_must_fit),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
