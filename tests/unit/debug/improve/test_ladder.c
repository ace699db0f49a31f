// SPDX-License-Identifier: Apache-2.0
// The ladder as a whole: what it does when its time is over, and when it goes on after an end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/clock.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"
#include "tare/improve.h"

// --- helpers ---

// The clock of jobs is held, so that no machine decides what there is time for.
static void pass(double seconds) {
    tare__job_clock_pass((uint64_t)(1e9 * seconds));
}

static int hold_clock(void **state) {
    (void)state;
    tare__job_clock_hold();
    return 0;
}

typedef struct quantizer {
    tare_backend_config *backend;
    double reference_pause; // seconds that a reference form takes longer
} quantizer;

static tare_status quantize(void *user, const tare_model *prepared, bool as_reference,
                            const tare_float_choice *choices, size_t count, tare_model **out,
                            tare_error *err) {
    const quantizer *q = user;
    const tare_convert_options options = {.struct_size = sizeof options,
                                          .backend = q->backend,
                                          .float_choices = choices,
                                          .float_choice_count = count};
    if (as_reference) pass(q->reference_pause);
    return as_reference ? tare_convert_to_reference_fx(prepared, &options, out, err)
                        : tare_convert_fx(prepared, &options, out, err);
}

// The steps of trials, each with a blank behind it and with "kept " if it was kept.
typedef struct watched {
    char steps[512];
    double pause;           // seconds that the first trial takes longer
    double reference_pause; // seconds that each reference form takes longer
    double calibration;     // seconds that the first one took, which kept histograms; 0: neither
    bool is_out_of_time;
    double before_db, after_db;
    bool has_large_input; // that of large_input, not of uneven_block
} watched;

static tare_status watch(void *user, const tare_improve_trial *trial, tare_error *err) {
    watched *w = user;
    (void)err;
    const size_t used = strlen(w->steps);
    (void)snprintf(w->steps + used, sizeof w->steps - used, "%s %s", trial->step,
                   trial->is_kept ? "kept " : "");
    if (used == 0) pass(w->pause);
    return TARE_OK;
}

// A channel that a norm makes large: one scale for all channels leaves the others nothing, and they
// are what counts in the end.
static tare_model *uneven_block(void) {
    module *root = new_tree();
    module *norm = put_module(root, NULL, "norm", "torch.nn.LayerNorm", "normalized_shape=(8,)");
    tare_tensor *t = NEW_INPUT(8);
    for (int k = 0; k < 8; k++) tare__f32(t)[k] = k == 3 ? 100.0F : 0.5F;
    CHECK_DONE(tare__module_set_tensor(norm, "weight", t, true, job_error()));
    tare_tensor_release(t);
    put_module(root, NULL, "up", "torch.nn.Linear", "in_features=8, out_features=16");
    tare_tensor *w = tare__module_find_tensor(root, "up.weight");
    for (int k = 0; k < 16; k++) tare__f32(w)[8 * k + 3] *= 0.001F;
    put_module(root, NULL, "down", "torch.nn.Linear", "in_features=16, out_features=8");
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    norm = self.norm(x)\n"
                     "    up = self.up(norm)\n"
                     "    gelu = torch.nn.functional.gelu(up)\n"
                     "    down = self.down(gelu)\n"
                     "    add = down + norm\n"
                     "    last = self.down(gelu)\n"
                     "    return last\n");
}

// A channel of the input leaves the others nothing; in floats the layer reads them as they are.
static tare_model *large_input(tare_tensor *x, tare_tensor *y) {
    module *root = new_tree();
    put_module(root, NULL, "up", "torch.nn.Linear", "in_features=8, out_features=16");
    tare_tensor *w = tare__module_find_tensor(root, "up.weight");
    for (int k = 0; k < 16; k++) tare__f32(w)[8 * k + 3] *= 1e-5F;
    for (int64_t i = 3; i < x->count; i += 8) tare__f32(x)[i] *= 1000;
    for (int64_t i = 3; i < y->count; i += 8) tare__f32(y)[i] *= 1000;
    return new_model(NULL, root, "def forward(self, x):\n    up = self.up(x)\n    return up\n");
}

static void improve(const tare_improve_options *options, watched *w) {
    tare_backend_config *backend = builtin_backend("x86");
    quantizer q = {backend, w->reference_pause};
    tare_improve_result result = {.struct_size = sizeof result};
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_tensor *x = NEW_INPUT(12, 5, 8), *y = NEW_INPUT(4, 5, 8);
    for (int i = 0; i < 12 * 5 * 8; i++) tare__f32(x)[i] += (float)(i % 7) * 0.1F;
    tare_model *model = w->has_large_input ? large_input(x, y) : uneven_block(), *out = NULL;
    tare_model *first = prepared(model, backend, mapping);
    tare_data *data = data_in_file(model, "x.npz", x), *check = data_in_file(model, "y.npz", y);
    const tare_calibrate_options how = {.struct_size = sizeof how,
                                        .keeps_histograms = w->calibration > 0};
    CHECK_DONE(tare_calibrate_data(first, data, &how, NULL, job_error()));
    if (w->calibration > 0) first->seen.seconds = w->calibration;
    tare_improve_options o = *options;
    o.struct_size = sizeof o;
    o.state_path = temp_path("ladder");
    o.trials = watch;
    o.trials_user = w;
    CHECK_DONE(
        tare_improve(first, data, check, quantize, &q, &o, &result, NULL, &out, job_error()));
    w->is_out_of_time = result.is_out_of_time;
    w->before_db = result.before_db;
    w->after_db = result.after_db;
    tare_model_destroy(out);
    tare_data_close(check);
    tare_data_close(data);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(first);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static char *state(void) {
    size_t size = 0;
    unsigned char *bytes = temp_read(temp_path("ladder"), &size);
    char *made = malloc(size + 1);
    assert_non_null(made);
    memcpy(made, bytes, size);
    made[size] = '\0';
    free(bytes);
    return made;
}

static bool state_has(const char *key) {
    char *all = state();
    const bool has = strstr(all, key) != NULL;
    free(all);
    return has;
}

// --- the time ---

// Other steps do not run when the time is over; this one looks for a faster model all the same.
static void without_time_the_fastest_choice_is_still_found(void **unused) {
    (void)unused;
    watched w = {.pause = 0.001};
    improve(&(tare_improve_options){.seconds = 1e-6}, &w);
    assert_null(strstr(w.steps, "observers"));
    assert_true(state_has("fastest choice"));
    assert_false(state_has("end of precision"));
}

// Three quarters of the time are gone: what is left belongs to `precision`.
static void other_steps_leave_the_choice_its_time(void **unused) {
    (void)unused;
    watched w = {.pause = 2.3};
    improve(&(tare_improve_options){.seconds = 3, .steps = "observers,weight-clipping,precision"},
            &w);
    assert_null(strstr(w.steps, "weight-clipping"));
    assert_true(state_has("fastest choice"));
}

// There is no time for another calibration, which `observers` does not need.
static void ranges_are_tried_without_another_calibration(void **unused) {
    (void)unused;
    const tare_improve_options options = {.seconds = 10, .steps = "smoothing,observers"};
    watched w = {.calibration = 20};
    improve(&options, &w);
    assert_null(strstr(w.steps, "smoothing"));
    size_t trials = 0;
    for (const char *at = w.steps; (at = strstr(at, "observers")) != NULL; at++) trials++;
    assert_int_equal(trials, 5); // the sixth is what the model has
    assert_true(w.is_out_of_time);
    assert_int_equal(remove(temp_path("ladder")), 0);
    w = (watched){.calibration = 1e-3};
    improve(&(tare_improve_options){.seconds = 10, .steps = "smoothing"}, &w);
    assert_string_equal(w.steps, "smoothing kept ");
    assert_false(w.is_out_of_time);
}

// The last step is quick, and still it does not begin when the time is over.
static void the_last_step_keeps_to_the_time(void **unused) {
    (void)unused;
    watched w = {.pause = 0.7};
    improve(&(tare_improve_options){.seconds = 0.6, .steps = "observers,bias-correction"}, &w);
    assert_null(strstr(w.steps, "bias-correction"));
    assert_true(w.is_out_of_time);
}

// It begins, and gives up when what it needs first has taken the time.
static void a_last_step_that_gives_up_is_no_trial(void **unused) {
    (void)unused;
    watched w = {.reference_pause = 2.5};
    improve(&(tare_improve_options){.seconds = 2.5, .steps = "bias-correction"}, &w);
    assert_string_equal(w.steps, "");
    assert_true(w.is_out_of_time);
    w = (watched){.pause = 0};
    improve(&(tare_improve_options){.seconds = 60, .steps = "bias-correction"}, &w);
    assert_non_null(strstr(w.steps, "bias-correction"));
    assert_false(w.is_out_of_time);
}

// --- going on ---

// The limits refer to the fastest choice, which the file has, where an earlier run has ended
// `precision`. The first model's bytes here would refuse everything.
static void a_resumed_ladder_knows_the_fastest_choice(void **unused) {
    (void)unused;
    watched w = {.pause = 0};
    const tare_improve_options options = {.seconds = 60, .steps = "precision,smoothing"};
    improve(&options, &w);
    assert_true(state_has("fastest choice"));
    assert_true(state_has("end of precision"));
    assert_non_null(strstr(w.steps, "smoothing kept"));

    char *all = state(), *first = strstr(all, "first model");
    char made[512];
    assert_non_null(first);
    (void)snprintf(made, sizeof made,
                   "%.*s0 1 0 8 0 first model\n0 1000 0 1000000 0 fastest choice\n"
                   "0 0 0 0 0 end of precision \n",
                   (int)strcspn(all, "\n") + 1, all);
    free(all);
    temp_write(temp_path("ladder"), made, strlen(made));
    w = (watched){.pause = 0};
    improve(&options, &w);
    assert_non_null(strstr(w.steps, "smoothing kept"));
    assert_null(strstr(w.steps, "precision"));
}

// A target that a choice reaches ends the job, but not the step: the next job wants more.
static void a_reached_target_does_not_end_the_choice(void **unused) {
    (void)unused;
    const tare_improve_options options = {
        .seconds = 60, .steps = "precision", .most_slower = 50, .most_larger = 50};
    tare_improve_options early = options;
    watched w = {.has_large_input = true};
    early.target_db = 40;
    improve(&early, &w);
    assert_string_equal(w.steps, "precision kept ");
    assert_true(w.before_db < 40 && w.after_db >= 40);
    assert_false(w.is_out_of_time);
    assert_false(state_has("end of precision"));
    w = (watched){.has_large_input = true};
    improve(&options, &w);
    assert_true(state_has("end of precision"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_time_the_fastest_choice_is_still_found, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(other_steps_leave_the_choice_its_time, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(ranges_are_tried_without_another_calibration, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(the_last_step_keeps_to_the_time, temp_make, temp_remove),
        cmocka_unit_test_setup_teardown(a_last_step_that_gives_up_is_no_trial, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(a_resumed_ladder_knows_the_fastest_choice, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(a_reached_target_does_not_end_the_choice, temp_make,
                                        temp_remove),
    };
    return cmocka_run_group_tests(tests, hold_clock, NULL);
}
