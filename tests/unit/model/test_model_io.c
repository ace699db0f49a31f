// SPDX-License-Identifier: Apache-2.0
// Models of every stage are saved, read back and continued; damaged records are refused.
#include "core/json/json.h"
#include "io/native/model_file.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

typedef struct flow {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *fused, *prepared, *reference, *lowered;
} flow;

static int make_flow(void **state) {
    static flow f;
    f = (flow){.backend = builtin_backend("x86"), .mapping = default_mapping("x86")};
    f.model = read_example("conv_bn_relu");
    CHECK_DONE(tare_fuse_fx(f.model, f.backend, &f.fused, job_error()));
    f.prepared = prepared(f.model, f.backend, f.mapping);
    CALIBRATED(f.prepared, 1, 3, 3, 10);
    f.reference = referenced(f.prepared, f.backend);
    f.lowered = lowered(f.prepared, f.backend);
    *state = &f;
    return 0;
}

static int drop_flow(void **state) {
    flow *f = *state;
    tare_model_destroy(f->lowered);
    tare_model_destroy(f->reference);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->fused);
    tare_model_destroy(f->model);
    tare_qconfig_mapping_destroy(f->mapping);
    tare_backend_config_destroy(f->backend);
    return 0;
}

static tare_model *through_file(const tare_model *model) {
    tare_model *read = NULL;
    CHECK_DONE(tare_model_write(model, temp_path("m.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("m.safetensors"), NULL, &read, job_error()));
    return read;
}

static void check_same_model(const tare_model *a, const tare_model *b) {
    assert_int_equal(tare_model_get_stage(a), tare_model_get_stage(b));
    assert_string_equal(printed(a), printed(b));
    assert_string_equal(explained(a, NULL), explained(b, NULL));
    assert_int_equal(a->engine, b->engine);
    assert_int_equal(tare_model_decision_count(a), tare_model_decision_count(b));
    tare_coverage one, other;
    CHECK_DONE(tare_model_coverage(a, &one, job_error()));
    CHECK_DONE(tare_model_coverage(b, &other, job_error()));
    assert_memory_equal(&one.op_count, &other.op_count,
                        sizeof one - offsetof(tare_coverage, op_count));
}

static void check_same_results(const tare_model *a, const tare_model *b) {
    tare_tensor *x = NEW_INPUT(1, 3, 3, 10);
    const tare_tensor *inputs[] = {x};
    tare_tensor *y = result_of(a, inputs, 1), *z = result_of(b, inputs, 1);
    check_same_tensor(y, z);
    tare_tensor_release(y);
    tare_tensor_release(z);
    tare_tensor_release(x);
}

static void every_stage_reads_back_as_it_was(void **state) {
    const flow *f = *state;
    const tare_model *stages[] = {f->model, f->fused, f->prepared, f->reference, f->lowered};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(tare_model_get_stage(stages[i]), i);
        tare_model *read = through_file(stages[i]);
        check_same_model(read, stages[i]);
        // To run a prepared model is to calibrate it further.
        if (i != TARE_STAGE_PREPARED) check_same_results(read, stages[i]);
        // What was read is written to the same bytes.
        size_t size = 0, size_again = 0;
        unsigned char *bytes = temp_read(temp_path("m.safetensors"), &size);
        CHECK_DONE(tare_model_write(read, temp_path("again.safetensors"), job_error()));
        unsigned char *again = temp_read(temp_path("again.safetensors"), &size_again);
        assert_int_equal(size, size_again);
        assert_memory_equal(bytes, again, size);
        free(bytes);
        free(again);
        tare_model_destroy(read);
    }
}

static void a_flow_may_be_interrupted_anywhere(void **state) {
    const flow *f = *state;
    // fused, written, read, prepared; written, read, calibrated; written, read, converted.
    tare_model *fused = through_file(f->fused), *p = prepared(fused, f->backend, f->mapping);
    tare_model *fresh = through_file(p);
    CALIBRATED(fresh, 1, 3, 3, 10);
    tare_model *calibrated_file = through_file(fresh);
    tare_model *q = lowered(calibrated_file, f->backend);
    assert_string_equal(printed(q), printed(f->lowered));
    check_same_results(q, f->lowered);
    tare_model *r = referenced(calibrated_file, f->backend);
    assert_string_equal(printed(r), printed(f->reference));
    tare_model_destroy(r);
    tare_model_destroy(q);
    tare_model_destroy(calibrated_file);
    tare_model_destroy(fresh);
    tare_model_destroy(p);
    tare_model_destroy(fused);
}

static void more_calibration_after_reading_is_as_if_never_interrupted(void **state) {
    const flow *f = *state;
    tare_model *direct = prepared(f->model, f->backend, f->mapping);
    tare_model *first = prepared(f->model, f->backend, f->mapping);
    CALIBRATED(direct, 1, 3, 3, 10);
    CALIBRATED(first, 1, 3, 3, 10);
    tare_model *second = through_file(first);
    CALIBRATED(direct, 4, 3, 3, 10);
    CALIBRATED(second, 4, 3, 3, 10);
    assert_string_equal(printed(second), printed(direct));
    tare_model *a = lowered(direct, f->backend), *b = lowered(second, f->backend);
    assert_string_equal(printed(a), printed(b));
    tare_model_destroy(a);
    tare_model_destroy(b);
    tare_model_destroy(second);
    tare_model_destroy(first);
    tare_model_destroy(direct);
}

static void shared_observers_stay_shared(void **state) {
    const flow *f = *state;
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=3, out_features=3");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    fc = self.fc(x)\n"
                                  "    cat = torch.cat([fc, fc], dim = 1)\n    return cat\n");
    tare_model *p = prepared(model, f->backend, f->mapping), *read = through_file(p);
    assert_ptr_equal(tare__module_find(p->root, "activation_post_process_1"),
                     tare__module_find(p->root, "activation_post_process_2"));
    assert_ptr_equal(tare__module_find(read->root, "activation_post_process_1"),
                     tare__module_find(read->root, "activation_post_process_2"));
    tare_model_destroy(read);
    tare_model_destroy(p);
    tare_model_destroy(model);
}

// --- damaged records ---

// Writes the model with its record changed: the value at `key` (of `index`'s item of it, when the
// key is a list and index >= 0, under `inner`) becomes `with` (NULL: it goes).
typedef struct damage {
    const char *key;
    int index;
    const char *inner;
    const char *with;
    const char *where, *words;
} damage;

static json_t *record_of(const tare_model *model) {
    CHECK_DONE(tare_model_write(model, temp_path("m.safetensors"), job_error()));
    module *root = NULL;
    json_t *kept = NULL;
    CHECK_DONE(tare__model_file_read(temp_path("m.safetensors"), &model->context->classes,
                                     &tare__observer_state_io, &root, &kept, job_error()));
    tare__module_release(root);
    return kept;
}

static void set(json_t *object, const char *key, const char *with) {
    if (with == NULL) {
        json_object_del(object, key);
        return;
    }
    json_t *made = json_loads(with, JSON_DECODE_ANY, NULL);
    assert_non_null(made);
    json_object_set_new(object, key, made);
}

static void check_damage(const tare_model *model, const damage *d) {
    json_t *kept = record_of(model);
    json_t *object = kept;
    if (d->index >= 0) object = json_array_get(json_object_get(kept, d->key), (size_t)d->index);
    set(object, d->index >= 0 ? d->inner : d->key, d->with);
    tare_model *read = NULL;
    CHECK_DONE(tare__model_file_write(temp_path("bad.safetensors"), model->root,
                                      &tare__observer_state_io, kept, job_error()));
    json_decref(kept);
    const tare_status status =
        tare_model_read(temp_path("bad.safetensors"), NULL, &read, job_error());
    if (status != TARE_MALFORMED_FILE || !strstr(tare_error_where(job_error()), d->where) ||
        !strstr(tare_error_message(job_error()), d->words) ||
        !strstr(tare_error_where(job_error()), "bad.safetensors: record: $"))
        fail_msg("%s %d %s: %s: '%s: %s' does not say '%s: %s'", d->key, d->index,
                 d->inner ? d->inner : "", tare_status_name(status), tare_error_where(job_error()),
                 tare_error_message(job_error()), d->where, d->words);
    assert_null(read);
    tare_error_clear(job_error());
}

static void damaged_records_are_refused_at_their_path(void **state) {
    const flow *f = *state;
    static const damage damages[] = {
        {"stage", -1, NULL, "\"preparde\"", "record: $.stage", "no stage 'preparde'"},
        {"stage", -1, NULL, "2", "record: $.stage", "expected a string"},
        {"stage", -1, NULL, NULL, "record: $.stage", "found nothing"},
        {"engine", -1, NULL, "\"x87\"", "record: $.engine", "no engine 'x87'"},
        {"float_islands", -1, NULL, "\"two\"", "record: $.float_islands", "expected"},
        {"float_islands", -1, NULL, "-1", "record: $.float_islands", "expected"},
        {"decisions", -1, NULL, "{}", "record: $.decisions", "expected an array"},
        {"decisions", 1, "reason", "5", "record: $.decisions[1].reason", "expected a string"},
        {"decisions", 1, "mood", "\"bad\"", "record: $.decisions[1]", "mood"},
        {"operators", -1, NULL, "null", "record: $.operators", "expected an array"},
        {"operators", 2, "name", "\"linear\"", "record: $.operators[2].name", "listed twice"},
        {"operators", 0, "macs", "1.5", "record: $.operators[0].macs", "expected"},
        {"operators", 0, "macs", "-4", "record: $.operators[0].macs", "expected"},
        {"operators", 0, "quantized", "\"no\"", "record: $.operators[0].quantized", "expected"},
        {"operators", 0, "fused_into", "[]", "record: $.operators[0].fused_into", "expected"},
        {"prepared", -1, NULL, NULL, "record: $", "needs the key 'prepared'"},
        {"prepared", -1, NULL, "{}", "record: $.prepared", "expected an array"},
        {"prepared", 0, "qconfig", "3", "record: $.prepared[0].qconfig", "expected"},
        {"prepared", 0, "observed", NULL, "record: $.prepared[0].observed", "found nothing"},
        {"prepared", 1, "name", "\"x\"", "record: $.prepared[1].name", "listed twice"},
        {"prepared", 1, "qconfig", "{\"activation\": {\"class\": 3}}",
         "record: $.prepared[1].qconfig.activation.class", "expected a string"},
        {"surprise", -1, NULL, "1", "record: $", "surprise"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        check_damage(f->prepared, &damages[i]);
}

static void cycles_of_fusions_are_harmless(void **state) {
    const flow *f = *state;
    json_t *kept = record_of(f->lowered);
    set(json_array_get(json_object_get(kept, "operators"), 0), "fused_into", "\"conv\"");
    set(json_array_get(json_object_get(kept, "operators"), 1), "fused_into", "\"linear\"");
    CHECK_DONE(tare__model_file_write(temp_path("odd.safetensors"), f->lowered->root,
                                      &tare__observer_state_io, kept, job_error()));
    json_decref(kept);
    tare_model *read = NULL;
    CHECK_DONE(tare_model_read(temp_path("odd.safetensors"), NULL, &read, job_error()));
    CHECK_HOLDS(explained(read, NULL), "linear (torch.nn.Linear): ");
    tare_model_destroy(read);
}

// A prepared file that contradicts itself: the graph has nodes that the list lacks.
static void a_list_that_does_not_fit_the_graph_does_no_harm(void **state) {
    const flow *f = *state;
    json_t *kept = record_of(f->prepared);
    json_object_set_new(kept, "prepared", json_array());
    CHECK_DONE(tare__model_file_write(temp_path("odd.safetensors"), f->prepared->root,
                                      &tare__observer_state_io, kept, job_error()));
    json_decref(kept);
    tare_model *read = NULL, *out = NULL;
    CHECK_DONE(tare_model_read(temp_path("odd.safetensors"), NULL, &read, job_error()));
    const tare_convert_options options = {.backend = f->backend};
    if (tare_convert_fx(read, &options, &out, job_error()) == TARE_OK) tare_model_destroy(out);
    tare_model_destroy(read);
}

static void a_stage_that_the_graph_does_not_have_does_no_harm(void **state) {
    const flow *f = *state;
    static const char *const names[] = {"float", "fused", "prepared", "reference", "lowered"};
    const tare_model *stages[] = {f->model, f->fused, f->prepared, f->reference, f->lowered};
    for (size_t i = 0; i < 25; i++) {
        const tare_model *model = stages[i % 5];
        json_t *kept = record_of(model);
        json_object_set_new(kept, "stage", json_string(names[i / 5]));
        if (i / 5 == 2 && i % 5 != 2) json_object_set_new(kept, "prepared", json_array());
        CHECK_DONE(tare__model_file_write(temp_path("odd.safetensors"), model->root,
                                          &tare__observer_state_io, kept, job_error()));
        json_decref(kept);
        tare_model *read = NULL, *out = NULL;
        CHECK_DONE(tare_model_read(temp_path("odd.safetensors"), NULL, &read, job_error()));
        const tare_prepare_options prepare = {.backend = f->backend, .qconfig_mapping = f->mapping};
        const tare_convert_options convert = {.backend = f->backend, .is_lenient = true};
        if (tare_prepare_fx(read, &prepare, &out, job_error()) == TARE_OK) tare_model_destroy(out);
        out = NULL;
        if (tare_convert_fx(read, &convert, &out, job_error()) == TARE_OK) tare_model_destroy(out);
        assert_int_not_equal(tare_error_status(job_error()), TARE_INTERNAL);
        tare_error_clear(job_error());
        tare_model_destroy(read);
    }
}

static void unwritable_places_are_reported(void **state) {
    const flow *f = *state;
    CHECK_REFUSED(tare_model_write(f->lowered, "/nowhere/at/all/m.safetensors", job_error()),
                  TARE_IO, "/nowhere/at/all");
    tare_model *read = NULL;
    CHECK_REFUSED(tare_model_read("/nowhere/m.safetensors", NULL, &read, job_error()), TARE_IO,
                  "/nowhere/m.safetensors");
    assert_null(read);
}

// As torch's, these observers keep a NaN; what calibrated is what is read back.
static void ranges_of_nans_read_back_and_are_refused_by_convert(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=4, out_features=3");
    tare_model *model = new_model(NULL, root,
                                  "def forward(self, x):\n    a = torch.log(x)\n"
                                  "    y = self.fc(a)\n    return y\n");
    tare_backend_config *backend = builtin_backend("native");
    tare_qconfig_mapping *mapping = my_mapping();
    tare_model *watched = prepared(model, backend, mapping), *made = NULL;
    CALIBRATED(watched, 2, 4);
    CHECK_HOLDS(printed(watched), "MinMaxObserver(min_val=nan, max_val=nan)");
    tare_model *read = through_file(watched);
    assert_string_equal(printed(read), printed(watched));
    CHECK_REFUSED(tare_convert_fx(read, NULL, &made, job_error()), TARE_INVALID_ARGUMENT,
                  "the observer proposed the scale nan");
    tare_model_destroy(read);
    tare_model_destroy(watched);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
}

// As a program has it that compiled the model in, or got it over a network.
static unsigned char *bytes_of(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = aligned_alloc(64, (*size + 63) / 64 * 64);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void a_model_in_memory_is_the_one_of_the_file(void **state) {
    const flow *f = *state;
    tare_model *lent = NULL, *copied = NULL;
    size_t size = 0;
    CHECK_DONE(tare_model_write(f->lowered, temp_path("m.safetensors"), job_error()));
    unsigned char *bytes = bytes_of(temp_path("m.safetensors"), &size);
    const tare_model_read_options copies = {.copies_file = true};
    CHECK_DONE(tare_model_read_memory(bytes, size, NULL, NULL, &lent, job_error()));
    CHECK_DONE(tare_model_read_memory(bytes, size, NULL, &copies, &copied, job_error()));
    check_same_model(f->lowered, lent);
    check_same_results(f->lowered, lent);
    tare_model_destroy(lent);
    bytes[size - 1] ^= 1;
    CHECK_REFUSED(tare_model_read_memory(bytes, size, NULL, NULL, &lent, job_error()),
                  TARE_MALFORMED_FILE, "memory");
    memset(bytes, 0, size);
    free(bytes);
    check_same_results(f->lowered, copied);
    tare_model_destroy(copied);
    CHECK_REFUSED(tare_model_read_memory("", 0, NULL, NULL, &lent, job_error()),
                  TARE_MALFORMED_FILE, "empty");
    CHECK_REFUSED(tare_model_read_memory(NULL, 0, NULL, NULL, &lent, job_error()),
                  TARE_INVALID_ARGUMENT, "NULL");
}

static int begin(void **state) {
    return temp_make(state) == 0 ? make_flow(state) : -1;
}

static int end(void **state) {
    drop_flow(state);
    return temp_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_reads_back_as_it_was),
        cmocka_unit_test(a_flow_may_be_interrupted_anywhere),
        cmocka_unit_test(more_calibration_after_reading_is_as_if_never_interrupted),
        cmocka_unit_test(shared_observers_stay_shared),
        cmocka_unit_test(damaged_records_are_refused_at_their_path),
        cmocka_unit_test(cycles_of_fusions_are_harmless),
        cmocka_unit_test(a_list_that_does_not_fit_the_graph_does_no_harm),
        cmocka_unit_test(a_stage_that_the_graph_does_not_have_does_no_harm),
        cmocka_unit_test(ranges_of_nans_read_back_and_are_refused_by_convert),
        cmocka_unit_test(unwritable_places_are_reported),
        cmocka_unit_test(a_model_in_memory_is_the_one_of_the_file),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
