// SPDX-License-Identifier: Apache-2.0
// What a user adds without touching the library: observers, module classes, fusers.
#include "support/fuser_log.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include <math.h>

// --- an observer of one's own: the greatest magnitude, times a margin ---

typedef struct magnitude {
    double margin;
    float most; // -1: nothing seen
} magnitude;

static tare_status magnitude_create(void *user, const tare_observer_args *args, void **state,
                                    tare_observer_info *info, tare_error *err) {
    (void)user;
    magnitude *made = tare__alloc(sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = (magnitude){.margin = 1, .most = -1};
    tare_observer_args_double(args, "margin", &made->margin);
    info->dtype = TARE_QUINT8;
    info->qscheme = TARE_PER_TENSOR_AFFINE;
    info->has_range = info->has_qparams = true;
    info->quant_max = 255;
    *state = made;
    return TARE_OK;
}

static tare_status magnitude_clone(const void *state, void **out, tare_error *err) {
    magnitude *made = tare__alloc(sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    *made = *(const magnitude *)state;
    *out = made;
    return TARE_OK;
}

static tare_status magnitude_update(void *state, const tare_tensor *x, tare_error *err) {
    (void)err;
    magnitude *s = state;
    const float *values = tare_tensor_data(x);
    for (int64_t i = 0; i < tare_tensor_element_count(x); i++)
        s->most = fmaxf(s->most, fabsf(values[i]));
    return TARE_OK;
}

static tare_status magnitude_qparams(const void *state, tare_qparams_sink sink, void *sink_user,
                                     bool *is_calibrated, tare_error *err) {
    const magnitude *s = state;
    *is_calibrated = s->most >= 0;
    const double scale = *is_calibrated ? (double)s->most * s->margin / 127 : 1, zero_point = 128;
    return sink(sink_user, 1, &scale, &zero_point, err);
}

static tare_status magnitude_describe(const void *state, tare_writer write, void *write_user,
                                      tare_error *err) {
    char chars[32];
    const int length =
        snprintf(chars, sizeof chars, "most=%g", (double)((const magnitude *)state)->most);
    return write(write_user, chars, (size_t)length) ? TARE_OK : tare__out_of_memory(err);
}

static tare_status magnitude_save(const void *state, tare_state_save save, void *io,
                                  tare_error *err) {
    tare_tensor *t = NULL;
    TARE_TRY(
        tare_tensor_from_data(TARE_FLOAT32, 0, NULL, &((const magnitude *)state)->most, &t, err));
    const tare_status status = save(io, "most", t, err);
    tare_tensor_release(t);
    return status;
}

static tare_status magnitude_load(void *state, tare_state_load load, void *io, tare_error *err) {
    const tare_tensor *t = load(io, "most");
    if (t == NULL || tare_tensor_dtype(t) != TARE_FLOAT32 || tare_tensor_element_count(t) != 1)
        return tare__fail(err, TARE_MALFORMED_FILE, "expected one float32 'most'");
    ((magnitude *)state)->most = *(const float *)tare_tensor_data(t);
    return TARE_OK;
}

static tare_status magnitude_merge(void *into, const void *from, tare_error *err) {
    (void)err;
    ((magnitude *)into)->most = fmaxf(((magnitude *)into)->most, ((const magnitude *)from)->most);
    return TARE_OK;
}

static const char *const magnitude_arguments[] = {"margin", NULL};
static const tare_observer_class magnitude_class = {.struct_size = sizeof magnitude_class,
                                                    .name = "mine.Magnitude",
                                                    .arguments = magnitude_arguments,
                                                    .create = magnitude_create,
                                                    .destroy = tare__free,
                                                    .clone = magnitude_clone,
                                                    .update = magnitude_update,
                                                    .qparams = magnitude_qparams,
                                                    .describe = magnitude_describe,
                                                    .save = magnitude_save,
                                                    .load = magnitude_load,
                                                    .merge = magnitude_merge};

static tare_qconfig_mapping *magnitude_mapping(void) {
    tare_observer_spec *activation = tare_observer_spec_create("mine.Magnitude");
    tare_observer_spec_set_double(activation, "margin", 2);
    tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(weight, "qscheme", TARE_PER_TENSOR_SYMMETRIC);
    tare_qconfig *q = tare_qconfig_create(activation, weight);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    tare_qconfig_release(q);
    tare_observer_spec_release(weight);
    tare_observer_spec_release(activation);
    return mapping;
}

// --- module classes of one's own ---

// y = x * factor: a float class that tare does not know.
static tare_status same_shape(void *user, const tare_module *m, const tare_tensor *const *inputs,
                              size_t count, int *ndim, int64_t *shape, tare_error *err) {
    (void)user;
    (void)m;
    if (count < 1) return tare__fail(err, TARE_INVALID_ARGUMENT, "expected an input");
    *ndim = tare_tensor_ndim(inputs[0]);
    memcpy(shape, tare_tensor_shape(inputs[0]), (size_t)*ndim * sizeof *shape);
    return TARE_OK;
}

static tare_status scale_forward(void *user, const tare_module *m, const tare_tensor *const *inputs,
                                 size_t count, tare_tensor *out, tare_error *err) {
    (void)user;
    (void)count;
    (void)err;
    const float factor = (float)tare_module_config_double(m, "factor", 1);
    const float *x = tare_tensor_data(inputs[0]);
    float *y = tare_tensor_mutable_data(out);
    for (int64_t i = 0; i < tare_tensor_element_count(out); i++) y[i] = x[i] * factor;
    return TARE_OK;
}

static tare_status scale_describe(void *user, const tare_module *m, tare_writer write,
                                  void *write_user, tare_error *err) {
    (void)user;
    char chars[32];
    const int length =
        snprintf(chars, sizeof chars, "factor=%g", tare_module_config_double(m, "factor", 1));
    return write(write_user, chars, (size_t)length) ? TARE_OK : tare__out_of_memory(err);
}

static const tare_module_class scale_class = {.struct_size = sizeof scale_class,
                                              .name = "mine.Scale",
                                              .print_name = "Scale",
                                              .role = TARE_MODULE_FLOAT,
                                              .shape = same_shape,
                                              .forward = scale_forward,
                                              .describe = scale_describe};

// A fused class: scale, then relu.
static tare_status scale_relu_forward(void *user, const tare_module *m,
                                      const tare_tensor *const *inputs, size_t count,
                                      tare_tensor *out, tare_error *err) {
    TARE_TRY(scale_forward(user, tare_module_child(m, "0"), inputs, count, out, err));
    float *y = tare_tensor_mutable_data(out);
    for (int64_t i = 0; i < tare_tensor_element_count(out); i++) y[i] = fmaxf(y[i], 0);
    return TARE_OK;
}

static const tare_module_class scale_relu_class = {.struct_size = sizeof scale_relu_class,
                                                   .name = "mine.ScaleReLU",
                                                   .print_name = "ScaleReLU",
                                                   .role = TARE_MODULE_FUSED,
                                                   .shape = same_shape,
                                                   .forward = scale_relu_forward};

// A reference class that rounds weights towards minus infinity, where tare's rounds to even.
typedef struct floor_linear {
    int from_float_calls;
    tare_weight_qparams seen;
    double scale;
} floor_linear;

static tare_status floor_from_float(void *user, const tare_module *source,
                                    const tare_weight_qparams *weight, tare_module *made,
                                    tare_error *err) {
    floor_linear *log = user;
    log->from_float_calls++;
    log->seen = *weight;
    log->scale = weight->scale[0];
    TARE_TRY(tare_module_copy_config(made, source, err));
    TARE_TRY(tare_module_set_config_double(made, "step", weight->scale[0], err));
    const tare_tensor *w = tare_module_tensor(source, "weight");
    tare_tensor *codes = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 2, tare_tensor_shape(w), &codes, err));
    const float *from = tare_tensor_data(w);
    float *to = tare_tensor_mutable_data(codes);
    for (int64_t i = 0; i < tare_tensor_element_count(w); i++)
        to[i] = floorf(from[i] / (float)weight->scale[0]);
    const tare_status status = tare_module_set_tensor(made, "codes", codes, err);
    tare_tensor_release(codes);
    return status;
}

static tare_status floor_shape(void *user, const tare_module *m, const tare_tensor *const *inputs,
                               size_t count, int *ndim, int64_t *shape, tare_error *err) {
    TARE_TRY(same_shape(user, m, inputs, count, ndim, shape, err));
    shape[*ndim - 1] = tare_module_config_int(m, "out_features", -1);
    return TARE_OK;
}

static tare_status floor_forward(void *user, const tare_module *m, const tare_tensor *const *inputs,
                                 size_t count, tare_tensor *out, tare_error *err) {
    (void)user;
    (void)count;
    (void)err;
    const tare_tensor *codes = tare_module_tensor(m, "codes");
    const int64_t *shape = tare_tensor_shape(codes);
    const float *w = tare_tensor_data(codes), *x = tare_tensor_data(inputs[0]);
    const float step = (float)tare_module_config_double(m, "step", 0);
    float *y = tare_tensor_mutable_data(out);
    for (int64_t row = 0; row < tare_tensor_element_count(out) / shape[0]; row++)
        for (int64_t o = 0; o < shape[0]; o++) {
            float sum = 0;
            for (int64_t i = 0; i < shape[1]; i++)
                sum += x[row * shape[1] + i] * (w[o * shape[1] + i] * step);
            y[row * shape[0] + o] = sum;
        }
    return TARE_OK;
}

static tare_status floor_describe(void *user, const tare_module *m, tare_writer write,
                                  void *write_user, tare_error *err) {
    (void)user;
    char chars[64];
    const int length = snprintf(chars, sizeof chars, "%lld -> %lld, rounds down",
                                (long long)tare_module_config_int(m, "in_features", -1),
                                (long long)tare_module_config_int(m, "out_features", -1));
    return write(write_user, chars, (size_t)length) ? TARE_OK : tare__out_of_memory(err);
}

static floor_linear floor_log;
static const tare_module_class floor_class = {.struct_size = sizeof floor_class,
                                              .name = "mine.FloorLinear",
                                              .print_name = "FloorLinear",
                                              .role = TARE_MODULE_REFERENCE,
                                              .user = &floor_log,
                                              .from_float = floor_from_float,
                                              .shape = floor_shape,
                                              .forward = floor_forward,
                                              .describe = floor_describe};

// --- what every test has ---

static tare_context *context;

static int make_context(void **state) {
    (void)state;
    floor_log = (floor_linear){0};
    CHECK_DONE(tare_context_create(&context, job_error()));
    CHECK_DONE(tare_context_add_observer_class(context, &magnitude_class, job_error()));
    CHECK_DONE(tare_context_add_module_class(context, &scale_class, job_error()));
    CHECK_DONE(tare_context_add_module_class(context, &scale_relu_class, job_error()));
    CHECK_DONE(tare_context_add_module_class(context, &floor_class, job_error()));
    return 0;
}

static int drop_context(void **state) {
    (void)state;
    tare_context_destroy(context);
    return 0;
}

static tare_dtype_config int8_weighted(void) {
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    return d;
}

static tare_backend_config *linear_backend(const char *reference) {
    tare_backend_config *b = tare_backend_config_create("mine");
    tare_pattern_config *p = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);
    const tare_dtype_config d = int8_weighted();
    tare_pattern_config_add_dtype_config(p, &d);
    tare_pattern_config_set_root_module(p, "torch.nn.Linear");
    tare_pattern_config_set_reference_quantized_module(p, reference);
    CHECK_DONE(tare_backend_config_check(b, job_error()));
    return b;
}

static tare_model *linear_model(void) {
    module *root = new_tree();
    put_module(root, context, "fc", "torch.nn.Linear", "in_features=3, out_features=2");
    return new_model(context, root, "def forward(self, x):\n    fc = self.fc(x)\n    return fc\n");
}

#define NNQR "torch.ao.nn.quantized.reference."

// Writes and reads again.
static tare_model *through_file(const tare_model *model, const char *name) {
    tare_model *read = NULL;
    CHECK_DONE(tare_model_write(model, temp_path(name), job_error()));
    CHECK_DONE(tare_model_read(temp_path(name), context, &read, job_error()));
    return read;
}

// --- observers ---

static void an_observer_class_serves_in_qconfigs(void **state) {
    (void)state;
    tare_backend_config *backend = linear_backend(NNQR "Linear");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = linear_model(), *p = prepared(model, backend, mapping);
    CHECK_HOLDS(printed(p), "(activation_post_process_0): mine.Magnitude(most=-1)");
    CALIBRATED(p, 4, 3);
    CHECK_HOLDS(printed(p), "(activation_post_process_0): mine.Magnitude(most=0.928571)");
    CHECK_HOLDS(decided(p, "fc"), "mine.Magnitude(margin=2");
    tare_model *q = lowered(p, backend);
    CHECK_HOLDS(printed(q), "(fc): QuantizedLinear(in_features=3, out_features=2");
    const tare_tensor *scale = tare__module_find_tensor(q->root, "fc_input_scale_0");
    assert_true(*(const float *)tare_tensor_data(scale) ==
                (float)((double)(13.0f / 14.0f) * 2 / 127));
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void its_statistics_go_through_a_file(void **state) {
    (void)state;
    tare_backend_config *backend = linear_backend(NNQR "Linear");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = linear_model(), *p = prepared(model, backend, mapping), *none = NULL;
    CALIBRATED(p, 4, 3);
    tare_model *read = through_file(p, "prepared.safetensors");
    assert_string_equal(printed(read), printed(p));
    tare_model *direct = lowered(p, backend), *later = lowered(read, backend);
    assert_string_equal(printed(later), printed(direct));
    CHECK_REFUSED(tare_model_read(temp_path("prepared.safetensors"), NULL, &none, job_error()),
                  TARE_MALFORMED_FILE, "mine.Magnitude");
    assert_null(none);
    tare_model_destroy(direct);
    tare_model_destroy(later);
    tare_model_destroy(read);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void its_statistics_merge(void **state) {
    (void)state;
    tare_backend_config *backend = linear_backend(NNQR "Linear");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = linear_model();
    tare_model *few = prepared(model, backend, mapping), *many = prepared(model, backend, mapping);
    CALIBRATED(few, 1, 3);
    CALIBRATED(many, 9, 3);
    assert_string_not_equal(printed(few), printed(many));
    for (const node *n = few->root->graph->first; n != NULL; n = n->next) {
        if (strncmp(n->name, "activation_post_process", 23) != 0) continue;
        CHECK_DONE(tare__observer_merge(tare__module_find(few->root, n->target),
                                        tare__module_find(many->root, n->target), job_error()));
    }
    assert_string_equal(printed(few), printed(many));
    tare_model_destroy(many);
    tare_model_destroy(few);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void classes_are_copied_and_checked(void **state) {
    (void)state;
    tare_context *other = NULL;
    tare_observer_class class = magnitude_class;
    CHECK_DONE(tare_context_create(&other, job_error()));
    CHECK_DONE(tare_context_add_observer_class(other, &class, job_error()));
    class = (tare_observer_class){.name = "gone"}; // the context has its own copy
    CHECK_REFUSED(tare_context_add_observer_class(other, &class, job_error()),
                  TARE_INVALID_ARGUMENT, "create, destroy and clone");
    CHECK_REFUSED(tare_context_add_observer_class(other, NULL, job_error()), TARE_INVALID_ARGUMENT,
                  "create, destroy and clone");
    CHECK_REFUSED(tare_context_add_observer_class(other, &magnitude_class, job_error()),
                  TARE_INVALID_ARGUMENT, "'mine.Magnitude' exists already");
    class = magnitude_class;
    class.name = "MinMaxObserver";
    CHECK_REFUSED(tare_context_add_observer_class(other, &class, job_error()),
                  TARE_INVALID_ARGUMENT, "'MinMaxObserver' exists already");
    tare_module_class row = scale_class;
    row.role = 9;
    CHECK_REFUSED(tare_context_add_module_class(other, &row, job_error()), TARE_INVALID_ARGUMENT,
                  "unknown role 9");
    row = (tare_module_class){.name = "mine.Scale"};
    CHECK_REFUSED(tare_context_add_module_class(other, &row, job_error()), TARE_INVALID_ARGUMENT,
                  "a shape and a forward");
    row = scale_class;
    row.name = "torch.nn.Linear";
    CHECK_REFUSED(tare_context_add_module_class(other, &row, job_error()), TARE_INVALID_ARGUMENT,
                  "'torch.nn.Linear' exists already");
    tare_module *made = NULL;
    CHECK_REFUSED(tare_module_create(other, "torch.nn.Liner", &made, job_error()), TARE_NOT_FOUND,
                  "did you mean 'torch.nn.Linear'?");
    CHECK_REFUSED(tare_module_create(other, "mine.Magnitude", &made, job_error()),
                  TARE_INVALID_ARGUMENT, "is an observer");
    assert_null(made);
    tare_context_destroy(other);
}

// --- module classes ---

static void a_reference_class_of_one_s_own_is_swapped_in(void **state) {
    (void)state;
    tare_backend_config *backend = linear_backend("mine.FloorLinear");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = linear_model(), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 3);
    tare_model *q = referenced(p, backend);
    CHECK_HOLDS(printed(q), "(fc): FloorLinear(3 -> 2, rounds down)");
    assert_int_equal(floor_log.from_float_calls, 1);
    assert_int_equal(floor_log.seen.dtype, TARE_QINT8);
    assert_int_equal(floor_log.seen.count, 1);
    assert_int_equal(floor_log.seen.quant_min, -128);
    assert_int_equal(floor_log.seen.quant_max, 127);

    // Its own rounding reaches the result: the codes of the weight are rounded down.
    const module *fc = tare__module_find(q->root, "fc");
    const float *codes = tare_tensor_data(tare__module_tensor(fc, "codes"));
    const float *w =
        tare_tensor_data(tare__module_tensor(tare__module_find(model->root, "fc"), "weight"));
    for (int i = 0; i < 6; i++) assert_true(codes[i] == floorf(w[i] / (float)floor_log.scale));
    tare_tensor *x = NEW_INPUT(4, 3);
    const tare_tensor *inputs[] = {x};
    tare_tensor *y = result_of(q, inputs, 1);
    tare_model *kept = lowered(p, backend), *read = through_file(q, "reference.safetensors");
    CHECK_HOLDS(printed(kept), "FloorLinear(3 -> 2, rounds down)"); // it has no lowered form
    assert_string_equal(printed(read), printed(q));
    tare_tensor *again = result_of(read, inputs, 1), *unlowered = result_of(kept, inputs, 1);
    check_same_tensor(again, y);
    check_same_tensor(unlowered, y);
    tare_tensor_release(unlowered);
    tare_tensor_release(again);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(read);
    tare_model_destroy(kept);
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void an_unknown_reference_class_is_an_error(void **state) {
    (void)state;
    tare_backend_config *backend = linear_backend("mine.FlorLinear");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = linear_model(), *p = prepared(model, backend, mapping), *q = NULL;
    CALIBRATED(p, 4, 3);
    const tare_convert_options options = {.backend = backend};
    CHECK_REFUSED(tare_convert_fx(p, &options, &q, job_error()), TARE_NOT_FOUND,
                  "no reference module class 'mine.FlorLinear'");
    CHECK_REFUSED(tare_convert_fx(p, &options, &q, job_error()), TARE_NOT_FOUND,
                  "did you mean 'mine.FloorLinear'?");
    assert_null(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static tare_model *scale_model(void) {
    module *root = new_tree();
    put_module(root, context, "double", "mine.Scale", "factor=2.0");
    put_module(root, NULL, "relu", "torch.nn.ReLU", "");
    return new_model(context, root,
                     "def forward(self, x):\n    double = self.double(x)\n"
                     "    relu = self.relu(double)\n    return relu\n");
}

static void sessions_run_module_classes(void **state) {
    (void)state;
    tare_model *model = scale_model();
    tare_session *session = NULL;
    CHECK_DONE(tare_session_create(model, NULL, &session, job_error()));
    tare_tensor *x = NEW_INPUT(2, 3), *y = NULL;
    const tare_tensor *inputs[] = {x};
    size_t count = 0;
    CHECK_DONE(tare_session_run(session, inputs, 1, &y, 1, &count, job_error()));
    const float *from = tare_tensor_data(x), *to = tare_tensor_data(y);
    for (int i = 0; i < 6; i++) assert_true(to[i] == fmaxf(from[i] * 2, 0));
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_session_destroy(session);
    tare_model_destroy(model);
}

static tare_pattern_config *add_scale_pattern(tare_backend_config *b, const char *name) {
    tare_pattern_config *p = tare_backend_config_add(b, name, NULL, NULL);
    tare_dtype_config d = int8_weighted();
    d.weight.dtype = TARE_DTYPE_UNSET;
    d.bias = TARE_DTYPE_UNSET;
    tare_pattern_config_add_dtype_config(p, &d);
    return p;
}

static void a_pattern_may_name_an_unknown_float_class(void **state) {
    (void)state;
    tare_backend_config *backend = tare_backend_config_create("mine");
    add_scale_pattern(backend, "mine.Scale");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = scale_model(), *p = prepared(model, backend, mapping);
    CHECK_HOLDS(printed(p), "(double): Scale(factor=2)");
    CHECK_HOLDS(printed(p), "double = self.double(activation_post_process_0)");
    CHECK_HOLDS(printed(p), "activation_post_process_1 = self.activation_post_process_1(double)");
    CALIBRATED(p, 5);
    tare_model *q = lowered(p, backend);
    CHECK_HOLDS(printed(q), "double = self.double(dequantize)");
    tare_tensor *x = NEW_INPUT(5);
    const tare_tensor *inputs[] = {x};
    tare_tensor *y = result_of(q, inputs, 1);
    const float *from = tare_tensor_data(x), *to = tare_tensor_data(y);
    for (int i = 0; i < 5; i++) // two roundings of half a step, with steps of 2/127 and 4/127
        assert_true(fabsf(to[i] - fmaxf(2 * from[i], 0)) <= 4.0f / 127);
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_model_destroy(q);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// --- fusers ---

static tare_status fuse_scale(void *user, bool is_qat, const tare_module *const *modules,
                              const char *const *functions, size_t count, tare_module **out,
                              tare_error *err) {
    fuser_log *log = user;
    note(log, modules, functions, count);
    log->is_qat = is_qat;
    if (log->gives_nothing) return TARE_OK;
    if (log->fails) return tare__fail(err, TARE_UNSUPPORTED, "not today");
    tare_module *made = NULL;
    TARE_TRY(tare_module_create(context, "mine.ScaleReLU", &made, err));
    tare_status status = tare_module_set_child(made, "0", modules[0], err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_module_release(made);
    return status;
}

static void a_fuser_callback_gets_modules_in_data_flow_order(void **state) {
    (void)state;
    fuser_log log = {.is_qat = true};
    tare_backend_config *backend = tare_backend_config_create("mine");
    tare_pattern_config *p = tare_backend_config_add(backend, "mine.Scale", "torch.nn.ReLU", NULL);
    tare_pattern_config_set_fuser_callback(p, fuse_scale, &log);
    tare_pattern_config_set_fused_module(p, "mine.ScaleReLU");
    tare_model *model = scale_model(), *fused = NULL;
    CHECK_DONE(tare_fuse_fx(model, backend, &fused, job_error()));
    assert_string_equal(log.seen, "mine.Scale torch.nn.ReLU");
    assert_false(log.is_qat);
    CHECK_HOLDS(printed(fused), "(double): ScaleReLU()\n)");
    CHECK_HOLDS(printed(fused), "double = self.double(x);  x = None\n    return double");
    CHECK_HOLDS(decided(fused, "relu"), "fused into ScaleReLU at 'double' [mine.ScaleReLU]");
    tare_model *read = through_file(fused, "fused.safetensors");
    assert_string_equal(printed(read), printed(fused));
    tare_tensor *x = NEW_INPUT(5);
    const tare_tensor *inputs[] = {x};
    tare_tensor *wanted = result_of(model, inputs, 1), *y = result_of(read, inputs, 1);
    check_same_tensor(y, wanted);
    tare_tensor_release(y);
    tare_tensor_release(wanted);
    tare_tensor_release(x);
    tare_model_destroy(read);
    tare_model_destroy(fused);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

static void a_fused_class_of_one_s_own_is_observed_by_its_pattern(void **state) {
    (void)state;
    fuser_log log = {0};
    tare_backend_config *backend = tare_backend_config_create("mine");
    tare_pattern_config *p = tare_backend_config_add(backend, "mine.Scale", "torch.nn.ReLU", NULL);
    tare_pattern_config_set_fuser_callback(p, fuse_scale, &log);
    tare_pattern_config_set_fused_module(p, "mine.ScaleReLU");
    add_scale_pattern(backend, "mine.ScaleReLU");
    tare_qconfig_mapping *mapping = magnitude_mapping();
    tare_model *model = scale_model(), *made = prepared(model, backend, mapping);
    CHECK_HOLDS(printed(made), "double = self.double(activation_post_process_0)");
    CHECK_HOLDS(printed(made), "self.activation_post_process_1(double)");
    CALIBRATED(made, 5);
    tare_model *q = referenced(made, backend);
    CHECK_HOLDS(printed(q), "double = self.double(dequantize)");
    tare_model_destroy(q);
    tare_model_destroy(made);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static void what_a_fuser_refuses_is_reported_at_its_node(void **state) {
    (void)state;
    fuser_log log = {.gives_nothing = true};
    tare_backend_config *backend = tare_backend_config_create("mine");
    tare_pattern_config *p = tare_backend_config_add(backend, "mine.Scale", "torch.nn.ReLU", NULL);
    tare_pattern_config_set_fuser_callback(p, fuse_scale, &log);
    tare_model *model = scale_model(), *fused = NULL;
    CHECK_REFUSED(tare_fuse_fx(model, backend, &fused, job_error()), TARE_INVALID_ARGUMENT,
                  "returned no module");
    log = (fuser_log){.fails = true};
    CHECK_REFUSED(tare_fuse_fx(model, backend, &fused, job_error()), TARE_UNSUPPORTED, "not today");
    CHECK_REFUSED(tare_fuse_fx(model, backend, &fused, job_error()), TARE_UNSUPPORTED,
                  "node 'double'");
    assert_null(fused);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

int main(void) {
#define WITH_CONTEXT(test) cmocka_unit_test_setup_teardown(test, make_context, drop_context)
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(sessions_run_module_classes),
        WITH_CONTEXT(an_observer_class_serves_in_qconfigs),
        WITH_CONTEXT(its_statistics_go_through_a_file),
        WITH_CONTEXT(its_statistics_merge),
        WITH_CONTEXT(classes_are_copied_and_checked),
        WITH_CONTEXT(a_reference_class_of_one_s_own_is_swapped_in),
        WITH_CONTEXT(an_unknown_reference_class_is_an_error),
        WITH_CONTEXT(a_pattern_may_name_an_unknown_float_class),
        WITH_CONTEXT(a_fuser_callback_gets_modules_in_data_flow_order),
        WITH_CONTEXT(a_fused_class_of_one_s_own_is_observed_by_its_pattern),
        WITH_CONTEXT(what_a_fuser_refuses_is_reported_at_its_node),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
