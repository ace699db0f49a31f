// SPDX-License-Identifier: Apache-2.0
// Small models and the flow over them, in few words.
#include "support/models.h"

#include "core/memory/map.h"
#include "io/data/npz.h"
#include "model/pass.h"
#include "ops/text/print.h"
#include "replay/explained.h"
#include "support/temp.h"
#include "support/test.h"

// --- errors and texts ---

tare_error *job_error(void) {
    static tare_error *error;
    if (error == NULL) error = tare_error_create();
    return error;
}

void check_done(tare_status status, const char *call) {
    if (status != TARE_OK)
        fail_msg("%s: %s: %s: %s (%s)", call, tare_status_name(status),
                 tare_error_where(job_error()), tare_error_message(job_error()),
                 tare_error_hint(job_error()));
}

void check_refused(tare_status status, tare_status wanted, const char *words, const char *call) {
    const char *where = tare_error_where(job_error()), *message = tare_error_message(job_error());
    if (status != wanted || (!strstr(message, words) && !strstr(where, words) &&
                             !strstr(tare_error_hint(job_error()), words)))
        fail_msg("%s: %s: '%s: %s (%s)' is not %s with '%s'", call, tare_status_name(status), where,
                 message, tare_error_hint(job_error()), tare_status_name(wanted), words);
    tare_error_clear(job_error());
}

void check_holds(const char *whole, const char *words, bool wanted) {
    if ((strstr(whole, words) != NULL) != wanted)
        fail_msg("%s '%s' in\n%s", wanted ? "missing:" : "unexpected:", words, whole);
}

typedef struct page {
    char chars[1 << 15];
    size_t length;
} page;

static page *next_page(void) {
    static page pages[4];
    static unsigned turn;
    page *p = &pages[turn++ % 4];
    p->length = 0;
    p->chars[0] = '\0';
    return p;
}

static bool write_page(void *user, const char *chars, size_t length) {
    page *p = user;
    if (p->length + length >= sizeof p->chars) return false;
    memcpy(p->chars + p->length, chars, length);
    p->length += length;
    p->chars[p->length] = '\0';
    return true;
}

const char *printed(const tare_model *model) {
    page *p = next_page();
    CHECK_DONE(tare_model_print(model, TARE_PRINT_MODEL, write_page, p, job_error()));
    return p->chars;
}

const char *explained(const tare_model *model, const char *name) {
    page *p = next_page();
    CHECK_DONE(tare_model_explain(model, name, write_page, p, job_error()));
    return p->chars;
}

const char *decided(const tare_model *model, const char *name) {
    page *p = next_page();
    for (size_t i = 0; i < tare_model_decision_count(model); i++) {
        tare_decision d;
        CHECK_DONE(tare_model_decision_at(model, i, &d, job_error()));
        if (strcmp(d.node, name) == 0)
            snprintf(p->chars, sizeof p->chars, "%s: %s: %s [%s]", d.pass, d.decision, d.reason,
                     d.rule);
    }
    return p->chars;
}

// --- models ---

module *new_tree(void) {
    module *root = NULL;
    CHECK_DONE(tare__module_create(&tare__class_graph_module, &root, job_error()));
    return root;
}

// The keywords of a call are a constructor's values.
static void set_config(module *m, const char *config) {
    char code[512];
    snprintf(code, sizeof code, "def forward(self):\n    f = torch.f(%s)\n    return 1\n", config);
    graph *g = NULL;
    CHECK_DONE(tare__parse_code(code, strlen(code), NULL, &g, job_error()));
    const node *call = tare__graph_find(g, "f");
    for (size_t i = 0; i < call->kwarg_count; i++) {
        const keyword *k = &call->kwargs[i];
        if (strcmp(k->name, "bias") == 0) continue; // a file tells by the tensor
        CHECK_DONE(tare__module_set_config(m, k->name, &k->value, job_error()));
    }
    tare__graph_destroy(g);
}

static float small_number(int64_t i) {
    return (float)((i * 37 + 11) % 29 - 14) / 14.0f;
}

tare_tensor *new_input(int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(TARE_FLOAT32, ndim, shape, &t, job_error()));
    float *to = tare_tensor_mutable_data(t);
    for (int64_t i = 0; i < tare_tensor_element_count(t); i++) to[i] = small_number(i);
    return t;
}

tare_tensor *new_integers(tare_dtype dtype, int ndim, const int64_t *shape, double scale,
                          int64_t zero_point) {
    tare_tensor *t = NULL;
    qparams *q = tare__qparams_per_tensor(dtype, scale, zero_point);
    assert_non_null(q);
    CHECK_DONE(tare__tensor_quantized(ndim, shape, q, &t, job_error()));
    tare__qparams_release(q);
    return t;
}

static void fill(module *m, const char *name, int ndim, const int64_t *shape, float scale,
                 float shift) {
    tare_tensor *t = new_input(ndim, shape);
    float *to = tare_tensor_mutable_data(t);
    for (int64_t i = 0; i < t->count; i++) to[i] = to[i] * scale + shift;
    CHECK_DONE(tare__module_set_tensor(m, name, t, strncmp(name, "running", 7) != 0, job_error()));
    tare_tensor_release(t);
}

static void fill_weighted(module *m, bool has_bias, int64_t outputs, int64_t first,
                          int64_t second) {
    int64_t shape[5] = {first, second};
    tare__module_ints(m, "kernel_size", (size_t)m->class->dims, shape + 2);
    fill(m, "weight", 2 + m->class->dims, shape, 0.5f, 0.0f);
    if (has_bias)
        fill(m, "bias", 1, &outputs, 0.25f, 0.0f);
    else
        CHECK_DONE(tare__module_set_tensor(m, "bias", NULL, true, job_error()));
}

static void fill_tensors(module *m, bool has_bias) {
    const char *op = m->class->op;
    if (op == NULL) return;
    const int64_t groups = tare__module_int(m, "groups", 1);
    const int64_t in = tare__module_int(m, "in_channels", 0);
    const int64_t out = tare__module_int(m, "out_channels", 0);
    const int64_t features = tare__module_int(m, "num_features", 0);
    if (strcmp(op, "linear") == 0)
        fill_weighted(m, has_bias, tare__module_int(m, "out_features", 0),
                      tare__module_int(m, "out_features", 0),
                      tare__module_int(m, "in_features", 0));
    if (strcmp(op, "conv") == 0) fill_weighted(m, has_bias, out, out, in / groups);
    if (strcmp(op, "conv_transpose") == 0) fill_weighted(m, has_bias, out, in, out / groups);
    if (strcmp(op, "batch_norm") == 0) {
        fill(m, "weight", 1, &features, 0.25f, 1.0f);
        fill(m, "bias", 1, &features, 0.5f, 0.0f);
        fill(m, "running_mean", 1, &features, 0.5f, 0.0f);
        fill(m, "running_var", 1, &features, 0.5f, 1.0f);
    }
}

module *put_module(module *root, const tare_context *context, const char *path, const char *class,
                   const char *config) {
    tare_module *opaque = NULL;
    CHECK_DONE(tare_module_create(context, class, &opaque, job_error()));
    module *m = (module *)opaque;
    m->training = false;
    set_config(m, config);
    fill_tensors(m, strstr(config, "bias=False") == NULL);
    CHECK_DONE(tare__module_set_path(root, path, m, &tare__class_container, job_error()));
    tare__module_release(m);
    return tare__module_find(root, path);
}

tare_model *new_model(const tare_context *context, module *root, const char *code) {
    CHECK_DONE(tare__parse_code(code, strlen(code), root, &root->graph, job_error()));
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        const module *called =
            n->op == NODE_CALL_MODULE ? tare__module_find(root, n->target) : NULL;
        if (called == NULL) continue; // the scope of a leaf's call is the leaf
        n->scope_path = n->target;
        n->scope_type = called->class->name;
    }
    tare_model *model = NULL;
    CHECK_DONE(tare__model_create(context, root, TARE_STAGE_FLOAT, NULL, &model, job_error()));
    return model;
}

tare_model *linear_relu_linear(int ins, int between, int outs) {
    char first[64], second[64];
    module *root = new_tree();
    (void)snprintf(first, sizeof first, "in_features=%d, out_features=%d", ins, between);
    (void)snprintf(second, sizeof second, "in_features=%d, out_features=%d", between, outs);
    put_module(root, NULL, "a", "torch.nn.Linear", first);
    put_module(root, NULL, "b", "torch.nn.Linear", second);
    return new_model(NULL, root,
                     "def forward(self, x):\n"
                     "    a = self.a(x)\n"
                     "    relu = torch.nn.functional.relu(a)\n"
                     "    b = self.b(relu)\n"
                     "    return b\n");
}

tare_model *read_example(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "examples/data/tutorial_%s.safetensors", name);
    tare_model *model = NULL;
    CHECK_DONE(tare_model_read(path, NULL, &model, job_error()));
    return model;
}

// --- the flow ---

tare_backend_config *my_backend(void) {
    tare_backend_config *b = NULL;
    CHECK_DONE(tare_backend_config_read("examples/my_backend.json", &b, job_error()));
    return b;
}

tare_qconfig_mapping *my_mapping(void) {
    tare_qconfig_mapping *m = NULL;
    CHECK_DONE(tare_qconfig_mapping_read("examples/my_mapping.json", &m, job_error()));
    return m;
}

tare_backend_config *builtin_backend(const char *name) {
    tare_backend_config *b = NULL;
    CHECK_DONE(tare_backend_config_builtin(name, &b, job_error()));
    return b;
}

tare_qconfig_mapping *default_mapping(const char *name) {
    tare_qconfig_mapping *m = NULL;
    CHECK_DONE(tare_qconfig_mapping_default(name, false, -1, &m, job_error()));
    return m;
}

tare_qconfig *small_qconfig(void) {
    tare_observer_spec *activation = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_int(activation, "quant_min", 0);
    tare_observer_spec_set_int(activation, "quant_max", 127);
    tare_observer_spec_set_double(activation, "eps", 1.0 / 4096.0);
    tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(weight, "qscheme", TARE_PER_TENSOR_SYMMETRIC);
    tare_qconfig *q = tare_qconfig_create(activation, weight);
    assert_non_null(q);
    tare_observer_spec_release(activation);
    tare_observer_spec_release(weight);
    return q;
}

tare_model *prepared(const tare_model *model, const tare_backend_config *backend,
                     const tare_qconfig_mapping *mapping) {
    tare_model *out = NULL;
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = mapping};
    CHECK_DONE(tare_prepare_fx(model, &options, &out, job_error()));
    return out;
}

void calibrated(tare_model *model, size_t ndim, const int64_t *shape) {
    tare_tensor *input = new_input((int)ndim, shape);
    const tare_tensor *inputs[8];
    const size_t count = tare_model_input_count(model);
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) inputs[i] = input;
    CHECK_DONE(tare_calibrate(model, inputs, count, job_error()));
    tare_tensor_release(input);
}

void check_explained(const tare_model *model) {
    findings found = {0};
    CHECK_DONE(compare_explained(model, &found, job_error()));
    if (findings_any(&found)) fail_msg("%s", tare__text_chars(&found.detail));
    findings_release(&found);
}

tare_model *referenced(const tare_model *model, const tare_backend_config *backend) {
    tare_model *out = NULL;
    const tare_convert_options options = {.backend = backend};
    CHECK_DONE(tare_convert_to_reference_fx(model, &options, &out, job_error()));
    check_explained(out);
    return out;
}

tare_model *lowered(const tare_model *model, const tare_backend_config *backend) {
    tare_model *out = NULL;
    const tare_convert_options options = {.backend = backend};
    CHECK_DONE(tare_convert_fx(model, &options, &out, job_error()));
    check_explained(out);
    return out;
}

tare_data *data_in_file(const tare_model *model, const char *name, tare_tensor *x) {
    const char *path = temp_path(name);
    tare_data *data = NULL;
    map arrays = {0};
    assert_true(tare__map_set(&arrays, "x", x));
    CHECK_DONE(tare__npz_write(path, &arrays, job_error()));
    tare__map_release(&arrays);
    CHECK_DONE(tare_data_open(path, model, NULL, &data, job_error()));
    return data;
}

tare_tensor *result_of(const tare_model *model, const tare_tensor *const *inputs, size_t count) {
    const tare_session_options options = {.reference = true};
    tare_session *session = NULL;
    tare_tensor *outputs[4] = {NULL};
    size_t output_count = 0;
    CHECK_DONE(tare_session_create(model, &options, &session, job_error()));
    CHECK_DONE(tare_session_run(session, inputs, count, outputs, 4, &output_count, job_error()));
    tare_session_destroy(session);
    assert_true(output_count >= 1);
    for (size_t i = 1; i < output_count; i++) tare_tensor_release(outputs[i]);
    return outputs[0];
}

void check_same_tensor(const tare_tensor *a, const tare_tensor *b) {
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->ndim, b->ndim);
    for (int i = 0; i < a->ndim; i++) assert_int_equal(a->shape[i], b->shape[i]);
    assert_memory_equal(a->data, b->data, tare__tensor_bytes(a));
}

tare_model *digits_in_integers(void) {
    tare_model *model = NULL;
    CHECK_DONE(tare_model_read("data/digits/digits.safetensors", NULL, &model, job_error()));
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, backend, mapping);
    CALIBRATED(p, 4, 1, 8, 8);
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    return out;
}

tare_model *prepared_program(const tare_model *program) {
    tare_quantizer *q = NULL;
    tare_model *made = NULL;
    CHECK_DONE(tare_quantizer_builtin("XNNPACKQuantizer", NULL, &q, job_error()));
    CHECK_DONE(tare_prepare_pt2e(program, q, &made, job_error()));
    tare_quantizer_destroy(q);
    return made;
}
