// SPDX-License-Identifier: Apache-2.0
// A prepared program that was written and read again is the same: it converts to the same bytes,
// and its annotations say the same. One that is prepared for training leaves for torch as a
// program of operators, and comes back as what converts alike. Its record tells every call and edge
// once. Data:
// tests/data/exported.zip; other recorded cases may be named on the command line.
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "ir/argument_paths.h"
#include "model/pass.h"
#include "replay/pt2e.h"
#include "replay/run.h"
#include "support/models.h"
#include "support/temp.h"

static const char *places[64] = {"tests/data/exported.zip"};
static size_t place_count = 1;

typedef struct flow {
    const recorded_case *c;
    tare_context *context; // knows the rules that recorded specs derive by
    tare_model *prepared;
    size_t checked, refused, trained;
} flow;

static tare_status calibrate(const recorded_case *c, tare_model *prepared, tare_error *err) {
    arena memory = {0};
    value *inputs = NULL;
    const tare_tensor **tensors = NULL;
    size_t count = 0;
    tare_status status = replay_inputs(c, &memory, &inputs, &count, err);
    if (status == TARE_OK) status = replay_tensors(inputs, count, &memory, &tensors, err);
    if (status == TARE_OK && tensors != NULL)
        status = tare_calibrate(prepared, tensors, count, err);
    tare__arena_release(&memory);
    return status;
}

static unsigned char *converted_bytes(const tare_model *prepared, size_t *size) {
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    tare_model *converted = NULL;
    CHECK_DONE(tare_convert_pt2e(prepared, &lenient, &converted, job_error()));
    check_explained(converted);
    CHECK_DONE(tare_model_write(converted, temp_path("converted.safetensors"), job_error()));
    tare_model_destroy(converted);
    return temp_read(temp_path("converted.safetensors"), size);
}

static void check_same_annotations(const tare_model *a, const tare_model *b) {
    char *x = NULL, *y = NULL;
    CHECK_DONE(tare_model_annotations_to_json(a, &x, job_error()));
    CHECK_DONE(tare_model_annotations_to_json(b, &y, job_error()));
    assert_string_equal(x, y);
    tare_string_free(x);
    tare_string_free(y);
}

// Module stacks, sources, and shapes with their symbolic sizes; nodes that a pass made have none.
static void check_same_metas(const tare_model *a, const tare_model *b) {
    const node *m = b->root->graph->first;
    for (const node *n = a->root->graph->first; n != NULL; n = n->next, m = m->next) {
        assert_non_null(m);
        assert_string_equal(n->scope_path, m->scope_path);
        if (n->meta_json != NULL) assert_string_equal(n->meta_json, m->meta_json);
    }
    assert_null(m);
}

// --- the record: every call and every edge between them once ---

static tare_status count_edge(void *user, node *arg, const char *place) {
    (void)arg, (void)place;
    ++*(size_t *)user;
    return TARE_OK;
}

static size_t rows_of(const fact_table *t, const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++) count += strcmp(t->rows[i].columns[NODE_NAME], name) == 0;
    return count;
}

static bool is_same_edge(const fact *a, const fact *b) {
    return strcmp(a->columns[EDGE_FROM], b->columns[EDGE_FROM]) == 0 &&
           strcmp(a->columns[EDGE_TO], b->columns[EDGE_TO]) == 0 &&
           strcmp(a->columns[EDGE_ARGUMENT], b->columns[EDGE_ARGUMENT]) == 0;
}

static void check_facts(const tare_model *prepared) {
    const fact_table *nodes = &prepared->facts.tables[FACT_NODE];
    const fact_table *edges = &prepared->facts.tables[FACT_EDGE];
    size_t call_count = 0, edge_count = 0;
    for (const node *n = prepared->root->graph->first; n != NULL; n = n->next) {
        if (tare__is_observer_node(prepared, n)) continue;
        CHECK_DONE(tare__each_argument(n, count_edge, &edge_count, job_error()));
        if (!tare__node_is_call(n)) continue;
        assert_int_equal(rows_of(nodes, n->name), 1);
        call_count++;
    }
    assert_int_equal(nodes->count, call_count);
    assert_int_equal(edges->count, edge_count);
    for (size_t i = 0; i < edges->count; i++)
        for (size_t k = 0; k < i; k++) assert_false(is_same_edge(&edges->rows[i], &edges->rows[k]));
}

static void check_file(const flow *f) {
    tare_model *read = NULL;
    CHECK_DONE(tare_model_write(f->prepared, temp_path("prepared.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("prepared.safetensors"), f->context, &read, job_error()));
    assert_string_equal(printed(read), printed(f->prepared));
    check_same_annotations(read, f->prepared);
    check_same_metas(f->prepared, read);
    size_t size = 0, size_again = 0;
    unsigned char *direct = converted_bytes(f->prepared, &size);
    unsigned char *again = converted_bytes(read, &size_again);
    assert_int_equal(size, size_again);
    assert_memory_equal(direct, again, size);
    free(direct);
    free(again);
    tare_model_destroy(read);
}

// --- as a program of operators ---

static tare_model *converted_of(const tare_model *prepared) {
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    tare_model *converted = NULL;
    CHECK_DONE(tare_convert_pt2e(prepared, &lenient, &converted, job_error()));
    check_explained(converted);
    return converted;
}

// The same calls with the same numbers; names of nodes may differ.
static void check_same_calls(const tare_model *a, const tare_model *b) {
    const node *m = b->root->graph->first;
    for (const node *n = a->root->graph->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_FUNCTION) continue; // the file has a module of guards
        while (m != NULL && m->op != NODE_CALL_FUNCTION) m = m->next;
        assert_non_null(m);
        assert_string_equal(n->target, m->target);
        assert_int_equal(n->arg_count, m->arg_count);
        for (size_t i = 0; i < n->arg_count; i++) {
            assert_int_equal(n->args[i].kind, m->args[i].kind);
            if (n->args[i].kind == VALUE_INT || n->args[i].kind == VALUE_FLOAT)
                assert_true(tare__value_equal(&n->args[i], &m->args[i]));
        }
        m = m->next;
    }
}

static void check_operators(flow *f) {
    const char *path = temp_path("prepared.pt2");
    tare_model *read = NULL;
    if (strstr(f->c->name, "_qat") == NULL) return;
    const tare_status status = tare_model_write_pt2(f->prepared, path, job_error());
    if (status != TARE_OK) print_message("%s: %s\n", f->c->name, tare_error_message(job_error()));
    if (status != TARE_OK) return;
    CHECK_DONE(tare_model_read(path, NULL, &read, job_error()));
    assert_int_equal(tare_model_get_stage(read), TARE_STAGE_PREPARED);
    tare_model *direct = converted_of(f->prepared), *again = converted_of(read);
    check_same_calls(direct, again);
    f->trained++;
    tare_model_destroy(direct);
    tare_model_destroy(again);
    tare_model_destroy(read);
}

static tare_status prepare_by(const char *quantizer_name, bool is_qat, const tare_model *model,
                              tare_model **out, tare_error *err) {
    const tare_quantization_options options = {.struct_size = sizeof options, .is_qat = is_qat};
    tare_quantizer_settings *settings = tare_quantizer_settings_create();
    tare_quantization_config config;
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantization_config_default(quantizer_name, &options, &config, err));
    tare_quantizer_settings_set_global(settings, &config);
    CHECK_DONE(tare_quantizer_builtin(quantizer_name, settings, &q, err));
    const tare_status status =
        is_qat ? tare_prepare_qat_pt2e(model, q, out, err) : tare_prepare_pt2e(model, q, out, err);
    tare_quantizer_destroy(q);
    tare_quantization_config_release(&config);
    tare_quantizer_settings_destroy(settings);
    return status;
}

static tare_status prepare(flow *f, const tare_model *model) {
    findings ignored = {0};
    // The packed cases leave out what was annotated.
    if (json_object_get(f->c->json, "annotations") == NULL)
        return prepare_by(strstr(f->c->name, "conv2d") != NULL ? "X86InductorQuantizer"
                                                               : "XNNPACKQuantizer",
                          strstr(f->c->name, "_qat") != NULL, model, &f->prepared, job_error());
    const tare_status status = pt2e_prepare(f->c, model, NULL, &ignored, &f->prepared, job_error());
    findings_release(&ignored);
    return status;
}

static void check_case(flow *f) {
    tare_model *model = NULL;
    CHECK_DONE(case_model(f->c, &model, job_error()));
    f->prepared = NULL;
    // What cannot be prepared at all is the replay's matter.
    tare_status status = prepare(f, model);
    if (status == TARE_OK) status = calibrate(f->c, f->prepared, job_error());
    f->checked += status == TARE_OK ? 1 : 0;
    f->refused += status == TARE_OK ? 0 : 1;
    if (status != TARE_OK) print_message("%s: %s\n", f->c->name, tare_error_message(job_error()));
    if (status == TARE_OK) {
        check_facts(f->prepared);
        check_file(f);
        check_operators(f);
    }
    tare_model_destroy(f->prepared);
    tare_model_destroy(model);
}

// --- annotated only ---

static tare_status annotate_nothing(void *self, tare_model *model, tare_error *err) {
    (void)self, (void)model, (void)err;
    return TARE_OK;
}

// The annotations that the model has are all that prepare is given. NULL where a batch norm that is
// annotated around is folded away.
static tare_model *prepared_as_it_is(const tare_model *annotated) {
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "nothing", .annotate = annotate_nothing};
    tare_quantizer *q = NULL;
    tare_model *p = NULL;
    CHECK_DONE(tare_quantizer_create(&class, NULL, &q, job_error()));
    const tare_status status = tare_prepare_pt2e(annotated, q, &p, job_error());
    assert_true(status == TARE_OK || status == TARE_NOT_FOUND);
    tare_quantizer_destroy(q);
    return p;
}

static void check_annotated(flow *f) {
    tare_quantizer *q = NULL;
    tare_model *model = NULL, *read = NULL;
    CHECK_DONE(case_model(f->c, &model, job_error()));
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    CHECK_DONE(tare_quantizer_transform(q, model, job_error()));
    CHECK_DONE(tare_quantizer_annotate(q, model, job_error()));
    CHECK_DONE(tare_model_write(model, temp_path("annotated.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("annotated.safetensors"), NULL, &read, job_error()));
    check_same_annotations(read, model);
    check_same_metas(model, read);
    tare_model *direct = prepared_as_it_is(model), *again = prepared_as_it_is(read);
    assert_int_equal(direct == NULL, again == NULL);
    if (direct != NULL) assert_string_equal(printed(direct), printed(again));
    f->checked += direct != NULL ? 1 : 0;
    tare_model_destroy(direct);
    tare_model_destroy(again);
    tare_model_destroy(read);
    tare_model_destroy(model);
    tare_quantizer_destroy(q);
}

static void check_each(void (*check)(flow *f), flow *f) {
    case_list list = {0};
    for (size_t i = 0; i < place_count; i++)
        CHECK_DONE(case_list_add(&list, places[i], job_error()));
    for (size_t i = 0; i < list.count; i++) {
        recorded_case c = {0};
        CHECK_DONE(case_read(&list.items[i], &c, job_error()));
        f->c = &c;
        check(f);
        f->c = NULL;
        case_release(&c);
    }
    case_list_release(&list);
}

static void prepared_programs_convert_alike_after_a_file(void **state) {
    flow f = {0};
    (void)state;
    CHECK_DONE(tare_context_create(&f.context, job_error()));
    CHECK_DONE(tare_context_add_derive_rule(f.context, &pt2e_test_rule, job_error()));
    check_each(check_case, &f);
    print_message("%zu programs, %zu as operators, %zu passed over\n", f.checked, f.trained,
                  f.refused);
    assert_true(f.trained >= 3 || strcmp(places[0], "tests/data/exported.zip") != 0);
    assert_true(f.checked >= 20 || strcmp(places[0], "tests/data/exported.zip") != 0);
    tare_context_destroy(f.context);
}

static void annotated_programs_prepare_alike_after_a_file(void **state) {
    flow f = {0};
    (void)state;
    check_each(check_annotated, &f);
    assert_true(f.checked >= 10 || strcmp(places[0], "tests/data/exported.zip") != 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prepared_programs_convert_alike_after_a_file),
        cmocka_unit_test(annotated_programs_prepare_alike_after_a_file),
    };
    for (int i = 1; i < argc && i <= 64; i++) {
        places[i - 1] = argv[i];
        place_count = (size_t)i;
    }
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
