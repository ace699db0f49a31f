// SPDX-License-Identifier: Apache-2.0
// Every recorded float model prints as torch prints it, and the text reads back as the same graph.
// Data: tests/data/float_text.tar.gz, made by tests/data/pack.py from cases recorded with
// PyTorch 2.15.
#include "support/test.h"

#include <zlib.h>

#include "io/native/model_file.h"
#include "ops/classes/classes.h"
#include "ops/text/print.h"

static const class_table *const tables[] = {OPS_CLASS_TABLES};
static const registry classes = {.tables = tables, .table_count = sizeof tables / sizeof *tables};

enum { TAR_BLOCK = 512, FEWEST_CASES = 300 };

typedef struct member {
    char name[101];
    unsigned char *bytes; // NUL-terminated
    size_t size;
} member;

static void read_exactly(gzFile file, void *out, size_t size) {
    assert_int_equal(gzread(file, out, (unsigned)size), (int)size);
}

// The next file of a tar archive; false at its end.
static bool next_member(gzFile archive, member *out) {
    char header[TAR_BLOCK];
    read_exactly(archive, header, sizeof header);
    if (header[0] == '\0') return false;
    memcpy(out->name, header, 100);
    out->name[100] = '\0';
    out->size = strtoul(header + 124, NULL, 8);
    const size_t padded = (out->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    out->bytes = malloc(padded + 1);
    assert_non_null(out->bytes);
    read_exactly(archive, out->bytes, padded);
    out->bytes[out->size] = '\0';
    return true;
}

// Nodes of two graphs correspond by name.
static bool same_value(const value *a, const value *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == VALUE_NODE) return strcmp(a->as.node->name, b->as.node->name) == 0;
    if (!tare__value_has_items(a)) return tare__value_equal(a, b);
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = same_value(&a->as.items[i], &b->as.items[i]);
    return same;
}

static void check_node(const char *name, const node *a, const node *b) {
    if (strcmp(a->name, b->name) != 0) fail_msg("%s: '%s' became '%s'", name, a->name, b->name);
    assert_int_equal(a->op, b->op);
    assert_string_equal(a->target, b->target);
    assert_int_equal(a->arg_count, b->arg_count);
    assert_int_equal(a->kwarg_count, b->kwarg_count);
    for (size_t i = 0; i < a->arg_count; i++)
        if (!same_value(&a->args[i], &b->args[i]))
            fail_msg("%s: argument %zu of '%s' changed", name, i, a->name);
    for (size_t i = 0; i < a->kwarg_count; i++) {
        assert_string_equal(a->kwargs[i].name, b->kwargs[i].name);
        if (!same_value(&a->kwargs[i].value, &b->kwargs[i].value))
            fail_msg("%s: argument %s of '%s' changed", name, a->kwargs[i].name, a->name);
    }
}

static void check_parsed(const char *name, const module *model, const char *expected) {
    graph *parsed = NULL;
    tare_error *err = tare_error_create();
    if (tare__parse_code(expected, strlen(expected), model, &parsed, err) != TARE_OK)
        fail_msg("%s: %s: %s", name, tare_error_where(err), tare_error_message(err));
    assert_int_equal(parsed->node_count, model->graph->node_count);
    const node *b = parsed->first;
    for (const node *a = model->graph->first; a; a = a->next, b = b->next) check_node(name, a, b);
    tare__graph_destroy(parsed);
    tare_error_destroy(err);
}

static module *read_model(const member *file) {
    safetensors tensors = {0};
    module *model = NULL;
    tare_error *err = tare_error_create();
    storage *store = tare__storage_adopt(file->bytes, file->size, NULL, NULL);
    assert_non_null(store);
    tare_status status = tare__safetensors_parse(store, file->bytes, file->size, &tensors, err);
    if (status == TARE_OK)
        status = tare__model_from_file(&tensors, &classes, NULL, &model, NULL, err);
    if (status != TARE_OK)
        fail_msg("%s: %s: %s", file->name, tare_error_where(err), tare_error_message(err));
    tare__safetensors_release(&tensors);
    tare__storage_release(store);
    tare_error_destroy(err);
    return model;
}

static void check_case(const member *file, const member *expected) {
    module *model = read_model(file);
    text printed = {0};
    CHECK_OK(tare__print_model(model, &printed, NULL));
    if (strcmp(tare__text_chars(&printed), (const char *)expected->bytes) != 0) {
        print_error("%s: expected\n%s\n", expected->name, (const char *)expected->bytes);
        fail_msg("printed\n%s", tare__text_chars(&printed));
    }
    check_parsed(expected->name, model, (const char *)expected->bytes);
    tare__text_release(&printed);
    tare__module_release(model);
}

static void recorded_models_print_and_read_back(void **state) {
    (void)state;
    char path[1024];
    const char *source = getenv("TARE_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/data/float_text.tar.gz", source ? source : ".");
    gzFile archive = gzopen(path, "rb");
    assert_non_null(archive);
    int case_count = 0;
    for (member file, expected; next_member(archive, &file); case_count++) {
        assert_true(next_member(archive, &expected));
        check_case(&file, &expected);
        free(file.bytes);
        free(expected.bytes);
    }
    assert_true(case_count >= FEWEST_CASES);
    gzclose(archive);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_models_print_and_read_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
