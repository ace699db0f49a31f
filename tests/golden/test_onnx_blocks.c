// SPDX-License-Identifier: Apache-2.0
// Small networks as both of torch's ONNX exporters write them: the same module paths, qconfigs,
// decisions and integers as our own format of the network, its batch norms folded as the exporter
// folds them. Data: tests/data/onnx_blocks.zip, written by tools/record_onnx_blocks.py.
#include "support/test.h"

#ifdef TARE_HAVE_ONNX

#include <stdlib.h>

#include "core/json/json.h"
#include "io/native/safetensors.h"
#include "model/model.h"
#include "replay/zip_memory.h"
#include "support/models.h"
#include "support/temp.h"

enum { MOST_MEMBER = 1 << 20, MOST_ROWS = 256, BATCHES = 3 };

static const char *const blocks[] = {
    "tutorial", "lenet",       "tiny_resnet",   "inverted_residual", "inception",
    "unet",     "text_tagger", "lstm",          "functional",        "add_mul_chain",
    "conv1d",   "linear_bn",   "shared_module", "norm_mix",          "activations"};
static const char *const exporters[] = {"torchscript", "dynamo"};
static const int opsets[] = {13, 17, 18};
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// What a file cannot say: how a function was called, or another module that computes the same.
static const struct {
    const char *block, *file; // the beginning of the files' names
    const char *name, *operator;
    const char *name_in_file, *operator_in_file;
} spellings[] = {
    // Clip outside of a module is a clamp or a hardtanh; dynamo alone says which.
    {"functional", "torchscript", "hardtanh", "torch.nn.functional.hardtanh", "clamp",
     "torch.clamp"},
    // Methods, and torch.relu beside torch.nn.functional.relu.
    {"functional", "", "sigmoid", "sigmoid", "sigmoid", "torch.sigmoid"},
    {"add_mul_chain", "", "clamp", "clamp", "clamp", "torch.clamp"},
    {"add_mul_chain", "", "relu", "torch.relu", "relu", "torch.nn.functional.relu"},
    {"add_mul_chain", "", "relu_1", "torch.relu", "relu_1", "torch.nn.functional.relu"},
    // Written as the pooling that it comes to for the sizes at hand.
    {"activations", "torchscript", "pool", "torch.nn.AdaptiveAvgPool2d", "pool",
     "torch.nn.AvgPool2d"},
    // Without scopes, and with parameters that the exporter computed.
    {"lstm", "dynamo_17", "lstm", "torch.nn.LSTM", "node_lstm__2", "torch.nn.LSTM"},
    {"norm_mix", "dynamo_17", "g", "torch.nn.GroupNorm", "group_norm", "torch.nn.GroupNorm"},
};
static bool spelling_used[COUNT_OF(spellings)];

// Without scopes nn.Flatten is torch.flatten, which the backend knows; so integers differ.
static bool has_other_integers(const char *block, const char *file) {
    return strcmp(block, "activations") == 0 && strcmp(file, "dynamo_17") == 0;
}

// --- the archive ---

// The member's path in the temporary folder.
static const char *extracted(const char *block, const char *file) {
    static unsigned char bytes[MOST_MEMBER];
    static unsigned char *archive;
    static size_t archive_size;
    char member[128];
    if (archive == NULL) archive = temp_read("tests/data/onnx_blocks.zip", &archive_size);
    zip_memory memory = {.data = archive, .size = archive_size};
    unzFile zip = unzip_open(&memory);
    assert_non_null(zip);
    snprintf(member, sizeof member, "%s/%s", block, file);
    if (unzLocateFile(zip, member, 1) != UNZ_OK) fail_msg("no member %s", member);
    assert_int_equal(unzOpenCurrentFile(zip), UNZ_OK);
    const int size = unzReadCurrentFile(zip, bytes, sizeof bytes);
    assert_in_range(size, 1, MOST_MEMBER - 1);
    assert_int_equal(unzCloseCurrentFile(zip), UNZ_OK);
    (void)unzClose(zip);
    const char *path = temp_path(file);
    temp_write(path, bytes, (size_t)size);
    return path;
}

// --- what is compared: a text per row ---

typedef struct rows {
    char *items[MOST_ROWS];
    size_t count;
    const tare_model *model;  // float
    const char *block, *file; // of our own format: the file to compare with; else NULL
    bool only_parameters;     // the file has no scopes: modules without parameters are functions
} rows;

static const node *find_node(const tare_model *model, const char *name) {
    const node *n = model->root->graph->first;
    while (n != NULL && strcmp(n->name, name) != 0) n = n->next;
    return n;
}

static bool is_compared(const rows *r, const char *name) {
    if (!r->only_parameters) return true;
    const node *n = find_node(r->model, name);
    return n != NULL && n->op == NODE_CALL_MODULE &&
           tare__module_find(r->model->root, n->target)->tensor_count > 0;
}

// "kind name operator more", as the file spells it.
static void add_row(rows *r, const char *kind, const char *name, const char *operator,
                    const char * more) {
    char line[600];
    for (size_t i = 0; r->file != NULL && i < COUNT_OF(spellings); i++) {
        if (strcmp(spellings[i].block, r->block) != 0 || strcmp(spellings[i].name, name) != 0 ||
            strncmp(spellings[i].file, r->file, strlen(spellings[i].file)) != 0)
            continue;
        spelling_used[i] = true;
        name = spellings[i].name_in_file;
        if (strcmp(operator, spellings[i].operator) == 0) operator= spellings[i].operator_in_file;
        break;
    }
    const int length = snprintf(line, sizeof line, "%s %s %s %s", kind, name, operator, more);
    assert_in_range(length, 1, sizeof line - 1);
    assert_true(r->count < MOST_ROWS);
    r->items[r->count++] = strdup(line);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_modules(rows *r) {
    for (const node *n = r->model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_CALL_MODULE && is_compared(r, n->name))
            add_row(r, "module", n->target,
                    tare__module_find(r->model->root, n->target)->class->name, "");
}

static void add_facts(rows *r, const tare_model *prepared) {
    const fact_table *t = &prepared->facts.tables[FACT_NODE];
    char count[32];
    for (size_t i = 0; i < t->count; i++) {
        const char *const *c = t->rows[i].columns;
        if (is_compared(r, c[NODE_NAME]))
            add_row(r, "node", c[NODE_NAME], c[NODE_OPERATOR], c[NODE_QCONFIG]);
    }
    snprintf(count, sizeof count, "%zu", t->count);
    add_row(r, "calls", count, "", "");
}

static void add_decisions(rows *r, const tare_model *model) {
    for (size_t i = 0; i < tare_model_decision_count(model); i++) {
        tare_decision d = {.struct_size = sizeof d};
        CHECK_DONE(tare_model_decision_at(model, i, &d, job_error()));
        if (is_compared(r, d.node)) add_row(r, d.pass, d.node, d.subject, d.decision);
    }
}

// --- the flow ---

typedef struct result {
    rows rows;
    tare_tensor *outputs[1 + BATCHES]; // of the integer model
} result;

static const tare_tensor *stored(const safetensors *data, int i) {
    char name[32] = "input";
    if (i > 0) snprintf(name, sizeof name, "batch.%d", i - 1);
    const tare_tensor *t = tare__safetensors_get(data, name);
    assert_non_null(t);
    return t;
}

static tare_tensor *run(const tare_model *model, const tare_tensor *input) {
    tare_tensor *out = NULL;
    tare_session *session = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, &input, 1, &out, 1, &count, job_error()));
    tare_session_destroy(session);
    return out;
}

static result quantized(const char *path, const safetensors *data, rows about) {
    result made = {.rows = about};
    tare_model *model = NULL;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    tare_model *p = prepared(model, backend, mapping);
    for (int i = 0; i < BATCHES; i++) {
        const tare_tensor *batch = stored(data, 1 + i);
        CHECK_DONE(tare_calibrate(p, &batch, 1, job_error()));
    }
    tare_model *q = lowered(p, backend);
    made.rows.model = model;
    add_modules(&made.rows);
    add_facts(&made.rows, p);
    add_decisions(&made.rows, q);
    qsort(made.rows.items, made.rows.count, sizeof *made.rows.items, by_text);
    for (int i = 0; i < 1 + BATCHES; i++) made.outputs[i] = run(q, stored(data, i));
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return made;
}

static void release(result *r) {
    for (size_t i = 0; i < r->rows.count; i++) free(r->rows.items[i]);
    for (int i = 0; i < 1 + BATCHES; i++) tare_tensor_release(r->outputs[i]);
}

// --- comparing ---

static size_t print_differences(const char *block, const char *file, const rows *a, const rows *b) {
    size_t i = 0, k = 0, count = 0;
    while (i < a->count || k < b->count) {
        const int order = i == a->count ? 1 : k == b->count ? -1 : strcmp(a->items[i], b->items[k]);
        if (order < 0) print_message("%s/%s lacks: %s\n", block, file, a->items[i]);
        if (order > 0) print_message("%s/%s has: %s\n", block, file, b->items[k]);
        count += order != 0;
        i += order <= 0;
        k += order >= 0;
    }
    return count;
}

// torch's own output, in float.
static void check_float(const char *path, const safetensors *data) {
    tare_model *model = NULL;
    const tare_tensor *expected = tare__safetensors_get(data, "output");
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    tare_tensor *found = run(model, stored(data, 0));
    assert_non_null(expected);
    assert_int_equal(found->count, expected->count);
    for (int64_t i = 0; i < found->count; i++)
        assert_float_equal(tare__f32(found)[i], tare__f32(expected)[i], 1e-4);
    tare_tensor_release(found);
    tare_model_destroy(model);
}

static void check_file(const char *block, const char *exporter, const char *file, bool is_scoped,
                       const safetensors *data) {
    char member[64];
    snprintf(member, sizeof member, "%s.safetensors", exporter);
    const rows about = {.block = block, .file = file, .only_parameters = !is_scoped};
    result ours = quantized(extracted(block, member), data, about);
    snprintf(member, sizeof member, "%s.onnx", file);
    const char *path = extracted(block, member);
    result theirs = quantized(path, data, (rows){.only_parameters = !is_scoped});
    if (print_differences(block, file, &ours.rows, &theirs.rows) > 0)
        fail_msg("%s/%s: not the same modules, qconfigs and decisions", block, file);
    for (int i = 0; i < 1 + BATCHES && !has_other_integers(block, file); i++)
        check_same_tensor(ours.outputs[i], theirs.outputs[i]);
    check_float(path, data);
    release(&ours);
    release(&theirs);
}

static json_t *read_case(const char *block) {
    size_t size = 0;
    json_t *files = NULL;
    unsigned char *bytes = temp_read(extracted(block, "case.json"), &size);
    CHECK_DONE(tare__json_parse((const char *)bytes, size, &files, job_error()));
    free(bytes);
    return files;
}

static void check_block(void **state) {
    const char *block = *state;
    safetensors data;
    CHECK_DONE(tare__safetensors_read(extracted(block, "data.safetensors"), &data, job_error()));
    json_t *files = read_case(block);
    for (size_t e = 0; e < COUNT_OF(exporters); e++)
        for (size_t o = 0; o < COUNT_OF(opsets); o++) {
            char file[32];
            snprintf(file, sizeof file, "%s_%d", exporters[e], opsets[o]);
            const json_t *entry = json_object_get(files, file);
            assert_non_null(entry);
            const json_int_t scoped = json_integer_value(json_object_get(entry, "scoped"));
            check_file(block, exporters[e], file, scoped > 0, &data);
        }
    json_decref(files);
    tare__safetensors_release(&data);
}

static void every_exception_is_needed(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(spellings); i++) assert_true(spelling_used[i]);
}

int main(void) {
    struct CMUnitTest tests[COUNT_OF(blocks) + 1];
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        tests[i] = (struct CMUnitTest){
            .name = blocks[i], .test_func = check_block, .initial_state = (void *)blocks[i]};
    tests[COUNT_OF(blocks)] = (struct CMUnitTest)cmocka_unit_test(every_exception_is_needed);
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}

#else

int main(void) {
    return skip_tests("this build reads no ONNX");
}

#endif
