// SPDX-License-Identifier: Apache-2.0
// The runs of a probe, beside the models that they stand for.
#include <math.h>

#include "debug/analyze/brief.h"
#include "debug/analyze/probe.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"
#include "tare/analyze.h"
#include "tare/session.h"

typedef struct fixture {
    tare_model *floats, *prepared, *reference;
    tare_data *data;
    tare_batch batch;
} fixture;

static int set_up(void **state) {
    static fixture f;
    tare_qconfig_mapping *mapping = NULL;
    bool done = false;
    const tare_data_options options = {.batch_size = 4, .sample_limit = 12};
    temp_make(state);
    CHECK_DONE(tare_model_read("data/digits/digits.safetensors", NULL, &f.floats, job_error()));
    CHECK_DONE(tare_qconfig_mapping_default("qnnpack", false, -1, &mapping, job_error()));
    const tare_prepare_options prepare = {.qconfig_mapping = mapping};
    CHECK_DONE(tare_prepare_fx(f.floats, &prepare, &f.prepared, job_error()));
    CHECK_DONE(tare_data_open("data/digits/test.npz", f.floats, &options, &f.data, job_error()));
    CHECK_DONE(tare_calibrate_data(f.prepared, f.data, NULL, NULL, job_error()));
    CHECK_DONE(tare_convert_to_reference_fx(f.prepared, NULL, &f.reference, job_error()));
    CHECK_DONE(tare_data_rewind(f.data, job_error()));
    CHECK_DONE(tare_data_next(f.data, &f.batch, &done, job_error()));
    tare_qconfig_mapping_destroy(mapping);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    tare_data_close(f->data);
    tare_model_destroy(f->floats);
    tare_model_destroy(f->prepared);
    tare_model_destroy(f->reference);
    return temp_remove(state);
}

static tare_tensor *run_model(const fixture *f, const tare_model *m) {
    tare_session *session = NULL;
    tare_tensor *out = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_create(m, NULL, &session, job_error()));
    CHECK_DONE(tare_session_run(session, f->batch.inputs, f->batch.input_count, &out, 1, &count,
                                job_error()));
    tare_session_destroy(session);
    return out;
}

static double distance(const tare_tensor *x, const tare_tensor *y) {
    double largest = 0;
    assert_int_equal(x->count, y->count);
    for (int64_t i = 0; i < x->count; i++)
        largest = fmax(largest, fabs((double)tare__f32(x)[i] - (double)tare__f32(y)[i]));
    return largest;
}

static tare_tensor *probe_output(probe_run *r, const fixture *f) {
    probe_outputs out = {.count = 0};
    CHECK_DONE(tare__probe_run(r, f->batch.inputs, f->batch.input_count, &out, job_error()));
    assert_int_equal(out.count, 1);
    return out.tensors[0];
}

static void check_run(probe_run r, const fixture *f, const tare_model *like, double most) {
    tare_tensor *x = probe_output(&r, f), *y = run_model(f, like);
    assert_true(distance(x, y) <= most);
    tare_tensor_release(x);
    tare_tensor_release(y);
}

static void nothing_quantized_is_the_float_model_and_all_the_reference(void **state) {
    const fixture *f = *state;
    probe p;
    CHECK_DONE(tare__probe_begin(&p, f->reference, NULL, 1, job_error()));
    check_run((probe_run){.probe = &p, .mode = PROBE_FLOATS}, f, f->floats, 1e-4);
    check_run((probe_run){.probe = &p, .mode = PROBE_ALL}, f, f->reference, 1e-4);
    tare__probe_end(&p);
}

// What is taken from an earlier run, or from the disk, is what would have been computed.
static void single_layers_need_no_more_than_what_depends_on_them(void **state) {
    const fixture *f = *state;
    probe p;
    CHECK_DONE(tare__probe_begin(&p, f->reference, NULL, 1, job_error()));
    for (uint64_t memory = 0; memory <= 1 << 20; memory += 1 << 19) {
        cache_budget budget = {memory, 1 << 20};
        value_cache floats;
        CHECK_DONE(tare__value_cache_begin(&floats, p.id_count, &budget, job_error()));
        probe_run all = {.probe = &p, .mode = PROBE_FLOATS, .keep = &floats};
        tare_tensor_release(probe_output(&all, f));
        assert_true(p.layer_count > 4);
        for (size_t i = 0; i < p.layer_count; i++) {
            probe_run whole = {.probe = &p, .mode = PROBE_ONLY, .layer = i};
            probe_run single = {.probe = &p, .mode = PROBE_ONLY, .layer = i, .base = &floats};
            tare_tensor *x = probe_output(&whole, f), *y = probe_output(&single, f);
            assert_true(distance(x, y) == 0);
            tare_tensor_release(x);
            tare_tensor_release(y);
        }
        tare__value_cache_release(&floats);
        assert_int_equal(budget.memory_bytes, memory);
        assert_int_equal(budget.disk_bytes, 1 << 20);
    }
    tare__probe_end(&p);
}

static void the_verdict_counts_what_the_samples_say(void **state) {
    fixture *f = *state;
    tare_analysis *a = NULL;
    tare_verdict v;
    tare_layer_error layer, worst;
    CHECK_DONE(tare_data_rewind(f->data, job_error()));
    CHECK_DONE(tare_analyze(f->reference, f->data, NULL, &a, job_error()));
    tare_analysis_get_verdict(a, &v);
    assert_int_equal(v.sample_count, 12);
    assert_true(v.has_classes && v.has_labels);
    assert_true(v.sqnr_db > 20 && v.cosine > 0.99 && v.agreeing_count >= 11);
    assert_true(v.float_correct >= 10 && v.quantized_correct >= 10);
    assert_true(tare_analysis_get_worst(a, 0, &worst));
    for (size_t i = 0; tare_analysis_get_layer(a, i, &layer); i++)
        assert_true(worst.alone_db <= layer.alone_db || isnan(layer.alone_db));
    tare_analysis_destroy(a);
}

// By costs, not by a clock: nothing is begun that is expected to end beyond the limit.
static void the_time_of_a_brief_analysis_is_shared_by_rule(void **state) {
    (void)state;
    brief_time t = {.limit = 10};
    tare__brief_begin_layers(&t, 2, 30);
    assert_true(tare__brief_has_time_for_layer(&t, 7.9) && !tare__brief_has_time_for_layer(&t, 8));
    assert_true(tare__brief_has_time_for_sample(&t, 8, 2));
    assert_false(tare__brief_has_time_for_sample(&t, 8, 2.1));
    t = (brief_time){.limit = 1};
    tare__brief_begin_layers(&t, 2, 30); // the first sample alone was too much
    assert_false(tare__brief_has_time_for_layer(&t, 2));
    assert_false(tare__brief_has_time_for_sample(&t, 2, 0));
    tare__brief_begin_layers(&t, 2, 9); // a broken model
    assert_true(tare__brief_has_time_for_layer(&t, 1e9));
    assert_false(tare__brief_has_time_for_sample(&t, 2, 0));
}

static void check_brief(const fixture *f, double seconds, int64_t samples, bool has_layers) {
    const tare_analyze_options options = {
        .struct_size = sizeof options, .is_brief = true, .seconds = seconds};
    tare_analysis *a = NULL;
    tare_verdict v;
    tare_layer_error layer;
    CHECK_DONE(tare_data_rewind(f->data, job_error()));
    CHECK_DONE(tare_analyze(f->reference, f->data, &options, &a, job_error()));
    tare_analysis_get_verdict(a, &v);
    assert_int_equal(v.sample_count, samples);
    for (size_t i = 0; tare_analysis_get_layer(a, i, &layer); i++) {
        assert_int_equal(isnan(layer.local_db), !has_layers);
        assert_true(isfinite(layer.reads_db) && layer.reads_db > 10);
    }
    for (size_t i = 1; tare_analysis_get_worst(a, i, &layer); i++) { // sorted by what is known
        tare_layer_error before;
        assert_true(tare_analysis_get_worst(a, i - 1, &before));
        assert_true(has_layers ? before.local_db <= layer.local_db
                               : before.reads_db <= layer.reads_db);
    }
    tare_analysis_destroy(a);
}

static void a_brief_analysis_has_one_batch_and_more_while_there_is_time(void **state) {
    check_brief(*state, 1e-9, 4, false);
    check_brief(*state, 1e9, 12, true);
}

// Outputs of the model that runs are nothing like the floats: which layers lose them is what the
// caller needs to know.
static void every_layer_of_a_broken_model_is_measured(void **state) {
    const fixture *f = *state;
    tare_qconfig_mapping *mapping = NULL;
    tare_model *prepared = NULL, *broken = NULL;
    tare_analysis *a = NULL;
    tare_verdict v;
    tare_layer_error layer;
    CHECK_DONE(tare_qconfig_mapping_default("qnnpack", false, -1, &mapping, job_error()));
    const tare_prepare_options prepare = {.qconfig_mapping = mapping};
    CHECK_DONE(tare_prepare_fx(f->floats, &prepare, &prepared, job_error()));
    CHECK_DONE(tare_data_rewind(f->data, job_error()));
    const tare_convert_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    CHECK_DONE(tare_convert_to_reference_fx(prepared, &lenient, &broken, job_error()));
    const tare_analyze_options options = {
        .struct_size = sizeof options, .quantized = broken, .is_brief = true, .seconds = 1e-9};
    CHECK_DONE(tare_analyze(f->reference, f->data, &options, &a, job_error()));
    tare_analysis_get_verdict(a, &v);
    assert_int_equal(v.sample_count, 4);
    assert_true(v.sqnr_db < 10);
    assert_true(tare_analysis_layer_count(a) > 0);
    for (size_t i = 0; tare_analysis_get_layer(a, i, &layer); i++)
        assert_true(!isnan(layer.local_db));
    tare_analysis_destroy(a);
    tare_model_destroy(broken);
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
}

// A fold that goes wrong is in the prepared model and in its reference form: only the model as it
// was given shows it.
static void the_verdict_covers_what_fusing_changed(void **state) {
    const fixture *f = *state;
    tare_model *other = NULL;
    CHECK_DONE(tare_model_read("data/digits/digits.safetensors", NULL, &other, job_error()));
    const module *bn = tare__module_find(other->root, "bn2");
    tare_tensor *shift = tare_tensor_retain(tare__module_tensor(bn, "bias")), *wrong = NULL;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, shift->ndim, shift->shape, &wrong, job_error()));
    for (int64_t i = 0; i < shift->count; i++) tare__f32(wrong)[i] = tare__f32(shift)[i] + 1;
    CHECK_DONE(tare__module_set_tensor((module *)bn, "bias", wrong, true, job_error()));
    const struct {
        const tare_model *exact;
        double least_db, most_db, least_preparation, most_preparation;
    } rows[] = {{f->floats, 20, 100, 100, HUGE_VAL}, {other, -100, 15, -100, 15}};
    for (size_t i = 0; i < 2; i++) {
        const tare_analyze_options options = {
            .struct_size = sizeof options, .is_brief = true, .exact = rows[i].exact};
        tare_analysis *a = NULL;
        tare_verdict v;
        CHECK_DONE(tare_data_rewind(f->data, job_error()));
        CHECK_DONE(tare_analyze(f->reference, f->data, &options, &a, job_error()));
        tare_analysis_get_verdict(a, &v);
        const double kept = tare_analysis_preparation_db(a);
        assert_true(v.sqnr_db > rows[i].least_db && v.sqnr_db < rows[i].most_db);
        assert_true(kept > rows[i].least_preparation && kept <= rows[i].most_preparation);
        tare_analysis_destroy(a);
    }
    tare_tensor_release(shift);
    tare_tensor_release(wrong);
    tare_model_destroy(other);
}

static void what_is_no_reference_form_is_refused(void **state) {
    const fixture *f = *state;
    tare_analysis *a = NULL;
    assert_int_equal(tare_analyze(f->floats, f->data, NULL, &a, NULL), TARE_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_quantized_is_the_float_model_and_all_the_reference),
        cmocka_unit_test(single_layers_need_no_more_than_what_depends_on_them),
        cmocka_unit_test(the_verdict_counts_what_the_samples_say),
        cmocka_unit_test(the_time_of_a_brief_analysis_is_shared_by_rule),
        cmocka_unit_test(a_brief_analysis_has_one_batch_and_more_while_there_is_time),
        cmocka_unit_test(every_layer_of_a_broken_model_is_measured),
        cmocka_unit_test(the_verdict_covers_what_fusing_changed),
        cmocka_unit_test(what_is_no_reference_form_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
