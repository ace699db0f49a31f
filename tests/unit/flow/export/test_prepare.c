// SPDX-License-Identifier: Apache-2.0
// A quantizer written by a caller, from annotation to a converted program, and its conflicts.
#include "support/models.h"
#include "support/test.h"

// A quantizer of one's own: additions get an observer per edge and one for the sum.
typedef struct settings {
    tare_qspec *spec;
    bool shares_with_itself, replaces;
} settings;

static tare_status annotate_add(const settings *s, tare_model *model, const tare_node *n,
                                tare_error *err) {
    tare_qspec *sum = NULL;
    for (size_t i = 0; i < tare_node_input_count(n); i++)
        TARE_TRY(tare_model_annotate_input(model, n, tare_node_input(n, i), s->spec, err));
    if (s->shares_with_itself)
        TARE_TRY(tare_qspec_create_shared((tare_edge){NULL, n}, &sum, err));
    else
        sum = tare_qspec_retain(s->spec);
    const tare_status status = tare_model_annotate_output(model, n, sum, err);
    tare_qspec_release(sum);
    return status == TARE_OK ? tare_model_mark_annotated(model, n, true, err) : status;
}

static tare_status annotate(void *self, tare_model *model, tare_error *err) {
    for (const tare_node *n = tare_model_first_node(model); n != NULL; n = tare_node_next(n))
        if (strcmp(tare_node_target(n), "operator.add") == 0)
            TARE_TRY(annotate_add(self, model, n, err));
    return TARE_OK;
}

static tare_status replace_first(void *self, const tare_model *model, tare_observer_map *observers,
                                 tare_error *err) {
    const settings *s = self;
    (void)model;
    if (!s->replaces) return TARE_OK;
    assert_int_equal(tare_observer_map_count(observers), 3);
    tare_observer_spec *spec = tare_observer_spec_create("MovingAverageMinMaxObserver");
    const tare_status status = tare_observer_map_replace(observers, 0, spec, err);
    tare_observer_spec_release(spec);
    return status;
}

static tare_quantizer *new_quantizer(settings *s) {
    const tare_quantizer_class class = {.struct_size = sizeof class,
                                        .name = "Additions",
                                        .annotate = annotate,
                                        .prepare_obs_or_fq_callback = replace_first};
    tare_observer_spec *observer = tare_observer_spec_create("MinMaxObserver");
    const tare_qspec_fields f = {.struct_size = sizeof f,
                                 .dtype = TARE_INT8,
                                 .observer = observer,
                                 .has_quant_min = true,
                                 .quant_min = -128,
                                 .has_quant_max = true,
                                 .quant_max = 127,
                                 .qscheme = TARE_PER_TENSOR_AFFINE};
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_qspec_create(&f, &s->spec, job_error()));
    CHECK_DONE(tare_quantizer_create(&class, s, &q, job_error()));
    tare_observer_spec_release(observer);
    return q;
}

static tare_model *add_model(void) {
    return new_model(NULL, new_tree(),
                     "def forward(self, x, y):\n    add = x + y\n    return add\n");
}

static void a_quantizer_of_ones_own_goes_through_the_flow(void **state) {
    (void)state;
    settings s = {0};
    tare_quantizer *q = new_quantizer(&s);
    tare_model *m = add_model(), *p = NULL, *c = NULL;
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    CHECK_HOLDS(printed(p), "    activation_post_process_0 = self.activation_post_process_0(x);  "
                            "x = None\n");
    CHECK_HOLDS(printed(p), "    add = activation_post_process_0 + activation_post_process_1;");
    CHECK_REFUSED(tare_convert_pt2e(p, NULL, &c, job_error()), TARE_INVALID_ARGUMENT,
                  "the observer 'activation_post_process_0' of 'x' has seen no data");
    const float ones[] = {-1, 1}, twos[] = {-2, 2};
    const int64_t two = 2;
    tare_tensor *inputs[2] = {NULL, NULL};
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 1, &two, ones, &inputs[0], job_error()));
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 1, &two, twos, &inputs[1], job_error()));
    CHECK_DONE(tare_calibrate(p, (const tare_tensor *const *)inputs, 2, job_error()));
    CHECK_DONE(tare_convert_pt2e(p, NULL, &c, job_error()));
    CHECK_HOLDS(printed(c), "quantize_per_tensor_default = torch.ops.quantized_decomposed."
                            "quantize_per_tensor.default(x, 0.007843137718737125, -1, -128, 127, "
                            "torch.int8);  x = None\n");
    CHECK_HOLDS(printed(c), "    add = dequantize_per_tensor_default + "
                            "dequantize_per_tensor_default_1;");
    CHECK_LACKS(printed(c), "activation_post_process");
    tare_tensor_release(inputs[0]);
    tare_tensor_release(inputs[1]);
    tare_model_destroy(c);
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_quantizer_destroy(q);
    tare_qspec_release(s.spec);
}

static void the_callback_may_replace_observers(void **state) {
    (void)state;
    settings s = {.replaces = true};
    tare_quantizer *q = new_quantizer(&s);
    tare_model *m = add_model(), *p = NULL;
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    CHECK_HOLDS(printed(p), "(activation_post_process_0): MovingAverageMinMaxObserver(");
    CHECK_HOLDS(printed(p), "(activation_post_process_1): MinMaxObserver(");
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_quantizer_destroy(q);
    tare_qspec_release(s.spec);
}

// An observer of weights alone knows them; one that watches an input too waits for data.
static tare_status annotate_weights(void *self, tare_model *model, tare_error *err) {
    const tare_node *add = tare_model_find_node(model, "add");
    const settings *s = self;
    for (size_t i = 0; i < tare_node_input_count(add); i++) {
        const tare_node *input = tare_node_input(add, i);
        if (s->shares_with_itself || tare_node_get_kind(input) == TARE_NODE_GET_ATTR)
            TARE_TRY(tare_model_annotate_input(model, add, input, s->spec, err));
    }
    return TARE_OK;
}

static tare_status convert_unseen(bool observes_the_input, tare_model **out) {
    settings s = {.shares_with_itself = observes_the_input};
    const tare_quantizer_class class = {
        .struct_size = sizeof class, .name = "weights", .annotate = annotate_weights};
    tare_quantizer_destroy(new_quantizer(&s)); // for its spec
    module *root = new_tree();
    tare_tensor *w = NULL;
    const int64_t two = 2;
    const float values[] = {-1, 1};
    CHECK_DONE(tare_tensor_from_data(TARE_FLOAT32, 1, &two, values, &w, job_error()));
    CHECK_DONE(tare__module_set_tensor(root, "w", w, true, job_error()));
    tare_tensor_release(w);
    tare_model *p = NULL, *m = new_model(NULL, root,
                                         "def forward(self, x):\n    w = self.w\n"
                                         "    add = x + w\n    return add\n");
    tare_quantizer *q = NULL;
    CHECK_DONE(tare_quantizer_create(&class, &s, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    const tare_status status = tare_convert_pt2e(p, NULL, out, job_error());
    tare_quantizer_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_qspec_release(s.spec);
    return status;
}

static void weights_need_no_data(void **state) {
    (void)state;
    tare_model *c = NULL;
    CHECK_DONE(convert_unseen(false, &c));
    CHECK_HOLDS(printed(c), "dequantize_per_tensor.default(quantize_per_tensor_default, "
                            "0.007843137718737125, -1, -128, 127, torch.int8)");
    tare_model_destroy(c);
    c = NULL;
    CHECK_REFUSED(convert_unseen(true, &c), TARE_INVALID_ARGUMENT, "of 'x' has seen no data");
}

static void conflicts_fail_prepare_and_name_the_edges(void **state) {
    (void)state;
    settings s = {.shares_with_itself = true};
    tare_quantizer *q = new_quantizer(&s);
    tare_model *m = add_model(), *p = NULL;
    CHECK_REFUSED(tare_prepare_pt2e(m, q, &p, job_error()), TARE_INVALID_ARGUMENT,
                  "none gives the parameters: 'add' -> 'add'");
    tare_model_destroy(m);
    tare_quantizer_destroy(q);
    tare_qspec_release(s.spec);
}

static void models_of_another_flow_are_refused(void **state) {
    (void)state;
    tare_model *m = add_model(), *c = NULL;
    CHECK_REFUSED(tare_convert_pt2e(m, NULL, &c, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a model that tare_prepare_pt2e made");
    settings s = {0};
    tare_quantizer *q = new_quantizer(&s);
    tare_model *p = NULL;
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    CHECK_REFUSED(tare_convert_fx(p, NULL, &c, job_error()), TARE_INVALID_ARGUMENT,
                  "the model was prepared by a quantizer's annotations");
    tare_model_destroy(p);
    tare_quantizer_destroy(q);
    tare_qspec_release(s.spec);
    tare_model_destroy(m);
}

static void convert_keeps_checks_that_give_nothing(void **state) {
    (void)state;
    settings s = {0};
    tare_quantizer *q = new_quantizer(&s);
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, x, y):\n"
                              "    check = torch.ops.aten._assert_tensor_metadata.default(x, "
                              "dtype = torch.float32)\n"
                              "    unread = x * y\n"
                              "    add = x + y\n"
                              "    return add\n"),
               *p = NULL, *c = NULL;
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    CHECK_DONE(tare_convert_pt2e(p, &lenient, &c, job_error()));
    CHECK_HOLDS(printed(c), "_assert_tensor_metadata.default(x, dtype = torch.float32)");
    assert_null(strstr(printed(c), " * "));
    tare_model_destroy(c);
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_quantizer_destroy(q);
    tare_qspec_release(s.spec);
}

static void memory_may_end_at_any_place(void **state) {
    (void)state;
    settings s = {0};
    tare_quantizer *q = new_quantizer(&s);
    tare_model *m = add_model(), *p = NULL, *c = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_prepare_pt2e(m, q, &p, NULL),
                           (tare_model_destroy(p), p = NULL));
    CHECK_DONE(tare_prepare_pt2e(m, q, &p, job_error()));
    const tare_convert_pt2e_options lenient = {.struct_size = sizeof lenient, .is_lenient = true};
    EVERY_ALLOCATION_FAILS(status, status = tare_convert_pt2e(p, &lenient, &c, NULL),
                           (tare_model_destroy(c), c = NULL));
    tare_model_destroy(p);
    tare_model_destroy(m);
    tare_quantizer_destroy(q);
    tare_qspec_release(s.spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quantizer_of_ones_own_goes_through_the_flow),
        cmocka_unit_test(the_callback_may_replace_observers),
        cmocka_unit_test(weights_need_no_data),
        cmocka_unit_test(conflicts_fail_prepare_and_name_the_edges),
        cmocka_unit_test(models_of_another_flow_are_refused),
        cmocka_unit_test(convert_keeps_checks_that_give_nothing),
        cmocka_unit_test(memory_may_end_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
