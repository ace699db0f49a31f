// SPDX-License-Identifier: Apache-2.0
// Annotated and prepared programs in model files.
#include "support/exported.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#define PLACE "activation_post_process_"

static tare_status weight_only(void *user, const tare_qparams_view *sources, size_t count,
                               tare_qparams_sink sink, void *sink_user, tare_error *err) {
    const double zero = 0;
    (void)user, (void)count;
    return sink(sink_user, 1, sources[0].scale, &zero, err);
}

static const tare_derive_rule rule = {
    .struct_size = sizeof rule, .name = "weight_only", .derive = weight_only};

static tare_qspec *plain_spec(void) {
    tare_observer_spec *observer = tare_observer_spec_create("MinMaxObserver");
    const tare_qspec_fields f = {.struct_size = sizeof f,
                                 .dtype = TARE_INT8,
                                 .observer = observer,
                                 .has_quant_min = true,
                                 .quant_min = -128,
                                 .has_quant_max = true,
                                 .quant_max = 127,
                                 .qscheme = TARE_PER_TENSOR_AFFINE};
    tare_qspec *spec = NULL;
    CHECK_DONE(tare_qspec_create(&f, &spec, job_error()));
    tare_observer_spec_release(observer);
    return spec;
}

// y has a spec that is derived from x's.
static tare_status annotate(void *self, tare_model *model, tare_error *err) {
    const tare_node *add = tare_model_find_node(model, "add");
    const tare_node *x = tare_node_input(add, 0), *y = tare_node_input(add, 1);
    const tare_edge source = {x, add};
    const tare_qspec_fields f = {
        .struct_size = sizeof f, .dtype = TARE_INT32, .qscheme = TARE_PER_TENSOR_SYMMETRIC};
    tare_qspec *plain = plain_spec(), *derived = NULL, *shared = NULL;
    CHECK_DONE(tare_qspec_create_derived(&f, &source, 1, self, &derived, job_error()));
    CHECK_DONE(tare_qspec_create_shared(source, &shared, job_error()));
    tare_status status = tare_model_annotate_input(model, add, x, plain, err);
    if (status == TARE_OK) status = tare_model_annotate_input(model, add, y, derived, err);
    if (status == TARE_OK) status = tare_model_annotate_output(model, add, shared, err);
    if (status == TARE_OK) status = tare_model_annotate_sharing(model, add, false, err);
    tare_qspec_release(plain);
    tare_qspec_release(derived);
    tare_qspec_release(shared);
    return status;
}

static tare_model *add_model(void) {
    return new_exported(NULL, "def forward(self, x, y):\n"
                              "    add = torch.ops.aten.add.Tensor(x, y)\n    return add\n");
}

static tare_model *prepared_by(const tare_derive_rule *derive) {
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "derives", .annotate = annotate};
    tare_quantizer *q = NULL;
    tare_model *m = add_model(), *p = NULL;
    CHECK_DONE(tare_quantizer_create(&class, (void *)derive, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    tare_quantizer_destroy(q);
    tare_model_destroy(m);
    return p;
}

static tare_context *knowing_context(void) {
    tare_context *context = NULL;
    CHECK_DONE(tare_context_create(&context, job_error()));
    CHECK_DONE(tare_context_add_derive_rule(context, &rule, job_error()));
    return context;
}

static tare_model *through_file(const tare_model *model, const tare_context *context) {
    tare_model *read = NULL;
    CHECK_DONE(tare_model_write(model, temp_path("m.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("m.safetensors"), context, &read, job_error()));
    return read;
}

static void annotations_of_a_float_model_are_kept(void **state) {
    (void)state;
    tare_context *context = knowing_context();
    tare_model *m = add_model();
    CHECK_DONE(annotate((void *)&rule, m, job_error()));
    tare_model *read = through_file(m, context);
    assert_string_equal(annotated(read), annotated(m));
    assert_string_equal(annotated(read), "add[x: int8, y: int32] -> =x/add");
    const tare_annotation *a = tare_model_annotation(read, tare_model_find_node(read, "add"));
    assert_false(tare_annotation_allows_sharing(a));
    tare_qspec *spec = NULL;
    assert_true(tare_annotation_input(a, tare_model_find_node(read, "y"), &spec));
    assert_string_equal(tare_qspec_rule(spec)->name, "weight_only");
    tare_model_destroy(read);
    tare_model_destroy(m);
    tare_context_destroy(context);
}

static void derived_observers_find_rule_and_sources_again(void **state) {
    (void)state;
    tare_context *context = knowing_context();
    tare_model *p = prepared_by(&rule), *read = through_file(p, context), *c = NULL;
    tare_tensor *x = NEW_INPUT(1, 4, 4, 4);
    const tare_tensor *inputs[] = {x, x};
    CHECK_DONE(tare_calibrate(read, inputs, 2, job_error()));
    tare_model *again = through_file(read, context);
    CHECK_DONE(tare_convert_pt2e(again, NULL, &c, job_error()));
    CHECK_HOLDS(printed(c), "quantize_per_tensor.default(y, ");
    CHECK_HOLDS(printed(c), "torch.int32)");
    tare_tensor_release(x);
    tare_model_destroy(c);
    tare_model_destroy(again);
    tare_model_destroy(read);
    tare_model_destroy(p);
    tare_context_destroy(context);
}

// The scale of the range that the source has seen, doubled.
static tare_status of_range(void *user, const tare_qparams_view *sources, size_t count,
                            tare_qparams_sink sink, void *sink_user, tare_error *err) {
    (void)user;
    const tare_qparams_view *from = &sources[0];
    if (count != 1 || from->min_val == NULL || from->max_val == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "nothing was seen");
    const double scale = 2 * (from->max_val[0] - from->min_val[0]) / 255, zero = 0;
    return sink(sink_user, 1, &scale, &zero, err);
}

static void rules_see_what_their_sources_have_seen(void **state) {
    (void)state;
    const tare_derive_rule ranged = {
        .struct_size = sizeof ranged, .name = "of_range", .derive = of_range};
    tare_model *p = prepared_by(&ranged), *c = NULL;
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    CHECK_REFUSED(tare_convert_pt2e(p, &lenient, &c, job_error()), TARE_INVALID_ARGUMENT,
                  "nothing was seen");
    tare_tensor *x = NEW_INPUT(1, 2);
    float *values = tare_tensor_mutable_data(x);
    values[0] = 0;
    values[1] = 127.5f;
    const tare_tensor *inputs[] = {x, x};
    CHECK_DONE(tare_calibrate(p, inputs, 2, job_error()));
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    // The range doubles that of the output, which shares the source's observer.
    CHECK_HOLDS(printed(c), "quantize_per_tensor.default(y, 2.0, 0, ");
    tare_tensor_release(x);
    tare_model_destroy(c);
    tare_model_destroy(p);
}

static void an_unknown_rule_is_refused(void **state) {
    (void)state;
    tare_model *p = prepared_by(&rule), *read = NULL;
    tare_context *context = knowing_context();
    CHECK_DONE(tare_model_write(p, temp_path("m.safetensors"), job_error()));
    CHECK_REFUSED(tare_model_read(temp_path("m.safetensors"), NULL, &read, job_error()),
                  TARE_MALFORMED_FILE, "no rule 'weight_only' to derive by");
    CHECK_REFUSED(tare_context_add_derive_rule(context, &rule, job_error()), TARE_INVALID_ARGUMENT,
                  "'weight_only' exists already");
    CHECK_REFUSED(tare_context_add_derive_rule(context, tare_derive_bias_rule(), job_error()),
                  TARE_INVALID_ARGUMENT, "exists already");
    tare_context_destroy(context);
    tare_model_destroy(p);
}

// A file whose text `from` reads `to`, of the same length.
static void check_patched(const char *from, const char *to, const char *words) {
    tare_context *context = knowing_context();
    tare_model *p = prepared_by(&rule), *read = NULL;
    size_t size = 0, count = 0;
    assert_int_equal(strlen(from), strlen(to));
    CHECK_DONE(tare_model_write(p, temp_path("m.safetensors"), job_error()));
    unsigned char *bytes = temp_read(temp_path("m.safetensors"), &size);
    for (size_t i = 0; i + strlen(from) <= size; i++)
        if (memcmp(bytes + i, from, strlen(from)) == 0) {
            memcpy(bytes + i, to, strlen(to));
            count++;
        }
    assert_true(count > 0);
    temp_write(temp_path("patched.safetensors"), bytes, size);
    const tare_model_read_options options = {.struct_size = sizeof options,
                                             .ignores_digests = true};
    CHECK_REFUSED(tare_model_read_with(temp_path("patched.safetensors"), context, &options, &read,
                                       job_error()),
                  TARE_MALFORMED_FILE, words);
    free(bytes);
    tare_model_destroy(p);
    tare_context_destroy(context);
}

static void what_files_say_of_derived_observers_is_checked(void **state) {
    (void)state;
    check_patched("sources\\\": [\\\"" PLACE "0\\\"", "sources\\\": [\\\"" PLACE "7\\\"",
                  "the model has no observer '" PLACE "7'");
    check_patched("{\\\"" PLACE "1\\\": {\\\"derive", "{\\\"" PLACE "0\\\": {\\\"derive",
                  "the model has no derived observer '" PLACE "0'");
    check_patched("\\\"sources\\\"", "\\\"sauces!\\\"", "sauces!");
    check_patched("\\\"annotations\\\"", "\\\"annotat-ons\\\"", "annotat-ons");
}

static void memory_may_end_while_reading(void **state) {
    (void)state;
    tare_context *context = knowing_context();
    tare_model *p = prepared_by(&rule), *read = NULL;
    tare_status status = TARE_OK;
    CHECK_DONE(tare_model_write(p, temp_path("m.safetensors"), job_error()));
    EVERY_ALLOCATION_FAILS(
        status, status = tare_model_read(temp_path("m.safetensors"), context, &read, NULL),
        (tare_model_destroy(read), read = NULL));
    EVERY_ALLOCATION_FAILS(status, status = tare_model_write(p, temp_path("n.safetensors"), NULL),
                           (void)0);
    tare_model_destroy(p);
    tare_context_destroy(context);
    context = NULL;
    EVERY_ALLOCATION_FAILS(status, status = tare_context_create(&context, NULL),
                           (tare_context_destroy(context), context = NULL));
    CHECK_DONE(tare_context_create(&context, job_error()));
    bool is_added = false;
    EVERY_ALLOCATION_FAILS(
        status, status = is_added ? TARE_OK : tare_context_add_derive_rule(context, &rule, NULL),
        is_added = true);
    tare_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(annotations_of_a_float_model_are_kept),
        cmocka_unit_test(derived_observers_find_rule_and_sources_again),
        cmocka_unit_test(rules_see_what_their_sources_have_seen),
        cmocka_unit_test(an_unknown_rule_is_refused),
        cmocka_unit_test(what_files_say_of_derived_observers_is_checked),
        cmocka_unit_test(memory_may_end_while_reading),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
